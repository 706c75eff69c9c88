/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of packed matrices (gb_packing_fragments) with few prepared rows, at the speed at which weights
 * come from memory. A block of threads goes through blocks of 16 outputs; the sum over k is cut into parts,
 * one for each warp, each a run of whole groups. A warp keeps a ring of copies of its next weights under way;
 * they begin before the kernels before it end. With codes q (of 4 bits: q + 128, which bfloat16 holds in its
 * low bits; of 8 bits: less their center), xsum the sum of a group's inputs and sum its products,
 *
 *     y = y + (bias - offset * scale) * xsum, then y = y + scale * sum,
 *
 * for each group of a part in the order of k; then the parts are added in their order, FEW_PARTS to a slice,
 * and the slices. How many slices there are depends on the matrix's sizes alone, so that an output has the
 * same bits whatever the other rows and matrices of the launch are.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_FEW_ROWS_CUH
#define GUMBEL_RUN_CUDA_DEVICE_FEW_ROWS_CUH

#include "run/cuda/device/copy_groups.cuh"
#include "run/cuda/device/prepared.cuh"

namespace gb_cuda {

enum {
    FEW_PARTS = 8,
    FEW_THREADS = FEW_PARTS * WARP,
    FEW_BLOCK_ROWS = 16,
    FEW_COLUMNS = 8,
    MOST_PRODUCTS = 6
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
    few_product of[MOST_PRODUCTS];
    uint32_t count;
    uint32_t code_bytes, scale_bytes; /* of a block of 16 rows in its plane */
    float offset;                     /* what the codes that are multiplied are above the format's */
    bool has_biases;
    uint32_t atoms; /* few_shape's, of a row */
    prepared_rows x;
    uint32_t rows, tile_rows; /* blockIdx.z has rows z * tile_rows .. */
    const int32_t *expert;    /* [rows]: the tile's, of whose rows only it takes; or NULL */
    uint32_t x_reuse;         /* row i is made of row i / x_reuse of x */
    float *partial;           /* [slices, rows, blocks, 16], where there is more than one slice */
    uint32_t *arrivals;       /* [gridDim.z, gridDim.x] zeros, as it leaves them */
};

/* What is known of a format when the kernel is compiled. An atom is a run of columns of whole groups and
 * whole steps, a step what a packed block has in 512 bytes. A stage of the ring has one or two of them: their
 * codes, then for each pair of rows r, r + 8 and each group a word of scales and one of biases. */
template <int BITS, int GROUP>
struct few_shape {
    static constexpr int STEP_COLUMNS = 256 / BITS;
    static constexpr int ATOM_COLUMNS = GROUP > STEP_COLUMNS ? GROUP : STEP_COLUMNS;
    static constexpr int ATOM_STEPS = ATOM_COLUMNS / STEP_COLUMNS;
    static constexpr int ATOM_GROUPS = GROUP ? ATOM_COLUMNS / GROUP : 1;
    static constexpr int ATOM_UNITS = ATOM_COLUMNS / UNIT;
    static constexpr int GROUP_UNITS = ATOM_UNITS / ATOM_GROUPS;
    static constexpr int ATOMS = ATOM_STEPS == 1 ? 2 : 1;
    static constexpr int STEPS = ATOMS * ATOM_STEPS, STEP_UNITS = STEP_COLUMNS / UNIT;
    static constexpr int GROUPS = ATOMS * ATOM_GROUPS, UNITS = ATOMS * ATOM_UNITS;
    static constexpr int STEP_BYTES = 512, GROUP_BYTES = 32; /* GROUP_BYTES: 16 scales or biases */
    static constexpr int CODE_BYTES = STEPS * STEP_BYTES;
    static constexpr int STAGE_BYTES = CODE_BYTES + 2 * GROUPS * GROUP_BYTES;
    static constexpr int WORDS = GROUPS * 16; /* of scales and biases */
    static constexpr int LANE_WORDS = (WORDS + WARP - 1) / WARP;
};

/* The k-th pair of a lane's eight codes, of columns k and k + 4, as bfloat16. */
template <int BITS>
__device__ inline uint32_t code_pair(const uint32_t *w, int k, float center) {
    if (BITS == 4)
        return mask_and_set<0x000f000fu, 0x43004300u>(w[0] >> (4 * k));
    const float first = gb_float_from_bits((w[0] >> (8 * k) & 0xffu) | 0x4b000000u) - center;
    const float second = gb_float_from_bits((w[1] >> (8 * k) & 0xffu) | 0x4b000000u) - center;
    return gb_float_bits(first) >> 16 | (gb_float_bits(second) & 0xffff0000u);
}

template <int BITS, int GROUP, bool IS_BF16, int TILES, int STAGES>
struct few_rows {
    typedef few_shape<BITS, GROUP> shape;

    const few_products &p;
    uint32_t lane, warp;
    uint32_t first_atom, end_atom;   /* of the warp's part */
    uint32_t first_block, end_block; /* of the block of threads */
    uint32_t slice_atom;             /* the first one of the slice */
    uint32_t columns;                /* rows of x in this tile */
    uint32_t expert_blocks;          /* before the expert's */
    shared_place ring;               /* [STAGES, STAGE_BYTES], the warp's */
    shared_place x;                  /* [units of the slice, columns, 64] */
    shared_place sums;               /* [groups of the slice, TILES * FEW_COLUMNS] floats */

    /* What comes into the ring next: the lane's bytes of it. */
    const uint8_t *codes_from, *words_from[shape::LANE_WORDS];
    uint32_t block, atom, product;

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
        codes_from = from.codes + number * p.code_bytes +
                     first_atom * (shape::ATOM_STEPS * shape::STEP_BYTES) + lane * 16;
        for (int i = 0; i < shape::LANE_WORDS; i++) {
            const uint32_t word = lane + i * WARP, in_plane = word % (shape::WORDS / 2);
            const uint8_t *plane = word < shape::WORDS / 2 ? from.scales : from.biases;
            words_from[i] = plane + number * p.scale_bytes +
                            (GROUP ? first_atom * shape::ATOM_GROUPS * shape::GROUP_BYTES + in_plane * 4
                                   : in_plane % 8 * 4);
        }
    }

    /* Begins to copy the next stage into a place of the ring; there may be none left. */
    __device__ void copy_stage(shared_place to) {
        if (block < end_block && first_atom < end_atom) {
            const bool is_whole = shape::ATOMS == 1 || atom + 1 < end_atom;
#pragma unroll
            for (int s = 0; s < shape::STEPS; s++)
                if (s < shape::ATOM_STEPS || is_whole)
                    copy_async_16(to + s * shape::STEP_BYTES + lane * 16, codes_from + s * shape::STEP_BYTES);
#pragma unroll
            for (int i = 0; i < shape::LANE_WORDS; i++) {
                const uint32_t word = lane + i * WARP, in_plane = word % (shape::WORDS / 2);
                const uint32_t group = in_plane / 8, is_bias = word / (shape::WORDS / 2);
                if (word < shape::WORDS && (group < shape::ATOM_GROUPS || is_whole) &&
                    (!is_bias || p.has_biases))
                    copy_async_4(to + shape::CODE_BYTES +
                                     ((in_plane % 8 * shape::GROUPS + group) * 2 + is_bias) * 4,
                                 words_from[i]);
                words_from[i] += GROUP ? shape::GROUPS * shape::GROUP_BYTES : 0;
            }
            codes_from += shape::CODE_BYTES;
            atom += shape::ATOMS;
            if (atom >= end_atom)
                begin_block(block + 1);
        }
        end_copy_group();
    }

    /* ---- Multiplying ---- */

    /* Scales and biases of the lane's rows r and r + 8; of what is not there zeros. */
    __device__ void load_affine(shared_place stage, bool is_whole, float scale[shape::GROUPS][2],
                                float bias[shape::GROUPS][2]) const {
        uint32_t words[shape::GROUPS][2];
        const shared_place from = stage + shape::CODE_BYTES + lane / 4 * shape::GROUPS * 8;
#pragma unroll
        for (int g = 0; g < shape::GROUPS; g++) {
            const uint2 both = load_8(from + 8 * g);
            const bool is_there = g < shape::ATOM_GROUPS || is_whole;
            words[g][0] = is_there ? both.x : 0;
            words[g][1] = is_there && p.has_biases ? both.y : 0;
        }
#pragma unroll
        for (int g = 0; g < shape::GROUPS; g++)
            if (IS_BF16) {
                scale[g][0] = low_bf16(words[g][0]);
                scale[g][1] = high_bf16(words[g][0]);
                bias[g][0] = low_bf16(words[g][1]);
                bias[g][1] = high_bf16(words[g][1]);
            } else {
                scale[g][0] = low_half(words[g][0]);
                scale[g][1] = high_half(words[g][0]);
                bias[g][0] = low_half(words[g][1]);
                bias[g][1] = high_half(words[g][1]);
            }
#pragma unroll
        for (int g = 0; BITS == 4 && g < shape::GROUPS; g++)
            for (int half = 0; half < 2; half++)
                bias[g][half] = fmaf(-p.offset, scale[g][half], bias[g][half]);
    }

    /* The sums of a stage's groups without their scales. number: of its first atom in the slice. Where the
     * second one is missing the first one stands in for its inputs. */
    __device__ void multiply_stage(shared_place stage, uint32_t number, bool is_whole,
                                   float group[shape::GROUPS][TILES][4]) const {
        uint32_t w[shape::STEPS][4];
#pragma unroll
        for (int s = 0; s < shape::STEPS; s++) {
            const uint4 loaded = load_16(stage + s * shape::STEP_BYTES + lane * 16);
            w[s][0] = loaded.x;
            w[s][1] = loaded.y;
            w[s][2] = loaded.z;
            w[s][3] = loaded.w;
        }
        const float center = 8388608.0f + p.offset;
        const shared_place from = x + (number * shape::ATOM_UNITS * columns + lane / 4) * 64 + lane % 4 * 16;
        const uint32_t second = is_whole ? shape::ATOM_UNITS * columns * 64 : 0;
#pragma unroll
        for (int u = 0; u < shape::ATOM_UNITS; u++) {
            uint4 b[shape::ATOMS][TILES];
#pragma unroll
            for (int i = 0; i < shape::ATOMS; i++)
#pragma unroll
                for (int c = 0; c < TILES; c++) {
                    b[i][c] = uint4{0, 0, 0, 0};
                    if (c * FEW_COLUMNS + lane / 4 < columns)
                        b[i][c] = load_16(from + i * second + (u * columns + c * FEW_COLUMNS) * 64);
                }
#pragma unroll
            for (int k = 0; k < 4; k += 2)
#pragma unroll
                for (int i = 0; i < shape::ATOMS; i++) {
                    const int step = i * shape::ATOM_STEPS + u / shape::STEP_UNITS;
                    const uint32_t *of_unit = w[step] + u % shape::STEP_UNITS * 2, *of_r = of_unit,
                                   *of_r8 = of_unit + BITS / 4;
                    const uint32_t a[4] = {
                        code_pair<BITS>(of_r, k, center), code_pair<BITS>(of_r8, k, center),
                        code_pair<BITS>(of_r, k + 1, center), code_pair<BITS>(of_r8, k + 1, center)};
#pragma unroll
                    for (int c = 0; c < TILES; c++)
                        multiply_add(group[i * shape::ATOM_GROUPS + u / shape::GROUP_UNITS][c], a,
                                     k ? b[i][c].z : b[i][c].x, k ? b[i][c].w : b[i][c].y);
                }
        }
    }

    __device__ void add_stage(shared_place stage, uint32_t number, bool is_whole, float y[TILES][4]) const {
        float group[shape::GROUPS][TILES][4] = {}, scale[shape::GROUPS][2], bias[shape::GROUPS][2];
        load_affine(stage, is_whole, scale, bias);
        multiply_stage(stage, number, is_whole, group);
        const shared_place of_stage =
            sums + (number * shape::ATOM_GROUPS * TILES * FEW_COLUMNS + lane % 4 * 2) * 4;
        const uint32_t second = is_whole ? shape::ATOM_GROUPS * TILES * FEW_COLUMNS * 4 : 0;
#pragma unroll
        for (int g = 0; g < shape::GROUPS; g++)
#pragma unroll
            for (int c = 0; c < TILES; c++) {
                const uint2 sum = load_8(of_stage + g / shape::ATOM_GROUPS * second +
                                         (g % shape::ATOM_GROUPS * TILES + c) * FEW_COLUMNS * 4);
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    y[c][i] = fmaf(bias[g][i / 2], gb_float_from_bits(i % 2 ? sum.y : sum.x), y[c][i]);
                    y[c][i] = fmaf(scale[g][i / 2], group[g][c][i], y[c][i]);
                }
            }
    }

    /* The warp's part of a block of outputs. place: of its first stage in the ring, kept up. */
    __device__ void add_part(uint32_t &place, float y[TILES][4]) {
        for (uint32_t a = first_atom; a < end_atom; a += shape::ATOMS) {
            wait_for_copies<STAGES - 2>();
            __syncwarp();
            copy_stage(ring + (place == 0 ? STAGES - 1 : place - 1) * shape::STAGE_BYTES);
            add_stage(ring + place * shape::STAGE_BYTES, a - slice_atom,
                      shape::ATOMS == 1 || a + 1 < end_atom, y);
            place = place + 1 == STAGES ? 0 : place + 1;
        }
    }
};

/* Where things are in the shared memory of a block of threads, in bytes. */
struct few_memory {
    uint32_t sums, x, partial, size; /* the rings come first */
};

/* For parts of a slice of at most that many atoms. */
template <int BITS, int GROUP, int TILES, int STAGES>
__host__ __device__ inline few_memory few_memory_of(uint32_t slice_atoms, uint32_t columns) {
    typedef few_shape<BITS, GROUP> shape;
    few_memory m;
    m.partial = FEW_PARTS * STAGES * shape::STAGE_BYTES;
    m.sums = m.partial + 2 * FEW_PARTS * TILES * 4 * WARP * (uint32_t)sizeof(float);
    m.x = m.sums + slice_atoms * shape::ATOM_GROUPS * TILES * FEW_COLUMNS * (uint32_t)sizeof(float);
    m.size = m.x + slice_atoms * shape::ATOM_UNITS * columns * UNIT * 2;
    return m;
}

__host__ __device__ inline uint32_t few_part_begin(uint32_t atoms, uint32_t part, uint32_t parts) {
    return (uint32_t)((uint64_t)atoms * part / parts);
}

/* Copies the tile's rows of x into shared memory, and adds up the sums of their groups. */
template <typename Rows>
__device__ inline void load_rows(const Rows &rows, uint32_t slice_atoms, size_t first_row, float *sums,
                                 int tiles) {
    typedef typename Rows::shape shape;
    const few_products &p = rows.p;
    const uint32_t quarters = slice_atoms * shape::ATOM_UNITS * 4,
                   first = rows.slice_atom * shape::ATOM_UNITS;
    for (uint32_t c = 0; c < rows.columns; c++) {
        const uint8_t *from = reinterpret_cast<const uint8_t *>(p.x.values) +
                              ((first_row + c) / p.x_reuse * p.x.units + first) * (UNIT * 2);
        for (uint32_t q = threadIdx.x; q < quarters; q += FEW_THREADS)
            copy_async_16(rows.x + (q / 4 * rows.columns + c) * 64 + q % 4 * 16, from + q * 16);
    }
    const uint32_t width = tiles * FEW_COLUMNS, groups = slice_atoms * shape::ATOM_GROUPS;
    for (uint32_t e = threadIdx.x; e < groups * width; e += FEW_THREADS) {
        const uint32_t c = e % width, g = e / width;
        float sum = 0;
        if (c < rows.columns) {
            const float *halves =
                p.x.sums + ((first_row + c) / p.x_reuse * p.x.units + first + g * shape::GROUP_UNITS) * 2;
            for (int i = 0; i < shape::GROUP_UNITS * 2; i++)
                sum += halves[i];
        }
        sums[e] = sum;
    }
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
    const uint32_t all = p.of[p.count - 1].blocks_end,
                   here = (rows.end_block - rows.first_block) * FEW_BLOCK_ROWS;
    const size_t slice = (size_t)p.rows * all * FEW_BLOCK_ROWS;
    for (uint32_t e = threadIdx.x; e < here * rows.columns; e += FEW_THREADS) {
        const size_t row = first_row + e / here;
        const uint32_t block = rows.first_block + e % here / FEW_BLOCK_ROWS;
        const volatile float *from = p.partial + (row * all + block) * FEW_BLOCK_ROWS + e % FEW_BLOCK_ROWS;
        float sum = 0;
        for (uint32_t s = 0; s < gridDim.y; s++)
            sum += from[s * slice];
        uint32_t m = 0;
        while (block >= p.of[m].blocks_end)
            m++;
        const uint32_t output =
            (block - (m ? p.of[m - 1].blocks_end : 0)) * FEW_BLOCK_ROWS + e % FEW_BLOCK_ROWS;
        p.of[m].y[row * p.of[m].outputs + output] = sum;
    }
}

/* Grid: [ranges of the blocks of all matrices, slices, tiles of rows]. */
template <int BITS, int GROUP, bool IS_BF16, int TILES, int STAGES>
static __global__ void __launch_bounds__(FEW_THREADS, 2) multiply_few(const few_products p) {
    typedef few_rows<BITS, GROUP, IS_BF16, TILES, STAGES> rows_type;
    GB_DYNAMIC_SHARED(uint8_t, shared);
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
    rows.first_block = few_part_begin(blocks, blockIdx.x, gridDim.x);
    rows.end_block = few_part_begin(blocks, blockIdx.x + 1, gridDim.x);
    const size_t first_row = (size_t)blockIdx.z * p.tile_rows;
    rows.columns = p.rows - first_row < p.tile_rows ? (uint32_t)(p.rows - first_row) : p.tile_rows;
    const few_memory memory = few_memory_of<BITS, GROUP, TILES, STAGES>(slice_atoms, rows.columns);
    rows.ring = place_of(shared) + rows.warp * STAGES * rows_type::shape::STAGE_BYTES;
    rows.x = place_of(shared) + memory.x;
    rows.sums = place_of(shared) + memory.sums;
    rows.product = 0;
    rows.expert_blocks = 0;
    let_next_begin();
    if (p.expert) {
        wait_for_earlier();
        rows.expert_blocks = (uint32_t)p.expert[first_row] * blocks;
    }
    rows.begin_block(rows.first_block);
    for (uint32_t s = 0; s + 1 < STAGES; s++)
        rows.copy_stage(rows.ring + s * rows_type::shape::STAGE_BYTES);
    if (!p.expert)
        wait_for_earlier();
    load_rows(rows, slice_atoms, first_row, reinterpret_cast<float *>(shared + memory.sums), TILES);
    end_copy_group();
    wait_for_copies<0>();
    __syncthreads();
    float *partial = reinterpret_cast<float *>(shared + memory.partial);
    uint32_t place = 0, m = 0;
    for (uint32_t block = rows.first_block; block < rows.end_block; block++) {
        float y[TILES][4] = {};
        rows.add_part(place, y);
        float *of_block = partial + block % 2 * (FEW_PARTS * TILES * 4 * WARP);
        for (int c = 0; c < TILES; c++)
            for (int i = 0; i < 4; i++)
                of_block[((rows.warp * TILES + c) * 4 + i) * WARP + rows.lane] = y[c][i];
        __syncthreads();
        while (block >= p.of[m].blocks_end)
            m++;
        const uint32_t e = threadIdx.x, of_lane = e % WARP, i = e / WARP % 4, c = e / (4 * WARP);
        const uint32_t column = c * FEW_COLUMNS + of_lane % 4 * 2 + i % 2, in_block = of_lane / 4 + i / 2 * 8;
        if (c < TILES && column < rows.columns) {
            float sum = 0;
            for (int q = 0; q < FEW_PARTS; q++)
                sum += of_block[(q * TILES + c) * 4 * WARP + e % (4 * WARP)];
            const size_t row = first_row + column;
            if (gridDim.y > 1)
                p.partial[((blockIdx.y * (size_t)p.rows + row) * blocks + block) * FEW_BLOCK_ROWS +
                          in_block] = sum;
            else
                p.of[m].y[row * p.of[m].outputs +
                          (block - (m ? p.of[m - 1].blocks_end : 0)) * FEW_BLOCK_ROWS + in_block] = sum;
        }
    }
    if (gridDim.y > 1)
        add_slices(rows, first_row);
}

} // namespace gb_cuda

#endif
