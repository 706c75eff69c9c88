/* SPDX-License-Identifier: Apache-2.0
 *
 * What a launch of few_rows.cuh or one_row.cuh is given: matrices, rows, how the sum over k is cut, and where
 * things are in shared memory.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_FEW_PRODUCT_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_FEW_PRODUCT_CUH

#include "backends/cuda/gemm/prepared.cuh"

namespace gb_cuda {

enum {
    FEW_BLOCK_ROWS = 16,
    FEW_COLUMNS = 8,
    FEW_MOST_SLOTS = 16,
    FEW_LOAD_BYTES = 28 * 1024, /* of a load, at most, where that is more than a part */
    /* Loads that are being copied at a time: as many as keep memory busy. With more, all that reads memory
     * meanwhile would wait behind them, the inputs and the kernel before first of all. */
    FEW_UNDER_WAY = 2,
    CHUNK_BYTES = 64 /* of a prepared row: a unit in bfloat16, two in 8 bits */
};

/* One matrix of a launch. */
struct few_product {
    const uint8_t *codes, *scales, *biases; /* biases: where there are some */
    float *y;                               /* [rows, outputs] */
    uint32_t outputs;
    uint32_t blocks_end; /* blocks of 16 outputs of this matrix and those before it */
};

/* How the sum over a matrix's atoms (few_shape) is cut: slices of whole parts, of which the last one may be
 * smaller; and how many atoms are loaded together, which changes no sum. */
struct few_cut {
    uint32_t atoms, slice_atoms, load_atoms;

    __host__ __device__ uint32_t slices() const {
        return (atoms + slice_atoms - 1) / slice_atoms;
    }
};

/* Where things are in the shared memory of a block of threads, in bytes; the ring comes first. */
struct few_memory {
    uint32_t slot_bytes, scales, biases; /* a slot's, and where its planes begin */
    uint32_t slots;
    uint32_t sums; /* [groups, few_tile.columns, SUM_FLOATS] floats */
    uint32_t x;    /* [rows, x_stride] */
    uint32_t x_stride;
    uint32_t size;
};

/* The rows of a tile, and what its kernel keeps in shared memory. */
struct few_tile {
    uint32_t rows;
    uint32_t columns;     /* of the inputs' sums */
    uint32_t spare_atoms; /* behind the inputs, that it loads and does not use */
};

/* Matrices of one format and one width that meet the same rows. */
struct few_products {
    few_product of[GB_CUDA_MOST_JOINED];
    uint32_t count;
    uint32_t code_bytes, scale_bytes; /* of a block of 16 rows in its plane */
    float offset;                     /* what the codes that are multiplied are above the format's */
    few_cut cut;
    few_memory memory;
    prepared_rows x;
    uint32_t rows, tile_rows; /* blockIdx.z has rows z * tile_rows .. */
    const int32_t *expert;    /* [rows]: the tile's, of whose outputs it takes; or NULL */
    bool is_read_once;        /* no other rows meet the matrices soon */
    bool begins_slowly;       /* one load at a time is under way until the inputs are there */
    uint32_t x_reuse;         /* row i is made of row i / x_reuse of x */
    float *partial;           /* [slices, rows, blocks, 16], where blocks of threads share the slices */
    uint32_t *arrivals;       /* [gridDim.z, gridDim.x] zeros, as it leaves them */
};

/* What is known of a format when the kernel is compiled. A step is what a packed block has in 512 bytes, an
 * atom a run of columns of whole steps and groups, a part eight groups. */
template <bool INPUTS_IN_BYTES, int CODE_BITS, int GROUP_COLUMNS, bool SCALES_ARE_BF16, bool WITH_BIASES>
struct few_shape {
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
    static constexpr int PART_ATOMS = FEW_COLUMNS / ATOM_GROUPS;
    static constexpr int PART_BYTES = PART_ATOMS * (CODE_BYTES + (HAS_BIASES ? 2 : 1) * SCALE_BYTES);
    static constexpr int LOAD_PARTS = PART_BYTES > FEW_LOAD_BYTES ? 1 : FEW_LOAD_BYTES / PART_BYTES;
};

/* For so many slices of a tile's rows. The ring takes what is left of most_bytes, but no more slots than a
 * block of threads has loads; there may be room for none. */
template <typename Shape>
__host__ inline few_memory few_memory_of(const few_cut &cut, uint32_t slices, const few_tile &tile,
                                         size_t most_bytes, uint32_t loads) {
    const uint32_t most_atoms = slices * cut.slice_atoms,
                   atoms = most_atoms < cut.atoms ? most_atoms : cut.atoms;
    few_memory m;
    const uint32_t scales = Shape::GROUP ? cut.load_atoms * Shape::SCALE_BYTES : (uint32_t)Shape::GROUP_BYTES;
    m.scales = cut.load_atoms * Shape::CODE_BYTES;
    m.biases = m.scales + scales;
    m.slot_bytes = m.biases + (Shape::HAS_BIASES ? scales : 0);
    /* Neighbouring rows begin half a line of banks apart. */
    m.x_stride = (atoms * Shape::INPUT_BYTES + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE + CACHE_LINE / 2;
    const uint32_t sums =
        atoms * Shape::ATOM_GROUPS * Shape::SUM_FLOATS * tile.columns * (uint32_t)sizeof(float);
    const uint32_t x = tile.rows * m.x_stride + tile.spare_atoms * (uint32_t)Shape::INPUT_BYTES;
    const uint32_t rest = (sums + 15) / 16 * 16 + x;
    m.slots = most_bytes > rest ? (uint32_t)((most_bytes - rest) / m.slot_bytes) : 0;
    m.slots = m.slots > FEW_MOST_SLOTS ? (uint32_t)FEW_MOST_SLOTS : m.slots;
    m.slots = m.slots > loads ? loads : m.slots;
    m.sums = m.slots * m.slot_bytes;
    m.x = m.sums + (sums + 15) / 16 * 16;
    m.size = m.x + x;
    return m;
}

} // namespace gb_cuda

#endif
