/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM of prefill with small bfloat16 matrices, off Hopper with all of them, on tensor cores. An activation
 * enters as three bfloat16 numbers that together have its 24 bits; sums are float32. A warp has 16 tokens and
 * 32 outputs and prefetches its operands into registers. Of 16 columns lane l has the four from 4 * (l % 4)
 * on, in all operands alike.
 */
#include "backends/cuda/gemm/dense_matrices.cuh"

using namespace gb_cuda;

enum {
    TOKENS = 32,  /* of a block */
    OUTPUTS = 64, /* likewise */
    WARPS = 4,
    TILES = 4, /* of 8 outputs, of a warp */
    STEP = 32, /* columns */
    AHEAD = 3, /* steps in flight */
    PIECES = STEP / 16
};

/* A lane's columns of one step: of tokens r and r + 8, and of an output of each tile. */
struct step_operands {
    float4 x[2][PIECES];
    uint2 weights[TILES][PIECES];
};

struct dense_warp {
    const float4 *x[2];          /* the lane's first columns */
    const uint2 *weights[TILES]; /* likewise */
    uint32_t tiles;              /* that have outputs */
    float sums[TILES][4];

    /* Rows past the end have the last one's operands, and are not stored. */
    __device__ void find(const dense_matrices &p, const dense_matrix &m, uint32_t token, uint32_t output) {
        const uint32_t lane = threadIdx.x % WARP, r = lane / 4, t = lane % 4;
        const uint32_t left = output < m.outputs ? m.outputs - output : 0;
        tiles = (left + 7) / 8 < TILES ? (left + 7) / 8 : (uint32_t)TILES;
        for (uint32_t i = 0; i < 2; i++) {
            const uint32_t row = token + r + 8 * i;
            x[i] = reinterpret_cast<const float4 *>(p.x +
                                                    (size_t)(row < p.rows ? row : p.rows - 1) * p.columns) +
                   t;
        }
        for (uint32_t j = 0; j < TILES; j++) {
            const uint32_t row = output + j * 8 + r;
            const uint16_t *weight = static_cast<const uint16_t *>(m.weight);
            weights[j] = reinterpret_cast<const uint2 *>(
                             weight + (size_t)(row < m.outputs ? row : m.outputs - 1) * p.columns) +
                         t;
            for (int i = 0; i < 4; i++)
                sums[j][i] = 0;
        }
    }

    __device__ void load(uint32_t column, step_operands *operands) const {
#pragma unroll
        for (uint32_t piece = 0; piece < PIECES; piece++) {
            const uint32_t at = column / 4 + piece * 4;
            for (uint32_t i = 0; i < 2; i++)
                operands->x[i][piece] = x[i][at];
            for (uint32_t j = 0; j < TILES; j++)
                operands->weights[j][piece] = weights[j][at];
        }
    }

    __device__ void multiply(const step_operands &operands) {
#pragma unroll
        for (uint32_t piece = 0; piece < PIECES; piece++) {
            float4 rest[2] = {operands.x[0][piece], operands.x[1][piece]};
#pragma unroll
            for (int term = 0; term < 3; term++) {
                const uint32_t a[4] = {take_bf16(&rest[0].x, &rest[0].y), take_bf16(&rest[1].x, &rest[1].y),
                                       take_bf16(&rest[0].z, &rest[0].w), take_bf16(&rest[1].z, &rest[1].w)};
#pragma unroll
                for (uint32_t j = 0; j < TILES; j++)
                    if (j < tiles)
                        multiply_add(sums[j], a, operands.weights[j][piece].x, operands.weights[j][piece].y);
            }
        }
    }

    __device__ void store(const dense_matrices &p, const dense_matrix &m, uint32_t token,
                          uint32_t output) const {
        const uint32_t lane = threadIdx.x % WARP;
        for (uint32_t j = 0; j < TILES; j++)
            for (uint32_t i = 0; i < 4; i++) {
                const uint32_t row = token + lane / 4 + i / 2 * 8,
                               column = output + j * 8 + lane % 4 * 2 + i % 2;
                if (row < p.rows && column < m.outputs)
                    m.y[(size_t)row * m.outputs + column] = sums[j][i];
            }
    }
};

static __global__ void __launch_bounds__(WARPS *WARP) run_gemm_bf16(GB_GRID_CONSTANT dense_matrices p) {
    const uint32_t warp = threadIdx.x / WARP;
    const uint32_t token = blockIdx.y * TOKENS + warp % 2 * 16;
    uint32_t output;
    const dense_matrix &m = matrix_of_block(p, OUTPUTS, &output);
    output += warp / 2 * (TILES * 8);
    dense_warp own;
    step_operands steps[AHEAD] = {};
    wait_for_earlier();
    own.find(p, m, token, output);
    if (own.tiles == 0)
        return;
#pragma unroll
    for (uint32_t s = 0; s < AHEAD; s++)
        if (s * STEP < p.columns)
            own.load(s * STEP, &steps[s]);
    for (uint32_t first = 0; first < p.columns; first += AHEAD * STEP) {
#pragma unroll
        for (uint32_t s = 0; s < AHEAD; s++) {
            const uint32_t column = first + s * STEP;
            if (column >= p.columns)
                break;
            own.multiply(steps[s]);
            if (column + AHEAD * STEP < p.columns)
                own.load(column + AHEAD * STEP, &steps[s]);
        }
    }
    own.store(p, m, token, output);
}

bool gb_cuda_supports_gemm_bf16(const gb_cuda_call *call) {
    const gb_cuda_tensor *weight = call->operands[1];
    return gb_cuda_is_prompt(call) && weight->dtype == GB_BF16 && weight->dims[1] % STEP == 0 &&
           !gb_cuda_supports_wgmma(call, weight);
}

void gb_cuda_gemm_bf16(const gb_cuda_problem *problem) {
    dense_matrices p = {};
    const uint32_t blocks = list_matrices(problem->parts, problem->count, OUTPUTS, &p);
    add_launch(problem->parts[0]->launches, "gemm_bf16", run_gemm_bf16,
               dim3(blocks, blocks_for(p.rows, TOKENS)), WARPS * WARP, 0, p);
}
