/* SPDX-License-Identifier: Apache-2.0
 *
 * GPTQ's and AWQ's matrices, which are stored transposed in 32-bit words.
 *
 *     GPTQ   qweight [columns / codes in a word, rows]; 4 or 8 bits; g_idx, the group of each column
 *     AWQ    qweight [columns, rows / 8], the rows of a word in the order 0 2 4 6 1 3 5 7
 *     both   qzeros [groups, rows / codes in a word], rows as AWQ's or in order; scales [groups, rows]
 */
#include "export/packed/parts.h"

#include <inttypes.h>
#include <string.h>

bool gb_packed_qweight_name(const gb_packed_query *query, char text[GB_PACKED_NAME]) {
    return gb_packed_rename(query->name, ".weight", ".qweight", text);
}

/* Writes the name of a part, and gives its tensor if there is one. */
static const gb_tensor *find_part(const gb_packed_query *query, const char *part, char text[GB_PACKED_NAME]) {
    return gb_packed_rename(query->name, ".weight", part, text) ? gb_checkpoint_find(query->checkpoint, text)
                                                                : NULL;
}

/* ---- Codes --------------------------------------------------------------------------------------------- */

/* From the words that hold a row: 0 where no number of bits has so many. */
static uint32_t gptq_bits(const gb_packed_query *query, const gb_tensor *codes) {
    const int64_t columns = query->dims[query->rank - 1], words = codes->rank == 2 ? codes->dims[0] : 0;
    return words > 0 && words <= columns && 32 * words % columns == 0 ? (uint32_t)(32 * words / columns) : 0;
}

static gumbel_status check_codes(const gb_packed_query *query, const gb_packed *packed, gumbel_error *error) {
    const gb_tensor *codes = packed->codes;
    const bool is_awq = packed->layout == GB_LAYOUT_WORDS_OF_ROWS;
    const int64_t rows = query->dims[0], columns = query->dims[query->rank - 1];
    if (!is_awq && packed->bits != 0 && packed->bits != 4 && packed->bits != 8)
        return gb_packed_fail(query, codes, GUMBEL_ERROR_UNSUPPORTED, error,
                              "has codes of %u bits, expected 4 or 8", packed->bits);
    const int64_t in_word = packed->bits ? 32 / packed->bits : 1;
    const int64_t dims[] = {is_awq ? columns : columns / in_word, is_awq ? rows / in_word : rows};
    if (query->rank != 2 || strcmp(codes->dtype_name, "I32") != 0 || packed->bits == 0 ||
        rows % in_word != 0 || columns % in_word != 0)
        return gb_packed_fail(query, codes, GUMBEL_ERROR_FORMAT, error,
                              "does not hold [%" PRId64 ", %" PRId64
                              "] codes of 4 or 8 bits, transposed, in I32 words",
                              rows, columns);
    return gb_checkpoint_check_shape(query->checkpoint, codes, 2, dims, error);
}

/* ---- Numbers ------------------------------------------------------------------------------------------- */

static gumbel_status find_numbers(const gb_packed_query *query, gb_packed *packed, gumbel_error *error) {
    char text[GB_PACKED_NAME];
    const gb_tensor *scales = find_part(query, ".scales", text);
    const int64_t rows = query->dims[0], columns = query->dims[1];
    const int64_t groups = scales && scales->rank == 2 && scales->dims[0] > 0 ? scales->dims[0] : 1;
    if (columns % groups != 0)
        return gb_packed_fail(query, scales, GUMBEL_ERROR_FORMAT, error,
                              "has %" PRId64 " groups, which do not divide rows of %" PRId64 " weights",
                              groups, columns);
    GB_TRY(gb_packed_part(query, packed->codes, text, "F32 F16 BF16", 2, (const int64_t[]){groups, rows},
                          &packed->scales, error));
    packed->group = (uint64_t)(columns / groups);
    packed->row_stride = 1;
    packed->group_stride = (uint64_t)rows;
    packed->offset_kind = GB_OFFSETS_TRANSPOSED;
    find_part(query, ".qzeros", text);
    return gb_packed_part(query, packed->codes, text, "I32", 2,
                          (const int64_t[]){groups, rows * packed->bits / 32}, &packed->offsets, error);
}

/* A zero point 0 has no place where they are stored minus 1: some writers let it wrap around, and readers
 * make 0, 2^bits or a carry of it. */
static gumbel_status refuse_wrapped_zeros(const gb_packed_query *query, const gb_packed *packed,
                                          gumbel_error *error) {
    const uint32_t most = (1u << packed->bits) - 1u;
    for (uint64_t i = 0; packed->offset_step > 0 && i < packed->offsets->size * 8 / packed->bits; i++)
        if (gb_get_code(packed->offsets->data, packed->bits, i) == most)
            return gb_packed_fail(query, packed->offsets, GUMBEL_ERROR_UNSUPPORTED, error,
                                  "has a zero point that is stored as %u, of which programs make different "
                                  "numbers; expected checkpoint_format \"gptq_v2\"",
                                  most);
    return GUMBEL_OK;
}

/* ---- Groups -------------------------------------------------------------------------------------------- */

static gumbel_status refuse_sorted(const gb_packed_query *query, const gb_tensor *about,
                                   gumbel_error *error) {
    return gb_packed_fail(query, about, GUMBEL_ERROR_UNSUPPORTED, error,
                          "has columns sorted before they were grouped (desc_act), which is not supported in "
                          "this version");
}

static gumbel_status check_group_index(const gb_packed_query *query, gb_packed *packed, gumbel_error *error) {
    char text[GB_PACKED_NAME];
    if (!find_part(query, ".g_idx", text))
        return query->packing->may_sort_columns ? refuse_sorted(query, packed->codes, error) : GUMBEL_OK;
    GB_TRY(
        gb_packed_part(query, packed->codes, text, "I32", 1, &query->dims[1], &packed->group_index, error));
    for (uint64_t i = 0; i < packed->columns; i++) {
        int32_t group;
        memcpy(&group, packed->group_index->data + 4 * i, sizeof group);
        if (group < 0 || (uint64_t)group != i / packed->group)
            return refuse_sorted(query, packed->group_index, error);
    }
    return GUMBEL_OK;
}

/* ---- Both ---------------------------------------------------------------------------------------------- */

gumbel_status gb_packed_find_gptq(const gb_packed_query *query, gb_packed *packed, bool *is_found,
                                  gumbel_error *error) {
    char text[GB_PACKED_NAME];
    packed->codes = find_part(query, ".qweight", text);
    *is_found = packed->codes != NULL;
    if (!*is_found)
        return GUMBEL_OK;
    packed->layout = GB_LAYOUT_WORDS_OF_COLUMNS;
    packed->bits = gptq_bits(query, packed->codes);
    packed->offset_step = query->packing->zeros_are_less_one;
    GB_TRY(check_codes(query, packed, error));
    GB_TRY(find_numbers(query, packed, error));
    GB_TRY(refuse_wrapped_zeros(query, packed, error));
    return check_group_index(query, packed, error);
}

gumbel_status gb_packed_find_awq(const gb_packed_query *query, gb_packed *packed, bool *is_found,
                                 gumbel_error *error) {
    char text[GB_PACKED_NAME];
    packed->codes = find_part(query, ".qweight", text);
    *is_found = packed->codes != NULL;
    if (!*is_found)
        return GUMBEL_OK;
    packed->layout = GB_LAYOUT_WORDS_OF_ROWS;
    packed->bits = 4;
    GB_TRY(check_codes(query, packed, error));
    return find_numbers(query, packed, error);
}
