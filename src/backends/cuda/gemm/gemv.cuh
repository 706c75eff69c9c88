/* SPDX-License-Identifier: Apache-2.0
 *
 * The argument of gemv_rows.cuh and gemv_one_row.cuh: matrices, rows, how the sum over k is cut (split-K),
 * and the layout of shared memory.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_GEMV_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_GEMV_CUH

#include "backends/cuda/gemm/prepared.cuh"

namespace gb_cuda {

enum {
    GEMV_BLOCK_ROWS = 16,
    GEMV_COLUMNS = 8,
    GEMV_MOST_STAGES = 16,
    GEMV_LOAD_BYTES = 28 * 1024, /* of a load, at most, where that is more than a part */
    /* Loads in flight at a time: as many as keep memory busy. More would delay the inputs, and the kernel
     * before first of all. */
    GEMV_LOADS_IN_FLIGHT = 2,
    CHUNK_BYTES = 64 /* of a prepared row: a unit in bfloat16, two in 8 bits */
};

/* One matrix of a launch. */
struct gemv_product {
    const uint8_t *codes, *scales, *biases; /* biases: where there are some */
    float *y;                               /* [rows, outputs] */
    uint32_t outputs;
    uint32_t blocks_end; /* blocks of 16 outputs of this matrix and those before it */
};

/* How the sum over a matrix's atoms (gemv_shape) is cut: slices of whole parts, of which the last one may be
 * smaller; and how many atoms are loaded together, which changes no sum. */
struct gemv_cut {
    uint32_t atoms, slice_atoms, load_atoms;
    bool has_one_row; /* every launch is of a row alone, or of pairs */

    __host__ __device__ uint32_t slices() const {
        return (atoms + slice_atoms - 1) / slice_atoms;
    }
};

/* The layout of a block's shared memory, in bytes; the pipeline comes first. */
struct gemv_memory {
    uint32_t stage_bytes, scales, biases; /* a stage's, and where its planes begin */
    uint32_t stages;
    uint32_t sums; /* [groups, gemv_tile.columns, SUM_FLOATS] floats */
    uint32_t x;    /* [rows, x_stride] */
    uint32_t x_stride;
    uint32_t size;
};

/* The rows of a tile, and what its kernel keeps in shared memory. */
struct gemv_tile {
    uint32_t rows;
    uint32_t columns;     /* of the inputs' sums */
    uint32_t spare_atoms; /* behind the inputs, that it loads and does not use */
};

/* Matrices of one format and one width that meet the same rows. */
struct gemv_products {
    gemv_product of[GB_CUDA_MOST_JOINED];
    uint32_t count;
    uint32_t code_bytes, scale_bytes; /* of a block of 16 rows in its plane */
    float offset;                     /* what the codes that are multiplied are above the format's */
    gemv_cut cut;
    gemv_memory memory;
    prepared_rows x;
    uint32_t rows, tile_rows; /* blockIdx.z has rows z * tile_rows .. */
    const int32_t *expert;    /* [rows]: the tile's, of whose outputs it takes; or NULL */
    bool is_read_once;        /* no other rows meet the matrices soon */
    bool begins_slowly;       /* one load at a time is in flight until the inputs are there */
    uint32_t x_reuse;         /* row i is computed from row i / x_reuse of x */
    float *partial;           /* [slices, rows, blocks, 16], where blocks of threads share the slices */
    uint32_t *arrivals;       /* [gridDim.z, gridDim.x] zeros, as it leaves them */
};

/* What is known of a format when the kernel is compiled. A step is what a packed block has in 512 bytes, an
 * atom a run of columns of whole steps and groups, a part eight groups. */
template <bool INPUTS_IN_BYTES, int CODE_BITS, int GROUP_COLUMNS, bool SCALES_ARE_BF16, bool WITH_BIASES>
struct gemv_shape {
    static constexpr bool IN_BYTES = INPUTS_IN_BYTES, IS_BF16 = SCALES_ARE_BF16, HAS_BIASES = WITH_BIASES;
    static constexpr int BITS = CODE_BITS, GROUP = GROUP_COLUMNS; /* GROUP: 0 where a row has one scale */
    static constexpr int STEP_COLUMNS = 256 / BITS, LEAST_COLUMNS = IN_BYTES ? 2 * UNIT : STEP_COLUMNS;
    static constexpr int ATOM_COLUMNS = GROUP > LEAST_COLUMNS ? GROUP : LEAST_COLUMNS;
    static constexpr int ATOM_STEPS = ATOM_COLUMNS / STEP_COLUMNS;
    static constexpr int ATOM_UNITS = ATOM_COLUMNS / UNIT;
    static constexpr int ATOM_GROUPS = GROUP ? ATOM_COLUMNS / GROUP : 1;
    static constexpr int GROUP_UNITS = ATOM_UNITS / ATOM_GROUPS;
    static constexpr int STEP_UNITS = STEP_COLUMNS / UNIT;
    static constexpr int STEP_BYTES = 512, GROUP_BYTES = 32;   /* GROUP_BYTES: 16 scales or biases */
    static constexpr int CODE_BYTES = ATOM_STEPS * STEP_BYTES; /* of an atom */
    static constexpr int SCALE_BYTES = GROUP ? ATOM_GROUPS * GROUP_BYTES : 0;
    /* Of the inputs: a row's bytes and a row's numbers of an atom. */
    static constexpr int INPUT_BYTES = (IN_BYTES ? ATOM_UNITS / 2 : ATOM_UNITS) * CHUNK_BYTES;
    static constexpr int SUM_FLOATS = IN_BYTES ? 2 : 1; /* of a group: its scale, and xsum */
    static constexpr int PART_ATOMS = GEMV_COLUMNS / ATOM_GROUPS;
    static constexpr int PART_BYTES = PART_ATOMS * (CODE_BYTES + (HAS_BIASES ? 2 : 1) * SCALE_BYTES);
    static constexpr int LOAD_PARTS = PART_BYTES > GEMV_LOAD_BYTES ? 1 : GEMV_LOAD_BYTES / PART_BYTES;
};

/* For so many slices of a tile's rows. The pipeline takes what is left of most_bytes, but no more stages than
 * a block of threads has loads; there may be room for none. */
template <typename Shape>
__host__ inline gemv_memory gemv_memory_of(const gemv_cut &cut, uint32_t slices, const gemv_tile &tile,
                                           size_t most_bytes, uint32_t loads) {
    const uint32_t most_atoms = slices * cut.slice_atoms,
                   atoms = most_atoms < cut.atoms ? most_atoms : cut.atoms;
    gemv_memory m;
    const uint32_t scales = Shape::GROUP ? cut.load_atoms * Shape::SCALE_BYTES : (uint32_t)Shape::GROUP_BYTES;
    m.scales = cut.load_atoms * Shape::CODE_BYTES;
    m.biases = m.scales + scales;
    m.stage_bytes = m.biases + (Shape::HAS_BIASES ? scales : 0);
    /* Neighbouring rows begin half a line of banks apart. */
    m.x_stride = (atoms * Shape::INPUT_BYTES + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE + CACHE_LINE / 2;
    const uint32_t sums =
        atoms * Shape::ATOM_GROUPS * Shape::SUM_FLOATS * tile.columns * (uint32_t)sizeof(float);
    const uint32_t x = tile.rows * m.x_stride + tile.spare_atoms * (uint32_t)Shape::INPUT_BYTES;
    const uint32_t rest = (sums + 15) / 16 * 16 + x;
    m.stages = most_bytes > rest ? (uint32_t)((most_bytes - rest) / m.stage_bytes) : 0;
    m.stages = m.stages > GEMV_MOST_STAGES ? (uint32_t)GEMV_MOST_STAGES : m.stages;
    m.stages = m.stages > loads ? loads : m.stages;
    m.sums = m.stages * m.stage_bytes;
    m.x = m.sums + (sums + 15) / 16 * 16;
    m.size = m.x + x;
    return m;
}

} // namespace gb_cuda

#endif
