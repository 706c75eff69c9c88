/* SPDX-License-Identifier: Apache-2.0
 *
 * The format pack-quantized of compressed-tensors (vLLM's llm-compressor writes it): codes of 4 or 8 bits in
 * 32-bit words along a row, scales [rows, groups], and, where quantization was not symmetric, zero points in
 * words along the rows [rows / codes in a word, groups]. One group to a row is the strategy "channel".
 */
#include "export/packed/parts.h"

#include <inttypes.h>
#include <string.h>

bool gb_packed_compressed_name(const gb_packed_query *query, char text[GB_PACKED_NAME]) {
    return gb_packed_rename(query->name, ".weight", ".weight_packed", text);
}

/* Bits of a code, from the words that hold a row: 0 where there is no such number. */
static uint32_t code_bits(const gb_tensor *codes, int64_t columns) {
    int64_t words = codes->rank == 2 ? codes->dims[1] : 0;
    if (columns % 8 == 0 && words == columns / 8)
        return 4;
    return columns % 4 == 0 && words == columns / 4 ? 8 : 0;
}

static gumbel_status check_shape_tensor(const gb_packed_query *query, gb_packed *packed,
                                        gumbel_error *error) {
    char text[GB_PACKED_NAME];
    const int64_t two = 2;
    gb_packed_rename(query->name, ".weight", ".weight_shape", text);
    if (!gb_checkpoint_find(query->checkpoint, text))
        return GUMBEL_OK;
    GB_TRY(gb_packed_part(query, packed->codes, text, "I64", 1, &two, &packed->shape, error));
    int64_t found[2];
    memcpy(found, packed->shape->data, sizeof found);
    if (found[0] != query->dims[0] || found[1] != query->dims[1])
        return gb_packed_fail(query, packed->shape, GUMBEL_ERROR_FORMAT, error,
                              "says [%" PRId64 ", %" PRId64 "], expected [%" PRId64 ", %" PRId64 "]",
                              found[0], found[1], query->dims[0], query->dims[1]);
    return GUMBEL_OK;
}

static gumbel_status find_zero_points(const gb_packed_query *query, gb_packed *packed, int64_t groups,
                                      gumbel_error *error) {
    char text[GB_PACKED_NAME];
    const int64_t in_word = 32 / packed->bits;
    const int64_t dims[] = {(query->dims[0] + in_word - 1) / in_word, groups};
    gb_packed_rename(query->name, ".weight", ".weight_zero_point", text);
    if (!gb_checkpoint_find(query->checkpoint, text))
        return GUMBEL_OK;
    packed->offset_kind = GB_OFFSETS_WORDS;
    return gb_packed_part(query, packed->codes, text, "I32", 2, dims, &packed->offsets, error);
}

/* A matrix whose columns were sorted before they were grouped has an index of groups. */
static gumbel_status refuse_group_index(const gb_packed_query *query, gumbel_error *error) {
    char text[GB_PACKED_NAME];
    gb_packed_rename(query->name, ".weight", ".weight_g_idx", text);
    const gb_tensor *index = gb_checkpoint_find(query->checkpoint, text);
    return index ? gb_packed_fail(query, index, GUMBEL_ERROR_UNSUPPORTED, error,
                                  "orders the columns of its groups (actorder), which is not supported in "
                                  "this version")
                 : GUMBEL_OK;
}

gumbel_status gb_packed_find_compressed(const gb_packed_query *query, gb_packed *packed, bool *is_found,
                                        gumbel_error *error) {
    char text[GB_PACKED_NAME];
    const gb_tensor *codes =
        gb_packed_compressed_name(query, text) ? gb_checkpoint_find(query->checkpoint, text) : NULL;
    *is_found = codes != NULL;
    if (!codes)
        return GUMBEL_OK;
    const int64_t rows = query->dims[0], columns = query->dims[query->rank - 1];
    packed->codes = codes;
    packed->bits = code_bits(codes, columns);
    if (query->rank != 2 || strcmp(codes->dtype_name, "I32") != 0 || packed->bits == 0 ||
        codes->dims[0] != rows)
        return gb_packed_fail(query, codes, GUMBEL_ERROR_FORMAT, error,
                              "does not hold [%" PRId64 ", %" PRId64 "] codes of 4 or 8 bits in I32 words",
                              rows, columns);
    gb_packed_rename(query->name, ".weight", ".weight_scale", text);
    const gb_tensor *scales = gb_checkpoint_find(query->checkpoint, text);
    int64_t groups = scales && scales->rank == 2 && scales->dims[1] > 0 ? scales->dims[1] : 1;
    if (columns % groups != 0)
        return gb_packed_fail(query, scales, GUMBEL_ERROR_FORMAT, error,
                              "has %" PRId64 " groups, which do not divide rows of %" PRId64 " weights",
                              groups, columns);
    GB_TRY(gb_packed_part(query, codes, text, "F32 F16 BF16", 2, (const int64_t[]){rows, groups},
                          &packed->scales, error));
    GB_TRY(refuse_group_index(query, error));
    GB_TRY(find_zero_points(query, packed, groups, error));
    packed->group = (uint64_t)(columns / groups);
    packed->row_stride = (uint64_t)groups;
    packed->group_stride = 1;
    return check_shape_tensor(query, packed, error);
}
