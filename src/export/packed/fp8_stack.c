/* SPDX-License-Identifier: Apache-2.0
 *
 * Experts of 8-bit floats in one tensor, as transformers saves them: NAME [experts, rows, columns] and
 * NAME_scale_inv [experts, rows of blocks, columns of blocks]. Gate and up have scales of their own also
 * where one block could hold both.
 */
#include "export/packed/fp8.h"
#include "export/packed/parts.h"

#include <inttypes.h>
#include <string.h>

static bool has_gate_and_up(const char *name) {
    static const char ending[] = "gate_up_proj";
    const size_t length = strlen(name), tail = sizeof ending - 1;
    return length >= tail && strcmp(name + length - tail, ending) == 0;
}

static int64_t blocks_of(int64_t size, int64_t block) {
    return size / block + (size % block != 0);
}

/* The rows of a block, from how many there are; 0 where that does not tell. Two are gate's and up's, as
 * transformers takes them; which of both others are cut off at, no shape could say. */
static int64_t rows_of_block(const char *name, int64_t rows, int64_t block, int64_t count) {
    const bool is_both = has_gate_and_up(name);
    if (block == 0)
        block = rows;
    if (count == 1 && block >= rows)
        return rows;
    if (is_both && count == 2 && rows % 2 == 0 && rows / 2 <= block)
        return rows / 2;
    return count == blocks_of(rows, block) && (!is_both || rows % block == 0) ? block : 0;
}

/* How the scales lie over the matrix of each expert; false where they do not. */
static bool lay_scales(const gb_packed_query *query, const gb_tensor *scales, gb_fp8 *matrix) {
    const int64_t rows = query->dims[1], columns = query->dims[2];
    const int64_t *block = query->packing->fp8_block;
    if (scales->rank != 3 || scales->dims[0] != query->dims[0])
        return false;
    const int64_t block_columns = block[1] > 0 ? block[1] : columns;
    const bool has_rows = block[0] == 0 && scales->dims[1] == rows;
    const int64_t block_rows = has_rows ? 1 : rows_of_block(query->name, rows, block[0], scales->dims[1]);
    *matrix = (gb_fp8){.scale_dtype = scales->dtype,
                       .block_rows = (uint64_t)block_rows,
                       .block_columns = (uint64_t)block_columns,
                       .scale_columns = (uint64_t)scales->dims[2]};
    return block_rows > 0 && scales->dims[2] == blocks_of(columns, block_columns);
}

static gumbel_status check_scales(const gb_packed_query *query, gb_fp8_found *found, gumbel_error *error) {
    const gb_tensor *scales = found->scales;
    if (!gb_dtype_is_float(scales->dtype))
        return gb_packed_fail(query, scales, GUMBEL_ERROR_UNSUPPORTED, error,
                              "has dtype %s, expected F32, F16 or BF16", scales->dtype_name);
    if (!lay_scales(query, scales, &found->matrix))
        return gb_packed_fail(query, scales, GUMBEL_ERROR_FORMAT, error,
                              "has another shape than the blocks of %s [%" PRId64 ", %" PRId64 ", %" PRId64
                              "], or one of theirs has rows of gate and up that do not fill it",
                              query->name, query->dims[0], query->dims[1], query->dims[2]);
    found->matrix.codes = found->codes->data;
    found->matrix.scales = scales->data;
    return GUMBEL_OK;
}

/* modelopt writes such of gpt-oss alone, transposed; of others it writes experts one by one, as all do. */
static gumbel_status refuse_nvfp4(const gb_packed_query *query, gumbel_error *error) {
    const gb_tensor *codes = gb_checkpoint_find(query->checkpoint, query->name);
    if (!codes || strcmp(codes->dtype_name, "U8") != 0)
        return GUMBEL_OK;
    return gb_packed_fail(query, codes, GUMBEL_ERROR_UNSUPPORTED, error,
                          "holds NVFP4 of all experts, which is not supported in this version; take gpt-oss "
                          "as it was released, in MXFP4, other models with experts one by one, or a GGUF");
}

gumbel_status gb_fp8_find_stack(const gb_quantization *packing, const gb_checkpoint *checkpoint,
                                const char *name, const int64_t dims[3], gb_fp8_found *found, bool *is_found,
                                gumbel_error *error) {
    const gb_packed_query query = {packing, checkpoint, name, 3, dims};
    GB_TRY(gb_nvfp4_blocks_find(&query, found, is_found, error));
    if (*is_found)
        return GUMBEL_OK;
    if (packing && packing->method == GB_QUANTIZATION_MLX)
        return gb_mxfp8_find(&query, found, is_found, error);
    if (packing && packing->method == GB_QUANTIZATION_NVFP4)
        GB_TRY(refuse_nvfp4(&query, error));
    GB_TRY(gb_fp8_find_codes(&query, found, is_found, error));
    return *is_found ? check_scales(&query, found, error) : GUMBEL_OK;
}

gb_fp8 gb_fp8_member(const gb_fp8_found *stack, uint64_t count, uint64_t index) {
    gb_fp8 member = stack->matrix;
    member.codes += stack->codes->size / count * index;
    member.scales += stack->scales->size / count * index;
    return member;
}
