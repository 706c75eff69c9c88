/* SPDX-License-Identifier: Apache-2.0 */
#include "program/shard/letters.h"

#include "program/op_traits.h"
#include "program/shard/shard.h"

#include <string.h>

int32_t gb_letter_of(gb_op op, const gb_type_pattern *pattern, int32_t rank, int32_t dim) {
    if (pattern->kind == GB_PATTERN_RULE)
        return op == GB_OP_EXPERT_LINEAR && dim == rank - 1 ? 'O' : GB_LETTER_NONE;
    const bool has_any = pattern->dim_count > 0 && pattern->dims[0] == GB_DIM_ANY_DIMS;
    const int32_t ahead = has_any ? rank - (pattern->dim_count - 1) : 0;
    if (dim < ahead)
        return GB_LETTER_ANY + dim;
    const int32_t at = dim - ahead + has_any;
    const int64_t size = at < pattern->dim_count ? pattern->dims[at] : 0;
    return size < 0 && size != GB_DIM_N && size != GB_DIM_B ? (int32_t)-size : GB_LETTER_NONE;
}

int32_t gb_dim_of_letter(gb_op op, const gb_type_pattern *pattern, int32_t rank, int32_t letter) {
    for (int32_t dim = 0; dim < rank; dim++)
        if (gb_letter_of(op, pattern, rank, dim) == letter)
            return dim;
    return GB_WHOLE;
}

bool gb_op_cuts(gb_op op, int32_t letter) {
    const char *cuts = gb_op_traits_find(op)->cuts;
    if (!cuts || letter == GB_LETTER_NONE)
        return false;
    return letter >= GB_LETTER_ANY ? strcmp(cuts, "...") == 0 : strchr(cuts, (char)letter) != NULL;
}
