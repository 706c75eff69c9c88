/* SPDX-License-Identifier: Apache-2.0
 *
 * MLX's mode mxfp8: codes of E4M3 in 32-bit words, and for each 32 of a row an exponent (OCP microscaling
 * formats, 2023). A matrix, or experts in one tensor.
 */
#include "export/packed/parts.h"

#include <string.h>

enum { GROUP = 32, WORD = 4 };

bool gb_mxfp8_has_scales(const gb_checkpoint *checkpoint, const gb_tensor *scales) {
    char text[GB_PACKED_NAME];
    if (strcmp(scales->dtype_name, "U8") != 0 || scales->rank < 1 ||
        !gb_packed_rename(scales->name, ".scales", ".weight", text))
        return false;
    const gb_tensor *codes = gb_checkpoint_find(checkpoint, text);
    return codes && codes->rank == scales->rank &&
           codes->dims[codes->rank - 1] / (GROUP / WORD) == scales->dims[scales->rank - 1];
}

/* Where there are codes of this mode their shape is checked, and they have scales. */
static gumbel_status find_codes(const gb_packed_query *query, gb_fp8_found *found, bool *is_found,
                                gumbel_error *error) {
    char text[GB_PACKED_NAME];
    gb_mlx_module module;
    int64_t dims[GB_TENSOR_MAX_RANK];
    const int32_t last = query->rank - 1;
    memcpy(dims, query->dims, (size_t)query->rank * sizeof *dims);
    GB_TRY(gb_packed_mlx_module(query, found->codes, text, &module, error));
    found->scales = gb_checkpoint_find(query->checkpoint, text);
    *is_found = found->scales && strcmp(found->scales->dtype_name, "U8") == 0 && module.bits == 8;
    if (!*is_found)
        return GUMBEL_OK;
    dims[last] = query->dims[last] / WORD;
    GB_TRY(gb_checkpoint_check_shape(query->checkpoint, found->codes, query->rank, dims, error));
    dims[last] = query->dims[last] / GROUP;
    return gb_checkpoint_check_shape(query->checkpoint, found->scales, query->rank, dims, error);
}

gumbel_status gb_mxfp8_find(const gb_packed_query *query, gb_fp8_found *found, bool *is_found,
                            gumbel_error *error) {
    *found = (gb_fp8_found){.codes = gb_checkpoint_find(query->checkpoint, query->name)};
    *is_found = false;
    if (!gb_packed_has_mlx_words(query, found->codes))
        return GUMBEL_OK;
    GB_TRY(find_codes(query, found, is_found, error));
    if (*is_found)
        found->matrix = (gb_fp8){.codes = found->codes->data,
                                 .scales = found->scales->data,
                                 .block_rows = 1,
                                 .block_columns = GROUP,
                                 .scale_columns = (uint64_t)query->dims[query->rank - 1] / GROUP,
                                 .has_exponents = true};
    return GUMBEL_OK;
}
