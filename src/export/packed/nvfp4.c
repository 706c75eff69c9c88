/* SPDX-License-Identifier: Apache-2.0
 *
 * NVFP4: codes of E2M1, two a byte, [rows, columns / 2]; scales of E4M3 [rows, columns / 16]; and one float32
 * that all scales of the matrix are multiplied with or divided by.
 *
 *     modelopt             NAME.weight, NAME.weight_scale, NAME.weight_scale_2: w = e2m1 (e4m3 global)
 *     compressed-tensors   NAME.weight_packed, weight_scale, weight_global_scale: w = e2m1 (e4m3 / global)
 */
#include "export/packed/fp8.h"
#include "export/packed/parts.h"
#include "export/packed/quantization_methods.h"

#include <inttypes.h>
#include <string.h>

enum { GROUP = 16 };

/* ---- Configuration ------------------------------------------------------------------------------------- */

void gb_quantization_read_compressed_nvfp4(const gb_config *quantization, gb_quantization *packing) {
    static const char *const formats[] = {"nvfp4-pack-quantized"};
    const gb_config groups = gb_config_child(quantization, "config_groups");
    *packing = (gb_quantization){.method = GB_QUANTIZATION_NVFP4,
                                 .fp4_codes = ".weight_packed",
                                 .fp4_global = ".weight_global_scale",
                                 .fp4_divides = true,
                                 .leaves_input_scales = true};
    gb_config_refuse_object(quantization, "transform_config", "rotated weights are");
    for (const char *name = NULL; (name = gb_config_next_key(&groups, name));) {
        const gb_config group = gb_config_child(&groups, name);
        gb_config_expect_text(&group, "format", formats, 1, "\"nvfp4-pack-quantized\"");
    }
}

/* ---- Tensors ------------------------------------------------------------------------------------------- */

/* The codes of the matrix of that name, or NULL. */
static const gb_tensor *find_codes(const gb_quantization *packing, const gb_checkpoint *checkpoint,
                                   const char *name) {
    char text[GB_PACKED_NAME];
    if (!packing || packing->method != GB_QUANTIZATION_NVFP4 ||
        !gb_packed_rename(name, ".weight", packing->fp4_codes, text))
        return NULL;
    const gb_tensor *codes = gb_checkpoint_find(checkpoint, text);
    return codes && strcmp(codes->dtype_name, "U8") == 0 ? codes : NULL;
}

bool gb_fp8_has(const gb_quantization *packing, const gb_checkpoint *checkpoint, const char *name) {
    return find_codes(packing, checkpoint, name) != NULL;
}

static gumbel_status find_global(const gb_packed_query *query, gb_fp8_found *found, gumbel_error *error) {
    char text[GB_PACKED_NAME];
    const int64_t one = 1;
    if (!gb_packed_rename(query->name, ".weight", query->packing->fp4_global, text))
        return gb_packed_fail(query, found->codes, GUMBEL_ERROR_FORMAT, error, "has too long a name");
    const gb_tensor *global = gb_checkpoint_find(query->checkpoint, text);
    GB_TRY(gb_packed_part(query, found->codes, text, "F32", global ? global->rank : 1,
                          global ? global->dims : &one, &found->global, error));
    if (found->global->size != sizeof found->matrix.global)
        return gb_packed_fail(query, found->global, GUMBEL_ERROR_FORMAT, error, "has more than one number");
    memcpy(&found->matrix.global, found->global->data, sizeof found->matrix.global);
    return GUMBEL_OK;
}

gumbel_status gb_nvfp4_find(const gb_quantization *packing, const gb_checkpoint *checkpoint, const char *name,
                            const int64_t dims[2], gb_fp8_found *found, bool *is_found, gumbel_error *error) {
    const gb_packed_query query = {packing, checkpoint, name, 2, dims};
    char text[GB_PACKED_NAME];
    *found = (gb_fp8_found){.codes = find_codes(packing, checkpoint, name)};
    *is_found = true;
    if (dims[1] % GROUP != 0)
        return gb_packed_fail(&query, found->codes, GUMBEL_ERROR_FORMAT, error,
                              "has rows of %" PRId64 " weights, which groups of %d do not divide", dims[1],
                              GROUP);
    GB_TRY(gb_checkpoint_check_shape(checkpoint, found->codes, 2, (const int64_t[]){dims[0], dims[1] / 2},
                                     error));
    if (!gb_packed_rename(name, ".weight", ".weight_scale", text))
        return gb_packed_fail(&query, found->codes, GUMBEL_ERROR_FORMAT, error, "has too long a name");
    GB_TRY(gb_packed_part(&query, found->codes, text, "F8_E4M3", 2,
                          (const int64_t[]){dims[0], dims[1] / GROUP}, &found->scales, error));
    found->matrix = (gb_fp8){.codes = found->codes->data,
                             .scales = found->scales->data,
                             .block_rows = 1,
                             .block_columns = GROUP,
                             .scale_columns = (uint64_t)dims[1] / GROUP,
                             .has_4_bits = true,
                             .is_divisor = packing->fp4_divides};
    return find_global(&query, found, error);
}
