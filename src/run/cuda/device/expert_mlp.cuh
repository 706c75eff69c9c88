/* SPDX-License-Identifier: Apache-2.0
 *
 * A mixture of experts for generated tokens in two launches: a token's experts and their inner values, then
 * their outputs together with a shared expert's. Matrices are packed, of 4-bit codes in groups of 64, and
 * take their inputs in 8 bits. A block of threads has 16 rows of each matrix it takes; of the sum over k each
 * warp has the part that a warp of few_rows.cuh has, all of it under way at once in registers, and all is
 * added in the same order: the bits are those of the ops one by one.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_EXPERT_MLP_CUH
#define GUMBEL_RUN_CUDA_DEVICE_EXPERT_MLP_CUH

#include "run/cuda/device/few_rows.cuh"
#include "run/cuda/device/routing.cuh"
#include "run/cuda/device/row_ops.cuh"

namespace gb_cuda {

enum {
    EXPERT_GROUP = 64,      /* columns of a scale, and of 512 bytes of a packed block */
    MOST_CHOICES = 8,       /* of a token, beside the shared expert */
    MOST_ROUTED = 8 * WARP, /* experts, of which a warp has all in registers */
    MOST_INNER_ATOMS = 4,   /* groups that a warp has of a row of gate and up, */
    MOST_OUTER_ATOMS = 2    /* and of down */
};

/* As many matrices as there are experts. */
struct packed_matrices {
    const uint8_t *codes, *scales, *biases; /* biases: NULL without */
    uint32_t code_bytes, scale_bytes;       /* of a block of 16 rows */
    uint32_t blocks;                        /* of one matrix */
    uint32_t atoms;                         /* groups of a row */
    float offset;                           /* what codes are above the format's */
};

/* What the first launch leaves for the second one. Expert number `choices` of a token is the shared one. */
struct expert_values {
    float *inner;     /* [tokens, choices + 1, size] */
    int32_t *experts; /* [tokens, choices] */
    float *weights;   /* [tokens, choices + 1] */
    uint32_t choices, size;
};

/* A warp's part of a block of 16 rows in shared memory: its groups first .. end - 1, at most ATOMS. */
template <bool IS_BF16, int ATOMS>
struct packed_part {
    uint8_t codes[ATOMS][512];
    uint8_t scales[ATOMS][32], biases[ATOMS][32];

    /* Begins to copy it; the warp calls wait_for_copies and meets before it uses it. */
    __device__ void copy(const packed_matrices &m, size_t block, uint32_t first, uint32_t end) {
        const uint32_t lane = threadIdx.x % WARP, half = lane % 2 * 16, atom = lane / 2 % 8;
        const uint8_t *from = m.codes + block * m.code_bytes + first * 512 + lane * 16;
#pragma unroll
        for (int i = 0; i < ATOMS; i++)
            if (first + i < end)
                copy_16(&codes[i][lane * 16], from + i * 512);
        const size_t at = block * m.scale_bytes + (first + atom) * 32 + half;
        if (atom >= ATOMS || first + atom >= end)
            return;
        if (lane < WARP / 2)
            copy_16(&scales[atom][half], m.scales + at);
        else if (m.biases)
            copy_16(&biases[atom][half], m.biases + at);
    }

    /* Scales or biases of the lane's rows r and r + 8. */
    __device__ static void widen(const uint8_t *of_group, float value[2]) {
        const uint32_t both = *reinterpret_cast<const uint32_t *>(of_group + threadIdx.x % WARP / 4 * 4);
        value[0] = IS_BF16 ? low_bf16(both) : low_half(both);
        value[1] = IS_BF16 ? high_bf16(both) : high_half(both);
    }

    /* y += group i of rows r and r + 8 (r = lane / 4) times inputs x, whose scale and sum are of_x. */
    __device__ void multiply(int i, const packed_matrices &m, const uint4 &x, const float2 &of_x,
                             float y[2]) const {
        int32_t sum[4] = {0, 0, 0, 0};
        const uint4 of_lane = *reinterpret_cast<const uint4 *>(&codes[i][threadIdx.x % WARP * 16]);
        const uint32_t w[4] = {of_lane.x, of_lane.y, of_lane.z, of_lane.w};
#pragma unroll
        for (int unit = 0; unit < 2; unit++) {
            uint32_t a[4];
            code_bytes<4>(w + 2 * unit, &a[0], &a[2]);
            code_bytes<4>(w + 2 * unit + 1, &a[1], &a[3]);
            multiply_add_bytes(sum, a, unit ? x.z : x.x, unit ? x.w : x.y, sum);
        }
        float scale[2], bias[2] = {0, 0};
        widen(scales[i], scale);
        if (m.biases)
            widen(biases[i], bias);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            bias[half] = fmaf(-m.offset, scale[half], bias[half]);
            y[half] = fmaf(bias[half], of_x.y, y[half]);
            y[half] = fmaf(scale[half], of_x.x * (float)sum[2 * half], y[half]);
        }
    }
};

/* Puts a warp's sums where all parts of a block's rows meet. */
__device__ inline void store_part(float (*parts)[FEW_BLOCK_ROWS], const float y[2]) {
    const uint32_t lane = threadIdx.x % WARP;
    if (lane % 4 == 0) {
        parts[threadIdx.x / WARP][lane / 4] = y[0];
        parts[threadIdx.x / WARP][lane / 4 + 8] = y[1];
    }
}

__device__ inline float add_parts(const float (*parts)[FEW_BLOCK_ROWS], uint32_t row) {
    float sum = 0;
    for (int part = 0; part < FEW_PARTS; part++)
        sum += parts[part][row];
    return sum;
}

/* ---- The inner values ---------------------------------------------------------------------------------- */

struct expert_inner {
    packed_matrices weight;                 /* gate above up */
    packed_matrices shared_gate, shared_up; /* one matrix each */
    packed_matrices next;  /* down, of which the chosen ones are brought nearer; no codes: none */
    const uint4 *x;        /* [tokens, atoms, 4], */
    const float2 *x_sums;  /* [tokens, atoms]: prepared in 8 bits */
    const float *logits;   /* [tokens, experts]; NULL: they are chosen already, */
    const int32_t *chosen; /* [tokens, choices], */
    const float *chosen_weights;
    const float *shared_logit; /* [tokens] */
    uint32_t experts;
    bool normalized;
    expert_values to;
};

/* A warp finds the token's experts and returns number `number`. Where keeps is set it notes them. */
__device__ inline int choose_expert(const expert_inner &p, size_t token, uint32_t number, bool keeps) {
    const uint32_t lane = threadIdx.x % WARP, choices = p.to.choices;
    int expert = 0, wanted = 0;
    float weight = 0;
    if (p.logits) {
        routing<MOST_ROUTED / WARP> row;
        float sum = 0;
        row.create(p.logits + token * p.experts, (int)p.experts);
        for (uint32_t t = 0; t < choices; t++) {
            float probability;
            const int taken = row.take(&probability);
            sum += probability;
            wanted = t == number ? taken : wanted;
            expert = t == lane ? taken : expert;
            weight = t == lane ? probability : weight;
        }
        weight = p.normalized ? weight / sum : weight;
    } else {
        wanted = p.chosen[token * choices + number];
        expert = lane < choices ? p.chosen[token * choices + lane] : 0;
        weight = lane < choices ? p.chosen_weights[token * choices + lane] : 0.0f;
    }
    if (keeps && lane < choices) {
        p.to.experts[token * choices + lane] = expert;
        p.to.weights[token * (choices + 1) + lane] = weight;
    }
    return wanted;
}

/* Brings a share of an expert's next matrix nearer: one of `shares`. */
__device__ inline void prefetch_share(const packed_matrices &m, size_t expert, uint32_t share,
                                      uint32_t shares) {
    const uint32_t first = m.blocks * share / shares, count = m.blocks * (share + 1) / shares - first;
    const size_t block = expert * m.blocks + first;
    prefetch_bulk(m.codes + block * m.code_bytes, count * m.code_bytes);
    prefetch_bulk(m.scales + block * m.scale_bytes, count * m.scale_bytes);
    if (m.biases)
        prefetch_bulk(m.biases + block * m.scale_bytes, count * m.scale_bytes);
}

/* Grid: [blocks of 16 inner values, choices + 1, tokens]. */
template <bool IS_BF16, int ATOMS>
static __global__ void __launch_bounds__(FEW_THREADS, 4) make_inner_values(GB_GRID_CONSTANT expert_inner p) {
    typedef packed_part<IS_BF16, ATOMS> part;
    GB_DYNAMIC_SHARED(part, of_warps);
    __shared__ int32_t chosen;
    __shared__ float parts[2][FEW_PARTS][FEW_BLOCK_ROWS];
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, block = blockIdx.x;
    const uint32_t number = blockIdx.y, choices = p.to.choices;
    const size_t token = blockIdx.z;
    const uint32_t first = few_part_begin(p.weight.atoms, warp, FEW_PARTS),
                   end = few_part_begin(p.weight.atoms, warp + 1, FEW_PARTS);
    part &gate = of_warps[2 * warp], &up = of_warps[2 * warp + 1];
    let_next_begin();
    if (number == choices) {
        gate.copy(p.shared_gate, block, first, end);
        up.copy(p.shared_up, block, first, end);
    }
    wait_for_earlier();
    uint4 x[ATOMS];
    float2 x_sums[ATOMS];
#pragma unroll
    for (int i = 0; i < ATOMS; i++) {
        const size_t atom = token * p.weight.atoms + (first + i < end ? first + i : 0);
        x[i] = p.x[atom * 4 + lane % 4];
        x_sums[i] = p.x_sums[atom];
    }
    if (number < choices) {
        if (warp == 0) {
            const int expert = choose_expert(p, token, number, block == 0 && number == 0);
            if (lane == 0)
                chosen = expert;
        }
        __syncthreads();
        const size_t of_gate = (size_t)chosen * p.weight.blocks + block;
        gate.copy(p.weight, of_gate, first, end);
        up.copy(p.weight, of_gate + p.weight.blocks / 2, first, end);
        if (p.next.codes && threadIdx.x == 0)
            prefetch_share(p.next, (size_t)chosen, block, gridDim.x);
    } else if (block == 0 && threadIdx.x == 0) {
        p.to.weights[token * (choices + 1) + choices] = sigmoid(p.shared_logit[token]);
    }
    wait_for_copies();
    __syncwarp();
    float of_rows[2][2] = {};
#pragma unroll
    for (int i = 0; i < ATOMS; i++)
        if (first + i < end) {
            gate.multiply(i, p.weight, x[i], x_sums[i], of_rows[0]);
            up.multiply(i, p.weight, x[i], x_sums[i], of_rows[1]);
        }
    store_part(parts[0], of_rows[0]);
    store_part(parts[1], of_rows[1]);
    __syncthreads();
    if (warp == 0) {
        const float sum = add_parts(parts[lane / FEW_BLOCK_ROWS], lane % FEW_BLOCK_ROWS);
        const float of_up = __shfl_xor_sync(0xffffffffu, sum, FEW_BLOCK_ROWS);
        if (lane < FEW_BLOCK_ROWS)
            p.to.inner[(token * (choices + 1) + number) * p.to.size + block * FEW_BLOCK_ROWS + lane] =
                silu(sum) * of_up;
    }
}

/* ---- The outputs --------------------------------------------------------------------------------------- */

struct expert_outer {
    packed_matrices weight, shared; /* shared: one matrix */
    expert_values from;
    const float *residual; /* [tokens, outputs] */
    float *y;              /* [tokens, outputs] */
    uint32_t outputs;
};

/* A warp's groups of the inner values of all experts of a token, in 8 bits: eight lanes have a group. */
template <int ATOMS>
struct inner_groups {
    enum { TASKS = (MOST_CHOICES + 1) * ATOMS, ROUNDS = (TASKS + 3) / 4 };
    byte_columns quarters[ROUNDS];

    __device__ void load(const expert_values &from, size_t token, uint32_t first, uint32_t end) {
        const uint32_t lane = threadIdx.x % WARP, choices = from.choices;
        float v[ROUNDS][8];
#pragma unroll
        for (uint32_t round = 0; round < ROUNDS; round++) {
            const uint32_t task = round * 4 + lane / 8, expert = task / ATOMS, atom = first + task % ATOMS;
            const bool is_shared = expert == MOST_CHOICES;
            float4 halves[2] = {};
            if (atom < end && (expert < choices || is_shared)) {
                const float *row =
                    from.inner + (token * (choices + 1) + (is_shared ? choices : expert)) * from.size;
                const float4 *at = reinterpret_cast<const float4 *>(row + atom * EXPERT_GROUP) + lane % 8 * 2;
                halves[0] = at[0];
                halves[1] = at[1];
            }
            memcpy(v[round], halves, sizeof halves);
        }
#pragma unroll
        for (int round = 0; round < ROUNDS; round++)
            quarters[round] = round_to_bytes<8>(v[round], 8);
    }

    /* The lane's inputs of an expert's i-th group; returns its scale and sum. */
    __device__ float2 inputs_of(int expert, int i, uint4 *x) const {
        const int task = expert * ATOMS + i, source = task % 4 * 8, lane = (int)threadIdx.x % 4;
        const byte_columns &q = quarters[task / 4];
        x->x = __shfl_sync(0xffffffffu, q.words[0], source + lane);
        x->y = __shfl_sync(0xffffffffu, q.words[1], source + lane);
        x->z = __shfl_sync(0xffffffffu, q.words[0], source + 4 + lane);
        x->w = __shfl_sync(0xffffffffu, q.words[1], source + 4 + lane);
        return float2{__shfl_sync(0xffffffffu, q.scale, source), __shfl_sync(0xffffffffu, q.sum, source)};
    }
};

/* A warp's inputs, and its parts of a block of the outputs of all experts. */
template <bool IS_BF16, int ATOMS>
struct outer_warp {
    typedef packed_part<IS_BF16, ATOMS> part;
    uint4 x[MOST_CHOICES + 1][ATOMS];
    float2 x_sums[MOST_CHOICES + 1][ATOMS];
    uint32_t first, end;
    int expert; /* the lane's number's */

    __device__ void find_inputs(const expert_values &from, size_t token) {
        inner_groups<ATOMS> inner;
        inner.load(from, token, first, end);
#pragma unroll
        for (int e = 0; e <= MOST_CHOICES; e++)
            for (int i = 0; i < ATOMS; i++)
                x_sums[e][i] = inner.inputs_of(e, i, &x[e][i]);
    }

    __device__ void copy_chosen(const expert_outer &p, uint32_t block, part *to) const {
#pragma unroll
        for (int e = 0; e < MOST_CHOICES; e++) {
            const size_t chosen = (size_t)__shfl_sync(0xffffffffu, expert, e);
            if (e < (int)p.from.choices)
                to[e].copy(p.weight, chosen * p.weight.blocks + block, first, end);
        }
    }

    __device__ void multiply(const expert_outer &p, const part *from,
                             float (*parts)[FEW_PARTS][FEW_BLOCK_ROWS]) const {
#pragma unroll
        for (int e = 0; e <= MOST_CHOICES; e++) {
            float of_rows[2] = {};
            if (e == MOST_CHOICES || e < (int)p.from.choices) {
#pragma unroll
                for (int i = 0; i < ATOMS; i++)
                    if (first + i < end)
                        from[e].multiply(i, e == MOST_CHOICES ? p.shared : p.weight, x[e][i], x_sums[e][i],
                                         of_rows);
            }
            store_part(parts[e], of_rows);
        }
    }
};

/* Output `row` of a block from its experts' sums: combine_experts, scale_rows of the shared one, and what
 * both are added to. weights: the lane's number's. */
__device__ inline float join_experts(const expert_outer &p, const float (*sums)[FEW_BLOCK_ROWS], uint32_t row,
                                     const float *weights, float residual) {
    float sum = sums[0][row] * weights[0];
    for (uint32_t t = 1; t < p.from.choices; t++)
        sum += sums[t][row] * weights[t];
    return residual + (sum + sums[MOST_CHOICES][row] * weights[p.from.choices]);
}

/* Grid: [shares of the blocks of 16 outputs, tokens]. A block of threads has every gridDim.x-th of them;
 * while it multiplies one the next one comes. */
template <bool IS_BF16, int ATOMS>
static __global__ void __launch_bounds__(FEW_THREADS, ATOMS == 1 ? 2 : 1)
    join_outputs(GB_GRID_CONSTANT expert_outer p) {
    typedef packed_part<IS_BF16, ATOMS> part;
    enum { MATRICES = MOST_CHOICES + 1 };
    GB_DYNAMIC_SHARED(part, stages); /* [1 or 2, warps, MATRICES] */
    __shared__ float parts[MATRICES][FEW_PARTS][FEW_BLOCK_ROWS], sums[MATRICES][FEW_BLOCK_ROWS];
    __shared__ float weights[MATRICES];
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, choices = p.from.choices;
    const size_t token = blockIdx.y;
    outer_warp<IS_BF16, ATOMS> own;
    own.first = few_part_begin(p.weight.atoms, warp, FEW_PARTS);
    own.end = few_part_begin(p.weight.atoms, warp + 1, FEW_PARTS);
    part *stage = stages + warp * MATRICES, *other = stage + FEW_PARTS * MATRICES;
    let_next_begin();
    stage[MOST_CHOICES].copy(p.shared, blockIdx.x, own.first, own.end);
    wait_for_earlier();
    own.expert = lane < choices ? p.from.experts[token * choices + lane] : 0;
    own.copy_chosen(p, blockIdx.x, stage);
    end_copies();
    if (threadIdx.x <= choices)
        weights[threadIdx.x] = p.from.weights[token * (choices + 1) + threadIdx.x];
    own.find_inputs(p.from, token);
    for (uint32_t block = blockIdx.x; block < p.weight.blocks; block += gridDim.x) {
        const uint32_t next = block + gridDim.x;
        const size_t y = token * p.outputs + block * FEW_BLOCK_ROWS + threadIdx.x;
        const float residual = threadIdx.x < FEW_BLOCK_ROWS ? p.residual[y] : 0.0f;
        if (next < p.weight.blocks) {
            other[MOST_CHOICES].copy(p.shared, next, own.first, own.end);
            own.copy_chosen(p, next, other);
        }
        end_copies();
        wait_for_copies_but_last();
        __syncwarp();
        own.multiply(p, stage, parts);
        __syncthreads();
        if (threadIdx.x < MATRICES * FEW_BLOCK_ROWS)
            sums[threadIdx.x / FEW_BLOCK_ROWS][threadIdx.x % FEW_BLOCK_ROWS] =
                add_parts(parts[threadIdx.x / FEW_BLOCK_ROWS], threadIdx.x % FEW_BLOCK_ROWS);
        __syncthreads();
        if (threadIdx.x < FEW_BLOCK_ROWS)
            p.y[y] = join_experts(p, sums, threadIdx.x, weights, residual);
        part *const used = stage;
        stage = other;
        other = used;
    }
}

} // namespace gb_cuda

#endif
