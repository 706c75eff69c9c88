/* SPDX-License-Identifier: Apache-2.0
 *
 * MLX's quantization, as mlx-lm stores it: codes in 32-bit words that are one sequence of bits, scales and
 * biases [.., columns / group], or, in the modes of floats, bytes alone: exponents, of nvfp4 E4M3. Bits and
 * group size of a module are those that the configuration gives it by name; of any other module the shapes
 * tell them.
 */
#include "export/packed/parts.h"

#include <inttypes.h>
#include <string.h>

enum { NVFP4_GROUP = 16 };

bool gb_packed_mlx_name(const gb_packed_query *query, char text[GB_PACKED_NAME]) {
    return gb_packed_rename(query->name, ".weight", ".weight", text);
}

bool gb_packed_has_mlx_words(const gb_packed_query *query, const gb_tensor *codes) {
    char text[GB_PACKED_NAME];
    return codes && strcmp(codes->dtype_name, "U32") == 0 && gb_packed_mlx_name(query, text);
}

/* From the lengths of rows: columns * bits = 32 * words and columns = group * groups, if they are whole. */
static gb_mlx_module infer(int64_t columns, int64_t words, int64_t groups) {
    gb_mlx_module found = {.bits = 0, .group = 0};
    if (groups > 0 && columns % groups == 0)
        found.group = columns / groups;
    if (words > 0 && words <= columns && 32 * words % columns == 0)
        found.bits = 32 * words / columns;
    return found;
}

static bool has_bytes(const gb_tensor *scales) {
    return scales && strcmp(scales->dtype_name, "U8") == 0;
}

static gumbel_status check_size(const gb_packed_query *query, const gb_tensor *codes, const gb_tensor *scales,
                                const gb_mlx_module *module, gumbel_error *error) {
    int64_t bits = module->bits, group = module->group, columns = query->dims[query->rank - 1];
    bool has_bits = (bits >= 4 && bits <= 6) || bits == 8;
    bool has_group = group == 32 || group == 64 || group == 128;
    if (!has_bytes(scales) && (!has_bits || !has_group))
        return gb_packed_fail(query, codes, GUMBEL_ERROR_UNSUPPORTED, error,
                              "has codes of %" PRId64 " bits in groups of %" PRId64
                              ", expected 4, 5, 6 or 8 bits in groups of 32, 64 or 128",
                              bits, group);
    if (columns % group != 0)
        return gb_packed_fail(query, codes, GUMBEL_ERROR_FORMAT, error,
                              "has rows of %" PRId64 " weights, which groups of %" PRId64 " do not divide",
                              columns, group);
    return GUMBEL_OK;
}

/* Of the modes of floats each has one number of bits and one group. */
static gumbel_status check_mode(const gb_packed_query *query, const gb_tensor *scales,
                                const gb_mlx_module *module, gumbel_error *error) {
    const bool is_of_32 = module->group == 32 && (module->bits == 4 || module->bits == 8);
    if (!has_bytes(scales) || is_of_32 || (module->bits == 4 && module->group == NVFP4_GROUP))
        return GUMBEL_OK;
    return gb_packed_fail(query, scales, GUMBEL_ERROR_UNSUPPORTED, error,
                          "has dtype U8 beside codes of %" PRId64 " bits in groups of %" PRId64
                          ", expected those of mxfp4, nvfp4 or mxfp8: 4 in 32, 4 in 16 or 8 in 32",
                          module->bits, module->group);
}

gumbel_status gb_packed_mlx_module(const gb_packed_query *query, const gb_tensor *codes,
                                   char text[GB_PACKED_NAME], gb_mlx_module *module, gumbel_error *error) {
    const int64_t columns = query->dims[query->rank - 1];
    gb_packed_rename(query->name, ".weight", "", text);
    GB_TRY(gb_quantization_mlx_module(query->packing, text, module, error));
    gb_packed_rename(query->name, ".weight", ".scales", text);
    const gb_tensor *scales = gb_checkpoint_find(query->checkpoint, text);
    if (!module->is_said && scales && scales->rank > 0 && codes->rank > 0)
        *module = infer(columns, codes->dims[codes->rank - 1], scales->dims[scales->rank - 1]);
    GB_TRY(check_mode(query, scales, module, error));
    return scales ? check_size(query, codes, scales, module, error) : GUMBEL_OK;
}

/* Where there are none either they are missing, or the scales are those of a mode of floats in a wrong dtype.
 */
static gumbel_status find_biases(const gb_packed_query *query, const char *name, int32_t rank,
                                 const int64_t *dims, gb_packed *packed, gumbel_error *error) {
    const gb_tensor *scales = packed->scales;
    if (!gb_checkpoint_find(query->checkpoint, name))
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "%s: tensor %s is missing, which belongs to %s of dtype %s; in the modes mxfp4, mxfp8 "
                       "and nvfp4, which have no biases, scales have dtype U8",
                       gb_checkpoint_path(query->checkpoint), name, scales->name, scales->dtype_name);
    return gb_packed_part(query, scales, name, scales->dtype_name, rank, dims, &packed->offsets, error);
}

gumbel_status gb_packed_find_mlx(const gb_packed_query *query, gb_packed *packed, bool *is_found,
                                 gumbel_error *error) {
    char text[GB_PACKED_NAME];
    const gb_tensor *codes = gb_checkpoint_find(query->checkpoint, query->name);
    *is_found = gb_packed_has_mlx_words(query, codes);
    if (!*is_found)
        return GUMBEL_OK;
    int32_t rank = query->rank;
    int64_t dims[GB_TENSOR_MAX_RANK], columns = query->dims[rank - 1];
    memcpy(dims, query->dims, (size_t)rank * sizeof *dims);
    gb_mlx_module module;
    GB_TRY(gb_packed_mlx_module(query, codes, text, &module, error));
    *is_found = !has_bytes(gb_checkpoint_find(query->checkpoint, text)) || module.bits == 4;
    if (!*is_found) /* mxfp8.c */
        return GUMBEL_OK;
    dims[rank - 1] = module.group ? columns / module.group : 0;
    GB_TRY(gb_packed_part(query, codes, text, "F32 F16 BF16 U8", rank, dims, &packed->scales, error));
    packed->book = has_bytes(packed->scales) ? GB_BOOK_E2M1 : GB_BOOK_NONE;
    packed->has_float_scales = packed->book != GB_BOOK_NONE && module.group == NVFP4_GROUP;
    packed->offset_kind = packed->book == GB_BOOK_NONE ? GB_OFFSETS_BIASES : GB_OFFSETS_NONE;
    gb_packed_rename(query->name, ".weight", ".biases", text);
    if (packed->offset_kind == GB_OFFSETS_BIASES)
        GB_TRY(find_biases(query, text, rank, dims, packed, error));
    dims[rank - 1] = columns * module.bits / 32;
    GB_TRY(gb_checkpoint_check_shape(query->checkpoint, codes, rank, dims, error));
    packed->codes = codes;
    packed->bits = (uint32_t)module.bits;
    packed->group = (uint64_t)module.group;
    packed->row_stride = packed->columns / packed->group;
    packed->group_stride = 1;
    return GUMBEL_OK;
}
