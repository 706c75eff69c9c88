/* SPDX-License-Identifier: Apache-2.0
 *
 * The experts of gpt-oss as transformers stores them: NAME_blocks [experts, rows, groups, 16], two codes of
 * E2M1 a byte, and NAME_scales [experts, rows, groups], exponents (OCP microscaling formats, 2023). The rows
 * of experts' gates and ups stand in turns.
 */
#include "export/packed/parts.h"

#include <inttypes.h>
#include <string.h>

enum { GROUP = 32 };

bool gb_packed_mxfp4_name(const gb_packed_query *query, char text[GB_PACKED_NAME]) {
    return gb_packed_rename(query->name, "_proj", "_proj_blocks", text);
}

static bool has_rows_in_turns(const char *name) {
    static const char ending[] = "gate_up_proj";
    const size_t length = strlen(name), tail = sizeof ending - 1;
    return length >= tail && strcmp(name + length - tail, ending) == 0;
}

gumbel_status gb_packed_find_mxfp4(const gb_packed_query *query, gb_packed *packed, bool *is_found,
                                   gumbel_error *error) {
    char text[GB_PACKED_NAME];
    const gb_tensor *codes =
        gb_packed_mxfp4_name(query, text) ? gb_checkpoint_find(query->checkpoint, text) : NULL;
    *is_found = codes != NULL;
    if (!codes)
        return GUMBEL_OK;
    const int64_t columns = query->dims[query->rank - 1];
    const bool has_turns = has_rows_in_turns(query->name);
    if (query->rank != 3 || columns % GROUP != 0 || strcmp(codes->dtype_name, "U8") != 0 ||
        (has_turns && query->dims[1] % 2 != 0))
        return gb_packed_fail(query, codes, GUMBEL_ERROR_FORMAT, error,
                              "does not hold experts' rows of %" PRId64 " weights in groups of %d", columns,
                              GROUP);
    const int64_t dims[] = {query->dims[0], query->dims[1], columns / GROUP, GROUP / 2};
    GB_TRY(gb_checkpoint_check_shape(query->checkpoint, codes, 4, dims, error));
    gb_packed_rename(query->name, "_proj", "_proj_scales", text);
    GB_TRY(gb_packed_part(query, codes, text, "U8", 3, dims, &packed->scales, error));
    packed->codes = codes;
    packed->book = GB_BOOK_E2M1;
    packed->bits = 4;
    packed->group = GROUP;
    packed->row_stride = (uint64_t)(columns / GROUP);
    packed->group_stride = 1;
    packed->row_pairs = has_turns ? (uint64_t)query->dims[1] / 2 : 0;
    return GUMBEL_OK;
}
