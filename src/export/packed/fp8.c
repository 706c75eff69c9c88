/* SPDX-License-Identifier: Apache-2.0
 *
 * Names and shapes of two methods. Scales are of blocks, of which those at the edges may be smaller, of rows
 * ([rows, 1]), or one; in the method fp8 called NAME.weight_scale_inv, or by AutoFP8 weight_scale as in the
 * others.
 */
#include "export/packed/fp8.h"

#include "export/packed/parts.h"

#include <inttypes.h>
#include <string.h>

static uint64_t blocks_of(int64_t size, int64_t block) {
    return ((uint64_t)size + (uint64_t)block - 1) / (uint64_t)block;
}

static bool has_shape(const gb_tensor *scales, uint64_t rows, uint64_t columns) {
    uint64_t count = 1;
    for (int32_t i = 0; i < scales->rank; i++)
        count *= (uint64_t)scales->dims[i];
    if (count != rows * columns)
        return false;
    return scales->rank < 2 ? rows == 1 || columns == 1
                            : (uint64_t)scales->dims[0] == rows && (uint64_t)scales->dims[1] == columns;
}

/* Of blocks; modelopt keeps a 1 for each dimension of a block. */
static bool has_block_shape(const gb_tensor *scales, uint64_t rows, uint64_t columns) {
    const int64_t *dims = scales->dims;
    const int32_t next = scales->rank == 4 && dims[1] == 1 && dims[3] == 1 ? 2 : 1;
    return (next == 2 || scales->rank == 2) && (uint64_t)dims[0] == rows && (uint64_t)dims[next] == columns;
}

/* How the scales lie over the matrix; false where they do not. */
static bool lay_scales(const gb_quantization *packing, const int64_t dims[2], const gb_tensor *scales,
                       gb_fp8 *matrix) {
    const int64_t *block = packing->fp8_block;
    *matrix =
        (gb_fp8){.block_rows = (uint64_t)dims[0], .block_columns = (uint64_t)dims[1], .scale_columns = 1};
    if (block[0] > 0) {
        matrix->block_rows = (uint64_t)block[0];
        matrix->block_columns = (uint64_t)block[1];
        matrix->scale_columns = blocks_of(dims[1], block[1]);
        return has_block_shape(scales, blocks_of(dims[0], block[0]), matrix->scale_columns);
    }
    if (has_shape(scales, 1, 1))
        return true;
    matrix->block_rows = 1;
    return has_shape(scales, (uint64_t)dims[0], 1);
}

static gumbel_status check_scales(const gb_packed_query *query, gb_fp8_found *found, gumbel_error *error) {
    const gb_quantization *packing = query->packing;
    const gb_tensor *scales = found->scales;
    const int64_t *dims = query->dims;
    if (!gb_dtype_is_float(scales->dtype))
        return gb_packed_fail(query, scales, GUMBEL_ERROR_UNSUPPORTED, error,
                              "has dtype %s, expected F32, F16 or BF16", scales->dtype_name);
    const bool is_laid = lay_scales(packing, dims, scales, &found->matrix);
    if (!is_laid && packing->fp8_block[0] > 0)
        return gb_packed_fail(query, scales, GUMBEL_ERROR_FORMAT, error,
                              "has another shape than the [%" PRIu64 ", %" PRIu64 "] blocks of %s [%" PRId64
                              ", %" PRId64 "]",
                              blocks_of(dims[0], packing->fp8_block[0]),
                              blocks_of(dims[1], packing->fp8_block[1]), query->name, dims[0], dims[1]);
    if (!is_laid)
        return gb_packed_fail(query, scales, GUMBEL_ERROR_FORMAT, error,
                              "has neither one scale nor one for each of the %" PRId64 " rows of %s", dims[0],
                              query->name);
    found->matrix.codes = found->codes->data;
    found->matrix.scales = scales->data;
    found->matrix.scale_dtype = scales->dtype;
    return GUMBEL_OK;
}

/* The scales under either name that the method has. */
static gumbel_status find_scales(const gb_packed_query *query, const gb_tensor **scales,
                                 gumbel_error *error) {
    const char *ending = query->packing->fp8_scales, *other = query->packing->fp8_other_scales;
    char text[GB_PACKED_NAME];
    *scales = NULL;
    if (gb_packed_rename(query->name, "", ending, text))
        *scales = gb_checkpoint_find(query->checkpoint, text);
    if (!*scales && other && gb_packed_rename(query->name, "", other, text))
        *scales = gb_checkpoint_find(query->checkpoint, text);
    return *scales
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: tensor %s%s%s%s is missing, which belongs to %s",
                         gb_checkpoint_path(query->checkpoint), query->name, ending, other ? " or " : "",
                         other ? other : "", query->name);
}

gumbel_status gb_fp8_find_codes(const gb_packed_query *query, gb_fp8_found *found, bool *is_found,
                                gumbel_error *error) {
    const gb_quantization *packing = query->packing;
    *found = (gb_fp8_found){.codes = gb_checkpoint_find(query->checkpoint, query->name)};
    *is_found =
        packing && packing->fp8_scales && found->codes && strcmp(found->codes->dtype_name, "F8_E4M3") == 0;
    if (!*is_found)
        return GUMBEL_OK;
    GB_TRY(gb_checkpoint_check_shape(query->checkpoint, found->codes, query->rank, query->dims, error));
    return find_scales(query, &found->scales, error);
}

gumbel_status gb_fp8_find(const gb_quantization *packing, const gb_checkpoint *checkpoint, const char *name,
                          const int64_t dims[2], gb_fp8_found *found, bool *is_found, gumbel_error *error) {
    const gb_packed_query query = {packing, checkpoint, name, 2, dims};
    GB_TRY(gb_nvfp4_blocks_find(&query, found, is_found, error));
    if (*is_found)
        return GUMBEL_OK;
    if (packing && packing->method == GB_QUANTIZATION_MLX)
        return gb_mxfp8_find(&query, found, is_found, error);
    if (gb_fp8_has(packing, checkpoint, name))
        return gb_nvfp4_find(packing, checkpoint, name, dims, found, is_found, error);
    GB_TRY(gb_fp8_find_codes(&query, found, is_found, error));
    return *is_found ? check_scales(&query, found, error) : GUMBEL_OK;
}
