/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of packed matrices (gb_packing_fragments) with few prepared rows, at the speed at which weights
 * come from memory. A block of threads goes through blocks of 16 outputs; the sum over k is cut into parts,
 * one for each warp, each a run of whole groups. A warp keeps copies of its next weights under way, which
 * begin before the kernels before it end. For each group of a part in the order of k,
 *
 *     y = y + (bias - offset * scale) * xsum, then y = y + scale * sum.
 *
 * Of rows in 8 bits, sum is the input's scale times the integer sum of codes and rounded inputs, and xsum its
 * scale times their sum. Of rows in bfloat16, sum is that of codes times inputs and xsum that of the inputs,
 * where codes of 4 bits are q + 128, which bfloat16 holds in its low bits, and those of 8 bits less their
 * center. Then the parts are added in their order, FEW_PARTS to a slice, and the slices. How many slices
 * there are depends on the matrix's sizes alone, so that an output has the same bits whatever the other rows
 * and matrices of the launch are.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_FEW_ROWS_CUH
#define GUMBEL_RUN_CUDA_DEVICE_FEW_ROWS_CUH

#include "run/cuda/device/copy_ring.cuh"
#include "run/cuda/device/prepared.cuh"

namespace gb_cuda {

enum {
    FEW_PARTS = 8,
    FEW_THREADS = FEW_PARTS * WARP,
    FEW_BLOCK_ROWS = 16,
    FEW_COLUMNS = 8,
    FEW_STAGES = 3,
    CHUNK_BYTES = 64 /* of a prepared row: a unit in bfloat16, two in 8 bits */
};

/* One matrix of a launch. */
struct few_product {
    const uint8_t *codes, *scales, *biases; /* biases: where there are some */
    float *y;                               /* [rows, outputs] */
    uint32_t outputs;
    uint32_t blocks_end; /* blocks of 16 outputs of this matrix and those before it */
};

/* Matrices of one format and one width that meet the same rows. */
struct few_products {
    few_product of[GB_CUDA_MOST_JOINED];
    uint32_t count;
    uint32_t code_bytes, scale_bytes; /* of a block of 16 rows in its plane */
    float offset;                     /* what the codes that are multiplied are above the format's */
    bool has_biases;
    uint32_t atoms; /* few_shape's, of a row */
    prepared_rows x;
    uint32_t rows, tile_rows; /* blockIdx.z has rows z * tile_rows .. */
    const int32_t *expert;    /* [rows]: the tile's, of whose outputs it takes; or NULL */
    uint32_t x_reuse;         /* row i is made of row i / x_reuse of x */
    float *partial;           /* [slices, rows, blocks, 16], where there is more than one slice */
    uint32_t *arrivals;       /* [gridDim.z, gridDim.x] zeros, as it leaves them */
};

/* What is known of a format when the kernel is compiled. A step is what a packed block has in 512 bytes, an
 * atom a run of columns of whole steps and groups. A stage of the ring has up to ATOMS of them: their codes,
 * scales and biases. */
template <bool IN_BYTES, int BITS, int GROUP>
struct few_shape {
    static constexpr int STEP_COLUMNS = 256 / BITS, LEAST_COLUMNS = IN_BYTES ? 2 * UNIT : STEP_COLUMNS;
    static constexpr int ATOM_COLUMNS = GROUP > LEAST_COLUMNS ? GROUP : LEAST_COLUMNS;
    static constexpr int ATOM_STEPS = ATOM_COLUMNS / STEP_COLUMNS;
    static constexpr int ATOM_UNITS = ATOM_COLUMNS / UNIT;
    static constexpr int ATOM_GROUPS = GROUP ? ATOM_COLUMNS / GROUP : 1;
    static constexpr int GROUP_UNITS = ATOM_UNITS / ATOM_GROUPS;
    static constexpr int STEP_UNITS = STEP_COLUMNS / UNIT;
    static constexpr int ATOMS = ATOM_STEPS < 4 ? 4 / ATOM_STEPS : 1;
    static constexpr int STEP_BYTES = 512, GROUP_BYTES = 32; /* GROUP_BYTES: 16 scales or biases */
    static constexpr int CODE_BYTES = ATOMS * ATOM_STEPS * STEP_BYTES;
    static constexpr int SCALE_BYTES = ATOMS * ATOM_GROUPS * GROUP_BYTES;
    static constexpr int STAGE_BYTES = CODE_BYTES + 2 * SCALE_BYTES;
    /* Of the inputs: a row's bytes and a row's numbers of an atom. */
    static constexpr int ATOM_CHUNKS = IN_BYTES ? ATOM_UNITS / 2 : ATOM_UNITS;
    static constexpr int SUM_FLOATS = IN_BYTES ? 2 : 1; /* of a group: its scale, and xsum */
};

/* Where things are in the shared memory of a block of threads, in bytes; the rings come first. */
struct few_memory {
    uint32_t partial, sums, x, size;
};

template <typename Shape>
__host__ __device__ inline few_memory few_memory_of(uint32_t slice_atoms, uint32_t tiles, uint32_t columns) {
    few_memory m;
    m.partial = FEW_PARTS * FEW_STAGES * Shape::STAGE_BYTES;
    m.sums = m.partial + 2 * FEW_PARTS * tiles * 4 * WARP * (uint32_t)sizeof(float);
    m.x = m.sums + slice_atoms * Shape::ATOM_GROUPS * Shape::SUM_FLOATS * tiles * FEW_COLUMNS *
                       (uint32_t)sizeof(float);
    m.size = m.x + slice_atoms * Shape::ATOM_CHUNKS * columns * CHUNK_BYTES;
    return m;
}

__host__ __device__ inline uint32_t few_part_begin(uint32_t atoms, uint32_t part, uint32_t parts) {
    return (uint32_t)((uint64_t)atoms * part / parts);
}

/* The k-th pair of a lane's eight codes, of columns k and k + 4, as bfloat16. */
template <int BITS>
__device__ inline uint32_t code_pair(const uint32_t *w, int k, float center) {
    if (BITS == 4)
        return mask_and_set<0x000f000fu, 0x43004300u>(w[0] >> (4 * k));
    const float first = gb_float_from_bits((w[0] >> (8 * k) & 0xffu) | 0x4b000000u) - center;
    const float second = gb_float_from_bits((w[1] >> (8 * k) & 0xffu) | 0x4b000000u) - center;
    return gb_float_bits(first) >> 16 | (gb_float_bits(second) & 0xffff0000u);
}

/* A lane's eight codes as bytes: those of even columns, and those of odd ones. */
template <int BITS>
__device__ inline void code_bytes(const uint32_t *w, uint32_t *even, uint32_t *odd) {
    *even = BITS == 4 ? w[0] & 0x0f0f0f0fu : even_bytes(w[0], w[1]);
    *odd = BITS == 4 ? w[0] >> 4 & 0x0f0f0f0fu : odd_bytes(w[0], w[1]);
}

template <bool IN_BYTES, int BITS, int GROUP, bool IS_BF16, int TILES>
struct few_rows {
    typedef few_shape<IN_BYTES, BITS, GROUP> shape;

    const few_products &p;
    uint32_t lane, warp;
    uint32_t first_atom, end_atom;   /* of the warp's part */
    uint32_t first_block, end_block; /* of the block of threads: every gridDim.x-th */
    uint32_t slice_atom;             /* the first one of the slice */
    uint32_t columns;                /* rows of x in this tile */
    uint32_t expert_blocks;          /* before the expert's */
    uint8_t *stages;                 /* [FEW_STAGES, STAGE_BYTES], the warp's */
    const uint8_t *x[TILES];         /* the lane's bytes of the first chunk of the warp's part */
    uint32_t chunk_bytes;            /* from one chunk of the same row to the next */
    const float *sums;               /* [groups of the part, TILES * FEW_COLUMNS, SUM_FLOATS], the lane's */
    copy_ring<FEW_STAGES> ring;
    uint32_t block, atom, product; /* what comes into the ring next */
    const uint8_t *codes_from, *scales_from, *biases_from;

    __device__ explicit few_rows(const few_products &products) : p(products) {}

    /* ---- Copying ---- */

    /* Turns to the warp's part of a block of outputs. */
    __device__ void begin_block(uint32_t of_block) {
        block = of_block;
        atom = first_atom;
        if (block >= end_block)
            return;
        while (block >= p.of[product].blocks_end)
            product++;
        const few_product &from = p.of[product];
        const size_t number = block - (product ? p.of[product - 1].blocks_end : 0) + expert_blocks;
        const size_t scale =
            number * p.scale_bytes + (GROUP ? first_atom * (shape::ATOM_GROUPS * shape::GROUP_BYTES) : 0);
        codes_from =
            from.codes + number * p.code_bytes + first_atom * (shape::ATOM_STEPS * shape::STEP_BYTES);
        scales_from = from.scales + scale;
        biases_from = from.biases + scale;
    }

    /* Begins to fill the next stage; there may be nothing left. */
    __device__ void copy_stage() {
        if (block < end_block && first_atom < end_atom) {
            const uint32_t left = end_atom - atom, count = left < shape::ATOMS ? left : shape::ATOMS;
            const uint32_t codes = count * (shape::ATOM_STEPS * shape::STEP_BYTES);
            const uint32_t scales = (GROUP ? count : 1) * (shape::ATOM_GROUPS * shape::GROUP_BYTES);
            uint8_t *to = stages + ring.filling * shape::STAGE_BYTES;
            ring.begin(codes + scales + (p.has_biases ? scales : 0));
            ring.piece(to, codes_from, codes);
            ring.piece(to + shape::CODE_BYTES, scales_from, scales);
            if (p.has_biases)
                ring.piece(to + shape::CODE_BYTES + shape::SCALE_BYTES, biases_from, scales);
            codes_from += codes;
            scales_from += GROUP ? scales : 0;
            biases_from += GROUP ? scales : 0;
            atom += count;
            if (atom == end_atom)
                begin_block(block + gridDim.x);
        }
        ring.end();
    }

    /* ---- Multiplying ---- */

    /* Scales or biases of the lane's rows r and r + 8. */
    __device__ void widen(const uint8_t *from, float value[2]) const {
        const uint32_t both = *reinterpret_cast<const uint32_t *>(from);
        value[0] = IS_BF16 ? low_bf16(both) : low_half(both);
        value[1] = IS_BF16 ? high_bf16(both) : high_half(both);
    }

    /* y += a group of a column tile. of_group: the scales and sums of its inputs; sum: of codes and inputs.
     */
    __device__ void add_group(const float scale[2], const float bias[2], const float *of_group,
                              const float sum[4], float y[4]) const {
        if (IN_BYTES) {
            const float4 f = *reinterpret_cast<const float4 *>(of_group);
            for (int i = 0; i < 4; i++) {
                y[i] = fmaf(bias[i / 2], i % 2 ? f.w : f.y, y[i]);
                y[i] = fmaf(scale[i / 2], (i % 2 ? f.z : f.x) * sum[i], y[i]);
            }
        } else {
            const float2 f = *reinterpret_cast<const float2 *>(of_group);
            for (int i = 0; i < 4; i++) {
                y[i] = fmaf(bias[i / 2], i % 2 ? f.y : f.x, y[i]);
                y[i] = fmaf(scale[i / 2], sum[i], y[i]);
            }
        }
    }

    /* The sums of the group of an atom's units u .., whose codes are w, with inputs in 8 bits from `from` on.
     */
    __device__ void multiply_bytes(const uint32_t w[shape::ATOM_STEPS][4], int u, const uint8_t *from,
                                   float sum[4]) const {
        int32_t acc[4] = {0, 0, 0, 0};
        uint4 b = {0, 0, 0, 0};
#pragma unroll
        for (int i = u; i < u + shape::GROUP_UNITS; i++) {
            const uint32_t *of_r = w[i / shape::STEP_UNITS] + i % shape::STEP_UNITS * 2;
            uint32_t a[4];
            code_bytes<BITS>(of_r, &a[0], &a[2]);
            code_bytes<BITS>(of_r + BITS / 4, &a[1], &a[3]);
            if (i == u || i % 2 == 0)
                b = *reinterpret_cast<const uint4 *>(from + i / 2 * chunk_bytes);
            multiply_add_bytes(acc, a, i % 2 ? b.z : b.x, i % 2 ? b.w : b.y, acc);
        }
        for (int i = 0; i < 4; i++)
            sum[i] = (float)acc[i];
    }

    /* The same with inputs in bfloat16. */
    __device__ void multiply_bf16(const uint32_t w[shape::ATOM_STEPS][4], int u, const uint8_t *from,
                                  float sum[4]) const {
        const float center = 8388608.0f + p.offset;
        for (int i = 0; i < 4; i++)
            sum[i] = 0;
#pragma unroll
        for (int i = u; i < u + shape::GROUP_UNITS; i++) {
            const uint32_t *of_r = w[i / shape::STEP_UNITS] + i % shape::STEP_UNITS * 2;
            const uint32_t *of_r8 = of_r + BITS / 4;
            const uint4 b = *reinterpret_cast<const uint4 *>(from + i * chunk_bytes);
#pragma unroll
            for (int k = 0; k < 4; k += 2) {
                const uint32_t a[4] = {code_pair<BITS>(of_r, k, center), code_pair<BITS>(of_r8, k, center),
                                       code_pair<BITS>(of_r, k + 1, center),
                                       code_pair<BITS>(of_r8, k + 1, center)};
                multiply_add(sum, a, k ? b.z : b.x, k ? b.w : b.y);
            }
        }
    }

    /* The i-th atom of a stage. codes, scales: the lane's in the stage; inputs: bytes from x on. */
    __device__ void add_atom(const uint8_t *codes, const uint8_t *scales, int i, uint32_t inputs,
                             const float *of_atom, float y[TILES][4]) const {
        uint32_t w[shape::ATOM_STEPS][4];
#pragma unroll
        for (int s = 0; s < shape::ATOM_STEPS; s++) {
            const uint4 loaded =
                *reinterpret_cast<const uint4 *>(codes + (i * shape::ATOM_STEPS + s) * shape::STEP_BYTES);
            w[s][0] = loaded.x;
            w[s][1] = loaded.y;
            w[s][2] = loaded.z;
            w[s][3] = loaded.w;
        }
#pragma unroll
        for (int g = 0; g < shape::ATOM_GROUPS; g++) {
            const uint8_t *of_group =
                scales + (GROUP ? (i * shape::ATOM_GROUPS + g) * shape::GROUP_BYTES : 0);
            float scale[2], bias[2] = {0, 0}, sum[4];
            widen(of_group, scale);
            if (p.has_biases)
                widen(of_group + shape::SCALE_BYTES, bias);
            for (int half = 0; half < 2; half++)
                if (BITS == 4 || IN_BYTES)
                    bias[half] = fmaf(-p.offset, scale[half], bias[half]);
#pragma unroll
            for (int c = 0; c < TILES; c++) {
                if (IN_BYTES)
                    multiply_bytes(w, g * shape::GROUP_UNITS, x[c] + inputs, sum);
                else
                    multiply_bf16(w, g * shape::GROUP_UNITS, x[c] + inputs, sum);
                add_group(scale, bias, of_atom + (g * TILES + c) * FEW_COLUMNS * shape::SUM_FLOATS, sum,
                          y[c]);
            }
        }
    }

    /* The warp's part of a block of outputs. */
    __device__ void add_part(float y[TILES][4]) {
        constexpr uint32_t ATOM_SUMS = shape::ATOM_GROUPS * TILES * FEW_COLUMNS * shape::SUM_FLOATS;
        const uint32_t atom_bytes = shape::ATOM_CHUNKS * chunk_bytes;
        uint32_t inputs = 0;
        const float *of_atom = sums;
        for (uint32_t a = first_atom; a < end_atom; a += shape::ATOMS) {
            const uint8_t *stage = stages + ring.using_now * shape::STAGE_BYTES, *codes = stage + lane * 16;
            const uint8_t *scales = stage + shape::CODE_BYTES + lane / 4 * 4;
            ring.wait();
            const bool is_full = a + shape::ATOMS <= end_atom;
            if (is_full) {
#pragma unroll
                for (int i = 0; i < shape::ATOMS; i++)
                    add_atom(codes, scales, i, inputs + i * atom_bytes, of_atom + i * ATOM_SUMS, y);
            } else {
                for (uint32_t i = 0; a + i < end_atom; i++)
                    add_atom(codes, scales, (int)i, inputs + i * atom_bytes, of_atom + i * ATOM_SUMS, y);
            }
            inputs += shape::ATOMS * atom_bytes;
            of_atom += shape::ATOMS * ATOM_SUMS;
            ring.next();
            __syncwarp();
            copy_stage();
        }
    }

    /* Where the lane's inputs are: [chunks, columns, CHUNK_BYTES] and [groups, TILES * FEW_COLUMNS,
     * SUM_FLOATS] of the slice. Columns that are not there have the last one's, and outputs that nobody
     * stores. */
    __device__ void find_inputs(const uint8_t *of_slice, const float *sums_of_slice) {
        const uint32_t before = first_atom - slice_atom;
        chunk_bytes = columns * CHUNK_BYTES;
        for (uint32_t c = 0; c < TILES; c++) {
            const uint32_t column = c * FEW_COLUMNS + lane / 4,
                           there = column < columns ? column : columns - 1;
            x[c] = of_slice + before * shape::ATOM_CHUNKS * chunk_bytes + there * CHUNK_BYTES + lane % 4 * 16;
        }
        sums = sums_of_slice +
               (before * shape::ATOM_GROUPS * TILES * FEW_COLUMNS + lane % 4 * 2) * shape::SUM_FLOATS;
    }
};

/* Copies the tile's rows of x into shared memory, with the sums of their groups. */
template <typename Rows>
__device__ inline void load_rows(const Rows &rows, uint32_t slice_atoms, size_t first_row, uint8_t *x,
                                 float *sums, uint32_t width) {
    typedef typename Rows::shape shape;
    const few_products &p = rows.p;
    const uint32_t pieces = slice_atoms * shape::ATOM_CHUNKS * 4, groups = slice_atoms * shape::ATOM_GROUPS;
    const size_t row_pieces = p.atoms * shape::ATOM_CHUNKS * 4, row_groups = p.atoms * shape::ATOM_GROUPS;
    for (uint32_t c = 0; c < rows.columns; c++) {
        const uint4 *from = reinterpret_cast<const uint4 *>(p.x.values) +
                            (first_row + c) / p.x_reuse * row_pieces +
                            rows.slice_atom * (shape::ATOM_CHUNKS * 4);
        for (uint32_t q = threadIdx.x; q < pieces; q += FEW_THREADS)
            *reinterpret_cast<uint4 *>(x + (q / 4 * rows.columns + c) * CHUNK_BYTES + q % 4 * 16) = from[q];
    }
    for (uint32_t e = threadIdx.x; e < groups * width; e += FEW_THREADS) {
        const uint32_t c = e % width;
        const size_t g = rows.slice_atom * shape::ATOM_GROUPS + e / width;
        float sum = 0, scale = 0;
        if (c < rows.columns && shape::SUM_FLOATS == 2) {
            const float *of_group = p.x.sums + ((first_row + c) / p.x_reuse * row_groups + g) * 2;
            scale = of_group[0];
            sum = of_group[1];
        } else if (c < rows.columns) {
            const float *halves =
                p.x.sums + ((first_row + c) / p.x_reuse * p.x.units + g * shape::GROUP_UNITS) * 2;
            for (int i = 0; i < shape::GROUP_UNITS * 2; i++)
                sum += halves[i];
        }
        if (shape::SUM_FLOATS == 2)
            sums[2 * e] = scale;
        sums[shape::SUM_FLOATS * e + shape::SUM_FLOATS - 1] = sum;
    }
}

/* Where output `in_block` of a block, for a row, is stored. */
__device__ inline float *few_output(const few_products &p, uint32_t block, uint32_t in_block, size_t row) {
    uint32_t m = 0;
    while (block >= p.of[m].blocks_end)
        m++;
    const uint32_t before = m ? p.of[m - 1].blocks_end : 0;
    return p.of[m].y + row * p.of[m].outputs + (block - before) * FEW_BLOCK_ROWS + in_block;
}

/* Adds the slices of the block's outputs, in the block of threads that comes last. */
template <typename Rows>
__device__ inline void add_slices(const Rows &rows, size_t first_row) {
    const few_products &p = rows.p;
    __shared__ bool is_last;
    uint32_t *arrived = p.arrivals + blockIdx.z * gridDim.x + blockIdx.x;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        is_last = atomicAdd(arrived, 1u) == gridDim.y - 1;
        if (is_last)
            *arrived = 0;
    }
    __syncthreads();
    if (!is_last)
        return;
    __threadfence();
    const uint32_t all = p.of[p.count - 1].blocks_end;
    const uint32_t here = (rows.end_block - rows.first_block + gridDim.x - 1) / gridDim.x * FEW_BLOCK_ROWS;
    const size_t slice = (size_t)p.rows * all * FEW_BLOCK_ROWS;
    for (uint32_t e = threadIdx.x; e < here * rows.columns; e += FEW_THREADS) {
        const size_t row = first_row + e / here;
        const uint32_t block = rows.first_block + e % here / FEW_BLOCK_ROWS * gridDim.x,
                       in_block = e % FEW_BLOCK_ROWS;
        const volatile float *from = p.partial + (row * all + block) * FEW_BLOCK_ROWS + in_block;
        float sum = 0;
        for (uint32_t s = 0; s < gridDim.y; s++)
            sum += from[s * slice];
        *few_output(p, block, in_block, row) = sum;
    }
}

/* Grid: [ranges of the blocks of all matrices, slices, tiles of rows]. */
template <bool IN_BYTES, int BITS, int GROUP, bool IS_BF16, int TILES>
static __global__ void __launch_bounds__(FEW_THREADS, TILES == 1 ? 3 : 1)
    multiply_few(GB_GRID_CONSTANT few_products p) {
    typedef few_rows<IN_BYTES, BITS, GROUP, IS_BF16, TILES> rows_type;
    GB_DYNAMIC_SHARED(uint8_t, shared);
    __shared__ copy_barrier barriers[FEW_PARTS][FEW_STAGES];
    rows_type rows(p);
    rows.lane = threadIdx.x % WARP;
    rows.warp = threadIdx.x / WARP;
    const uint32_t parts = gridDim.y * FEW_PARTS, part = blockIdx.y * FEW_PARTS + rows.warp;
    const uint32_t blocks = p.of[p.count - 1].blocks_end;
    rows.first_atom = few_part_begin(p.atoms, part, parts);
    rows.end_atom = few_part_begin(p.atoms, part + 1, parts);
    rows.slice_atom = few_part_begin(p.atoms, blockIdx.y * FEW_PARTS, parts);
    const uint32_t slice_atoms =
        few_part_begin(p.atoms, (blockIdx.y + 1) * FEW_PARTS, parts) - rows.slice_atom;
    rows.first_block = blockIdx.x;
    rows.end_block = blocks;
    const size_t first_row = (size_t)blockIdx.z * p.tile_rows;
    rows.columns = p.rows - first_row < p.tile_rows ? (uint32_t)(p.rows - first_row) : p.tile_rows;
    const few_memory memory = few_memory_of<typename rows_type::shape>(slice_atoms, TILES, rows.columns);
    float *sums = reinterpret_cast<float *>(shared + memory.sums);
    rows.stages = shared + rows.warp * FEW_STAGES * rows_type::shape::STAGE_BYTES;
    rows.find_inputs(shared + memory.x, sums);
    rows.product = 0;
    rows.expert_blocks = 0;
    rows.ring.create(barriers[rows.warp], rows.lane);
    if (p.expert) {
        wait_for_earlier();
        rows.expert_blocks = (uint32_t)p.expert[first_row] * blocks;
    }
    rows.begin_block(rows.first_block);
    for (uint32_t s = 0; s < FEW_STAGES; s++)
        rows.copy_stage();
    if (!p.expert)
        wait_for_earlier();
    load_rows(rows, slice_atoms, first_row, shared + memory.x, sums, TILES * FEW_COLUMNS);
    __syncthreads();
    float *partial = reinterpret_cast<float *>(shared + memory.partial);
    bool is_odd = false;
    for (uint32_t block = rows.first_block; block < rows.end_block; block += gridDim.x) {
        float y[TILES][4] = {};
        rows.add_part(y);
        float *of_block = partial + is_odd * (FEW_PARTS * TILES * 4 * WARP);
        is_odd = !is_odd;
        for (int c = 0; c < TILES; c++)
            for (int i = 0; i < 4; i++)
                of_block[((rows.warp * TILES + c) * 4 + i) * WARP + rows.lane] = y[c][i];
        __syncthreads();
        const uint32_t e = threadIdx.x, of_lane = e % WARP, i = e / WARP % 4, c = e / (4 * WARP);
        const uint32_t column = c * FEW_COLUMNS + of_lane % 4 * 2 + i % 2, in_block = of_lane / 4 + i / 2 * 8;
        if (c >= TILES || column >= rows.columns)
            continue;
        float sum = 0;
        for (int q = 0; q < FEW_PARTS; q++)
            sum += of_block[(q * TILES + c) * 4 * WARP + e % (4 * WARP)];
        const size_t row = first_row + column, partial_row = blockIdx.y * (size_t)p.rows + row;
        if (gridDim.y > 1)
            p.partial[(partial_row * blocks + block) * FEW_BLOCK_ROWS + in_block] = sum;
        else
            *few_output(p, block, in_block, row) = sum;
    }
    if (gridDim.y > 1)
        add_slices(rows, first_row);
}

} // namespace gb_cuda

#endif
