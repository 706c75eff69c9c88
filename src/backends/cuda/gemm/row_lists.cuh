/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rows of x meet which rows of a weight: all of them, or with experts lists that the device computes,
 * so that the host need not wait for them.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_ROW_LISTS_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_ROW_LISTS_CUH

#include "backends/cuda/gemm/prepared.cuh"

namespace gb_cuda {

/* A tile of outputs: entries first .. end - 1 of the list, against the weight's rows of one expert. */
struct row_tile {
    int32_t first, end, expert;
};

struct row_lists {
    size_t rows;                  /* of y */
    size_t outputs;               /* rows of the weight, of one expert's */
    size_t x_reuse;               /* row i of y is computed from row i / x_reuse of x */
    const int32_t *expert;        /* [rows]: of each row of y, for products of a row at a time; or NULL */
    const int32_t *order;         /* rows of y in the order of experts, and -1 for none; or NULL */
    const row_tile *tiles;        /* [tile_count] in order; the first that is empty is the last; or NULL */
    size_t tile_count, tile_rows; /* at most, of tiles */
};

/* All rows of a product's input, with a matrix that has no experts. */
inline row_lists all_rows(const gb_cuda_call *call) {
    row_lists lists = {};
    lists.rows = call->operands[0]->dims[0];
    lists.outputs = call->operands[1]->dims[0];
    lists.x_reuse = 1;
    return lists;
}

/* Tile number `tile` of at most `size` rows. */
__device__ inline row_tile tile_of(const row_lists &lists, unsigned tile, unsigned size) {
    if (lists.tiles)
        return lists.tiles[tile];
    const size_t first = (size_t)tile * size, end = first + size;
    row_tile range = {(int32_t)first, (int32_t)(end < lists.rows ? end : lists.rows), 0};
    if (lists.expert) /* tiles of one row */
        range.expert = lists.expert[first];
    return range;
}

__device__ inline size_t listed_row(const row_lists &lists, int32_t entry) {
    return (size_t)(lists.order ? lists.order[entry] : entry);
}

} // namespace gb_cuda

/* gemm_quantized.cu: of all rows, of lists that expert_lists.cu makes with tiles of GB_CUDA_LISTED_TILE_ROWS,
 * or pair by pair; few: of up to 16 rows or outputs, and pair by pair. */
enum { GB_CUDA_LISTED_TILE_ROWS = 64 };
void gb_cuda_quantized_few(const gb_cuda_call *call, const gb_cuda::row_lists &lists);
void gb_cuda_quantized_many(const gb_cuda_call *call, const gb_cuda::row_lists &lists);
/* gemv.cu: of a packed matrix, pair by pair; lists.expert is given. */
void gb_cuda_gemv_pairs(const gb_cuda_call *call, const gb_cuda::row_lists &lists);
/* gemv_bf16.cu: likewise, of a matrix that it takes. */
bool gb_cuda_supports_pairs_bf16(const gb_cuda_tensor *weight);
void gb_cuda_gemv_bf16_pairs(const gb_cuda_call *call, const gb_cuda_tensor *x, const gb_cuda_tensor *weight,
                             const gb_cuda::row_lists &lists);
/* gemv_float.cu: likewise, of any matrix that is not quantized. */
void gb_cuda_gemv_float_product(const gb_cuda_call *call, const gb_cuda_tensor *x,
                                const gb_cuda_tensor *weight, const gb_cuda::row_lists &lists);

/* The wgmma GEMMs: entry i of the lists is row i of x, prepared by pairs of units. Tiles have at most
 * gb_cuda_wgmma_tile_rows. */
enum { GB_CUDA_FRAGMENT_TILE_ROWS = 256, GB_CUDA_BF16_TILE_ROWS = 128 };
size_t gb_cuda_wgmma_tile_rows(const gb_cuda_tensor *weight);
void gb_cuda_wgmma_product(const gb_cuda_call *call, const gb_cuda::prepared_rows &x,
                           const gb_cuda_tensor *weight, const gb_cuda::row_lists &lists);
void gb_cuda_wgmma_product_bf16(const gb_cuda_call *call, const gb_cuda::prepared_rows &x,
                                const gb_cuda_tensor *weight, const gb_cuda::row_lists &lists);

/* Makes lists.order and lists.tiles of the experts of all rows of y, in `memory`; each expert's entries begin
 * at a multiple of 8, and those that are no row are -1. There are gb_cuda_list_entries of them. */
size_t gb_cuda_list_entries(size_t rows, size_t experts);
size_t gb_cuda_list_tiles(size_t rows, size_t experts, size_t tile_rows);
uint64_t gb_cuda_list_bytes(size_t rows, size_t experts, size_t tile_rows);
void gb_cuda_list_experts(const gb_cuda_call *call, const int32_t *expert, size_t experts, size_t tile_rows,
                          void *memory, gb_cuda::row_lists *lists);

#endif
