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
    EXPERT_WARPS = 8, /* of a block: each has as many atoms of a sum */
    EXPERT_THREADS = EXPERT_WARPS * WARP,
    EXPERT_GROUP = 64, /* columns of a scale: an atom */
    ATOM_CODES = 512,
    ATOM_SCALES = 32, /* bytes of a packed block's atom */
    ATOM_BYTES = ATOM_CODES + 2 * ATOM_SCALES,
    MOST_CHOICES = MOST_BLOCK_CHOICES, /* of a token, beside the shared expert */
    MOST_INNER_ATOMS = 4,              /* that a warp has of a row of gate and up, */
    MOST_OUTER_ATOMS = 2               /* and of down */
};

/* What the kernels of few rows know of the format. */
template <bool IS_BF16>
using expert_shape = few_shape<true, 4, EXPERT_GROUP, IS_BF16, true>;

/* The first of `atoms` that a warp has, of EXPERT_WARPS of them. */
__device__ inline uint32_t warp_begin(uint32_t atoms, uint32_t warp) {
    return atoms * warp / EXPERT_WARPS;
}

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

/* A block of 16 rows in shared memory: the atoms' codes, their scales, their biases. */
struct packed_block {
    uint8_t *at;

    /* A warp begins to copy it; the barrier's phase counts it. */
    __device__ void copy(const packed_matrices &m, size_t block, copy_barrier *barrier) const {
        uint8_t *scales = at + m.code_bytes;
        copy_once_by_warp(at, m.codes + block * m.code_bytes, m.code_bytes, barrier);
        copy_once_by_warp(scales, m.scales + block * m.scale_bytes, m.scale_bytes, barrier);
        if (m.biases)
            copy_once_by_warp(scales + m.scale_bytes, m.biases + block * m.scale_bytes, m.scale_bytes,
                              barrier);
    }

    __device__ static uint32_t bytes(const packed_matrices &m) {
        return m.code_bytes + m.scale_bytes + (m.biases ? m.scale_bytes : 0);
    }

    /* Where the lane's codes of an atom are. */
    __device__ const uint8_t *codes(uint32_t atom) const {
        return at + atom * ATOM_CODES + threadIdx.x % WARP * 16;
    }

    /* Scales of the lane's rows r and r + 8 (r = lane / 4), and biases as they are for the codes. */
    template <bool IS_BF16>
    __device__ void load_scales(uint32_t atom, const packed_matrices &m, float scale[2],
                                float bias[2]) const {
        const uint8_t *from = at + m.code_bytes + atom * ATOM_SCALES + threadIdx.x % WARP / 4 * 4;
        widen_halves<IS_BF16>(*reinterpret_cast<const uint32_t *>(from), scale);
        if (m.biases) {
            widen_halves<IS_BF16>(*reinterpret_cast<const uint32_t *>(from + m.scale_bytes), bias);
        } else {
            bias[0] = -m.offset * scale[0];
            bias[1] = -m.offset * scale[1];
        }
    }

    /* y = an atom of rows r and r + 8 times inputs x, whose scale and sum are of_x. */
    template <bool IS_BF16>
    __device__ void multiply(uint32_t atom, const packed_matrices &m, const uint4 &x, const float2 &of_x,
                             float y[2]) const {
        uint32_t w[1][4];
        byte_sums<expert_shape<IS_BF16>> sums;
        float scale[2], bias[2];
        load_codes<expert_shape<IS_BF16>>(codes(atom), w);
        load_scales<IS_BF16>(atom, m, scale, bias);
        sums.add(w, 0, [&](int) { return x; });
#pragma unroll
        for (int half = 0; half < 2; half++)
            y[half] = add_bytes_group(scale[half], bias[half], of_x, sums.sum(2 * half), 0.0f);
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
    for (int part = 0; part < EXPERT_WARPS; part++)
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
    uint32_t next_share; /* blocks of next that a block of threads brings nearer */
    bool normalized;
    expert_values to;
};

/* Memory of a block: the parts of its rows' sums lie where routing.keys are free again. */
union inner_memory {
    block_routing routing;
    float parts[2][EXPERT_WARPS][FEW_BLOCK_ROWS];
};

static_assert(sizeof(inner_memory::parts) <= sizeof(block_routing::keys), "what is chosen stays");

/* Number `number` of the token's experts. All threads call it. */
__device__ inline size_t choose_expert(const expert_inner &p, size_t token, uint32_t number,
                                       block_routing &memory) {
    if (!p.logits)
        return (size_t)p.chosen[token * p.to.choices + number];
    choose_in_block(p.logits + token * p.experts, p.experts, memory);
    return memory.chosen_experts[number];
}

/* Notes all of the token's experts, where they have been chosen. */
__device__ inline void note_experts(const expert_inner &p, size_t token, const block_routing &memory) {
    const uint32_t t = threadIdx.x, choices = p.to.choices;
    const size_t at = token * choices + t;
    if (t >= choices)
        return;
    p.to.experts[at] = p.logits ? (int32_t)memory.chosen_experts[t] : p.chosen[at];
    p.to.weights[at + token] = p.logits ? memory.weight(t, choices, p.normalized) : p.chosen_weights[at];
}

/* The block's threads bring a share of an expert's next matrix nearer: next_share blocks of 16 rows. */
__device__ inline void prefetch_share(const expert_inner &p, size_t expert) {
    const packed_matrices &m = p.next;
    const uint32_t first = blockIdx.x * p.next_share, thread = threadIdx.x * CACHE_LINE;
    const uint32_t end = first + p.next_share < m.blocks ? first + p.next_share : m.blocks;
    const size_t from = expert * m.blocks + first;
    if (first >= end)
        return;
#pragma unroll 1
    for (uint32_t at = thread; at < (end - first) * m.code_bytes; at += EXPERT_THREADS * CACHE_LINE)
        prefetch_line(m.codes + from * m.code_bytes + at);
#pragma unroll 1
    for (uint32_t at = thread; at < (end - first) * m.scale_bytes; at += EXPERT_THREADS * CACHE_LINE) {
        prefetch_line(m.scales + from * m.scale_bytes + at);
        if (m.biases)
            prefetch_line(m.biases + from * m.scale_bytes + at);
    }
}

/* The first two warps copy a block of the gate's rows and one of up's. */
__device__ inline void copy_gate_up(const packed_matrices &gate, const packed_matrices &up, size_t of_gate,
                                    size_t of_up, const packed_block to[2], copy_barrier *arrived) {
    const uint32_t warp = threadIdx.x / WARP;
    if (warp >= 2)
        return;
    announce_by_warp(arrived, packed_block::bytes(gate));
    if (warp == 0)
        to[0].copy(gate, of_gate, arrived);
    else
        to[1].copy(up, of_up, arrived);
}

/* A warp's part of the sums of gate and up: of up to MOST_INNER_ATOMS atoms from `first` on, each a chain.
 * They come out side by side, as in one_row.cuh: the i-th atom's of gate in column 2 i, of up in column 2 i
 * + 1. x: the lane's inputs of atom lane / 8, of_x: the numbers of atom lane % 4. */
template <bool IS_BF16>
__device__ inline void multiply_gate_up(const packed_matrices &m, const packed_block of[2], uint32_t first,
                                        uint32_t count, const uint4 &x, const float2 &of_x,
                                        float of_rows[2][2]) {
    const uint32_t lane = threadIdx.x % WARP;
    const bool is_there = lane % 4 < count;
    byte_sums<expert_shape<IS_BF16>> sums;
    static_assert((int)MOST_INNER_ATOMS == (int)FEW_CHAINS,
                  "gate and up of an atom have two of eight columns");
#pragma unroll
    for (uint32_t column = 0; column < 2 * MOST_INNER_ATOMS; column++) {
        if (column / 2 >= count)
            break;
        uint32_t w[1][4];
        load_codes<expert_shape<IS_BF16>>(of[column % 2].codes(first + column / 2), w);
        sums.add(w, 0, [&](int) { return lane / 4 == column ? x : uint4{0, 0, 0, 0}; });
    }
#pragma unroll
    for (int up = 0; up < 2; up++) {
        float scale[2], bias[2];
        of[up].load_scales<IS_BF16>(first + (is_there ? lane % 4 : 0), m, scale, bias);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float sum = add_bytes_group(scale[half], bias[half], of_x, sums.sum(2 * half + up), 0.0f);
            sum = is_there ? sum : 0.0f;
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            of_rows[up][half] = sum;
        }
    }
}

/* Grid: [blocks of 16 inner values, choices + 1, tokens]. */
template <bool IS_BF16>
static __global__ void __launch_bounds__(EXPERT_THREADS, 4)
    make_inner_values(GB_GRID_CONSTANT expert_inner p) {
    GB_DYNAMIC_SHARED(uint8_t, memory);
    __shared__ copy_barrier arrived;
    __shared__ inner_memory shared;
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, block = blockIdx.x;
    const uint32_t number = blockIdx.y, choices = p.to.choices;
    const size_t token = blockIdx.z;
    const uint32_t first = warp_begin(p.weight.atoms, warp),
                   count = warp_begin(p.weight.atoms, warp + 1) - first;
    const packed_block of[2] = {{memory}, {memory + p.weight.atoms * ATOM_BYTES}}; /* gate and up */
    if (threadIdx.x == 0) {
        begin_barrier(&arrived, 2);
        finish_barriers();
    }
    __syncthreads();
    if (number == choices)
        copy_gate_up(p.shared_gate, p.shared_up, block, block, of, &arrived);
    wait_alone();
    const size_t of_token = token * p.weight.atoms + first;
    const uint4 x = p.x[(of_token + (lane / 8 < count ? lane / 8 : 0)) * 4 + lane % 4];
    const float2 x_sums = p.x_sums[of_token + (lane % 4 < count ? lane % 4 : 0)];
    if (number < choices) {
        const size_t expert = choose_expert(p, token, number, shared.routing);
        const size_t of_gate = expert * p.weight.blocks + block;
        copy_gate_up(p.weight, p.weight, of_gate, of_gate + p.weight.blocks / 2, of, &arrived);
        if (p.next.codes)
            prefetch_share(p, expert);
        if (block == 0 && number == 0)
            note_experts(p, token, shared.routing);
    } else if (block == 0 && threadIdx.x == 0) {
        p.to.weights[token * (choices + 1) + choices] = sigmoid(p.shared_logit[token]);
    }
    wait_for_block_copies(&arrived, 0);
    let_next_begin();
    float of_rows[2][2];
    multiply_gate_up<IS_BF16>(p.weight, of, first, count, x, x_sums, of_rows);
    store_part(shared.parts[0], of_rows[0]);
    store_part(shared.parts[1], of_rows[1]);
    __syncthreads();
    if (warp == 0) {
        const float sum = add_parts(shared.parts[lane / FEW_BLOCK_ROWS], lane % FEW_BLOCK_ROWS);
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

/* A warp's atoms of the inner values of all experts of a token, in 8 bits. */
struct inner_atoms {
    uint8_t *bytes;              /* [experts, atoms of a part, EXPERT_GROUP], the shared one last */
    float2 *sums;                /* [experts, atoms of a part] */
    uint32_t first, count, most; /* atoms of the warp's part, and of the largest one */

    /* The lane's eight columns of an expert's atom. */
    __device__ void load(const expert_values &from, size_t token, uint32_t expert, uint32_t atom,
                         float v[8]) const {
        float4 halves[2] = {};
        if (expert <= from.choices && atom < count) {
            const float *row = from.inner + (token * (from.choices + 1) + expert) * from.size;
            const float4 *at =
                reinterpret_cast<const float4 *>(row + (first + atom) * EXPERT_GROUP) + threadIdx.x % 8 * 2;
            halves[0] = at[0];
            halves[1] = at[1];
        }
        memcpy(v, halves, sizeof halves);
    }

    /* An atom of all experts: eight lanes have one, and what comes next is under way. */
    __device__ void create_atom(const expert_values &from, size_t token, uint32_t atom) const {
        const uint32_t lane = threadIdx.x % WARP, quarter = lane % 8;
        float v[8], next[8];
        load(from, token, lane / 8, atom, next);
#pragma unroll 1
        for (uint32_t begin = 0; begin <= from.choices; begin += 4) {
            const uint32_t expert = begin + lane / 8, task = expert * most + atom;
            memcpy(v, next, sizeof v);
            load(from, token, expert + 4, atom, next);
            const byte_columns made = round_to_bytes<8>(v, 8);
            if (expert > from.choices)
                continue;
            *reinterpret_cast<uint2 *>(bytes + task * EXPERT_GROUP + (quarter % 4 * 2 + quarter / 4) * 8) =
                uint2{made.words[0], made.words[1]};
            if (quarter == 0)
                sums[task] = float2{made.scale, made.sum};
        }
    }

    __device__ void create(const expert_values &from, size_t token) const {
#pragma unroll 1
        for (uint32_t atom = 0; atom < most; atom++)
            create_atom(from, token, atom);
        __syncwarp();
    }
};

/* Each warp copies the block of one expert's matrix, the first one also the shared one's. */
__device__ inline void copy_chosen(const expert_outer &p, int expert, uint32_t block, uint8_t *to,
                                   copy_barrier *arrived) {
    const uint32_t warp = threadIdx.x / WARP, choices = p.from.choices, pitch = p.weight.atoms * ATOM_BYTES;
    const packed_block mine = {to + warp * pitch};
    announce_by_warp(arrived, warp < choices ? packed_block::bytes(p.weight) : 0);
    if (warp < choices)
        mine.copy(p.weight, (size_t)expert * p.weight.blocks + block, arrived);
}

__device__ inline void copy_shared(const expert_outer &p, uint32_t block, uint8_t *to,
                                   copy_barrier *arrived) {
    const packed_block shared = {to + p.from.choices * p.weight.atoms * ATOM_BYTES};
    if (threadIdx.x >= WARP)
        return;
    announce_by_warp(arrived, packed_block::bytes(p.shared));
    shared.copy(p.shared, block, arrived);
}

/* Output `row` of a block from its experts' sums: combine_experts, scale_rows of the shared one, and what
 * both are added to. */
__device__ inline float join_experts(const expert_outer &p, const float (*sums)[FEW_BLOCK_ROWS], uint32_t row,
                                     const float *weights, float residual) {
    const uint32_t choices = p.from.choices;
    float sum = sums[0][row] * weights[0];
    for (uint32_t t = 1; t < choices; t++)
        sum += sums[t][row] * weights[t];
    return residual + (sum + sums[choices][row] * weights[choices]);
}

/* Bytes of join_outputs' shared memory: blocks of weights, one or two stages of them, and the inner values.
 */
inline size_t outer_bytes(uint32_t atoms, uint32_t choices, unsigned stages) {
    const size_t of_warp = (atoms + EXPERT_WARPS - 1) / EXPERT_WARPS;
    return (choices + 1) *
           (stages * atoms * (size_t)ATOM_BYTES + EXPERT_WARPS * of_warp * (EXPERT_GROUP + sizeof(float2)));
}

/* Grid: [shares of the blocks of 16 outputs, tokens]. A block of threads has every gridDim.x-th of them;
 * while it multiplies one the next one comes. */
template <bool IS_BF16>
static __global__ void __launch_bounds__(EXPERT_THREADS, 2) join_outputs(GB_GRID_CONSTANT expert_outer p) {
    enum { MATRICES = MOST_CHOICES + 1, STAGES = 2 };
    GB_DYNAMIC_SHARED(uint8_t, memory);
    __shared__ copy_barrier arrived[STAGES];
    __shared__ float parts[MATRICES][EXPERT_WARPS][FEW_BLOCK_ROWS], sums[MATRICES][FEW_BLOCK_ROWS];
    __shared__ float weights[MATRICES];
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, choices = p.from.choices;
    const uint32_t matrices = choices + 1, pitch = p.weight.atoms * ATOM_BYTES;
    const uint32_t stages = blockIdx.x + gridDim.x < p.weight.blocks ? 2 : 1;
    const size_t token = blockIdx.y;
    inner_atoms inner;
    inner.first = warp_begin(p.weight.atoms, warp);
    inner.count = warp_begin(p.weight.atoms, warp + 1) - inner.first;
    inner.most = (p.weight.atoms + EXPERT_WARPS - 1) / EXPERT_WARPS;
    inner.bytes = memory + stages * matrices * pitch + warp * matrices * inner.most * EXPERT_GROUP;
    inner.sums = reinterpret_cast<float2 *>(memory + stages * matrices * pitch +
                                            EXPERT_WARPS * matrices * inner.most * EXPERT_GROUP) +
                 warp * matrices * inner.most;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++)
            begin_barrier(&arrived[s], EXPERT_WARPS + 1);
        finish_barriers();
    }
    __syncthreads();
    copy_shared(p, blockIdx.x, memory, &arrived[0]);
    wait_alone();
    const int expert = warp < choices ? p.from.experts[token * choices + warp] : 0;
    copy_chosen(p, expert, blockIdx.x, memory, &arrived[0]);
    if (threadIdx.x < matrices)
        weights[threadIdx.x] = p.from.weights[token * matrices + threadIdx.x];
    inner.create(p.from, token);
    uint32_t used = 0;
    for (uint32_t block = blockIdx.x; block < p.weight.blocks; block += gridDim.x, used++) {
        const uint32_t next = block + gridDim.x, stage = used % STAGES;
        const size_t y = token * p.outputs + block * FEW_BLOCK_ROWS + threadIdx.x;
        const float residual = threadIdx.x < FEW_BLOCK_ROWS ? p.residual[y] : 0.0f;
        if (next < p.weight.blocks) {
            copy_shared(p, next, memory + (1 - stage) * matrices * pitch, &arrived[1 - stage]);
            copy_chosen(p, expert, next, memory + (1 - stage) * matrices * pitch, &arrived[1 - stage]);
        }
        wait_for_block_copies(&arrived[stage], used / STAGES % 2);
        if (next >= p.weight.blocks)
            let_next_begin();
#pragma unroll 3
        for (uint32_t e = 0; e < matrices; e++) {
            const packed_block of = {memory + (stage * matrices + e) * pitch};
            float of_rows[2] = {};
#pragma unroll 1
            for (uint32_t i = 0; i < inner.count; i++) { /* one or two, whose chains are added */
                const uint32_t task = e * inner.most + i;
                const uint4 x =
                    *reinterpret_cast<const uint4 *>(inner.bytes + task * EXPERT_GROUP + lane % 4 * 16);
                float of_atom[2];
                of.multiply<IS_BF16>(inner.first + i, p.weight, x, inner.sums[task], of_atom);
                of_rows[0] += of_atom[0];
                of_rows[1] += of_atom[1];
            }
            store_part(parts[e], of_rows);
        }
        __syncthreads();
        if (threadIdx.x < matrices * FEW_BLOCK_ROWS)
            sums[threadIdx.x / FEW_BLOCK_ROWS][threadIdx.x % FEW_BLOCK_ROWS] =
                add_parts(parts[threadIdx.x / FEW_BLOCK_ROWS], threadIdx.x % FEW_BLOCK_ROWS);
        __syncthreads();
        if (threadIdx.x < FEW_BLOCK_ROWS)
            p.y[y] = join_experts(p, sums, threadIdx.x, weights, residual);
    }
}

} // namespace gb_cuda

#endif
