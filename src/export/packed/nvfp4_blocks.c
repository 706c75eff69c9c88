/* SPDX-License-Identifier: Apache-2.0
 *
 * NVFP4 in GGUF with the scale of scales that checkpoints have: blocks of NAME.weight and one float32 in
 * NAME.scale, or one for each of the experts in a tensor. The product of two floats is no scale of a format,
 * so that these are numbers, as in safetensors; blocks alone stay codes.
 */
#include "export/checkpoint/ggml_types.h"
#include "export/packed/parts.h"

const gb_tensor *gb_nvfp4_companion(const gb_checkpoint *checkpoint, const gb_tensor *codes,
                                    const char *ending) {
    char own[GB_FILE_NAME], text[GB_PACKED_NAME];
    if (!codes || !codes->blocks || codes->blocks->number != GB_BLOCK_NVFP4)
        return NULL;
    const char *name = gb_checkpoint_file_name(checkpoint, codes->name, own);
    return gb_packed_rename(name, ".weight", ending, text) ? gb_checkpoint_find(checkpoint, text) : NULL;
}

gumbel_status gb_nvfp4_blocks_find(const gb_packed_query *query, gb_fp8_found *found, bool *is_found,
                                   gumbel_error *error) {
    const gb_tensor *codes = gb_checkpoint_find(query->checkpoint, query->name);
    const gb_tensor *scale = gb_nvfp4_companion(query->checkpoint, codes, ".scale");
    const int64_t count = query->rank == 3 ? query->dims[0] : 1;
    *found = (gb_fp8_found){.codes = codes, .scales = scale};
    *is_found = scale != NULL;
    if (!scale)
        return GUMBEL_OK;
    GB_TRY(gb_checkpoint_check_shape(query->checkpoint, codes, query->rank, query->dims, error));
    GB_TRY(gb_packed_part(query, codes, scale->name, "F32", 1, &count, &found->scales, error));
    found->matrix = (gb_fp8){.codes = codes->data, .scales = scale->data, .has_blocks = true};
    return GUMBEL_OK;
}
