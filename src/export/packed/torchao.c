/* SPDX-License-Identifier: Apache-2.0
 *
 * torchao's tensors as its safetensors support lays them out, and ExecuTorch's quantize_and_save and
 * transformers with it: the file's metadata has a JSON object for each weight, with its kind and block size.
 *
 *     Int4Tensor                 qdata U8 [rows, columns / 2], the first code in the low bits; scale and
 *                                zero_point, both floats, [groups, rows]
 *     IntxUnpackedToInt8Tensor   qdata I8 [rows, columns]; scale [rows, groups], zero_point I8 the same
 */
#include "base/memory.h"
#include "export/packed/parts.h"
#include "text/base/load_json.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* MODULE.weight is spread over MODULE._weight_PART. */
static bool part_name(const char *name, const char *part, char text[GB_PACKED_NAME]) {
    const char *point = strrchr(name, '.');
    const char *last = point ? point + 1 : name;
    if (strlen(name) + strlen(part) + 3 > GB_PACKED_NAME)
        return false;
    snprintf(text, GB_PACKED_NAME, "%.*s_%s_%s", (int)(last - name), name, last, part);
    return true;
}

bool gb_packed_torchao_name(const gb_packed_query *query, char text[GB_PACKED_NAME]) {
    return part_name(query->name, "qdata", text);
}

/* The columns that share a scale: block_size is [1, group]. 0: it is something else. */
static int64_t read_group(const json_t *about) {
    const json_t *block = json_object_get(json_object_get(about, "_data"), "block_size");
    if (json_array_size(block) != 2 || json_integer_value(json_array_get(block, 0)) != 1)
        return 0;
    json_int_t group = json_integer_value(json_array_get(block, 1));
    return group > 0 && group <= INT32_MAX ? (int64_t)group : 0;
}

typedef struct tensor_kind {
    const char *name; /* of the class */
    const char *codes, *zeros;
    uint32_t bits;
    bool is_transposed; /* scales and zero points are [groups, rows] */
    gb_packed_offsets offsets;
} tensor_kind;

static const tensor_kind KINDS[] = {
    {"Int4Tensor", "U8", "F32 F16 BF16", 4, true, GB_OFFSETS_FLOATS},
    {"IntxUnpackedToInt8Tensor", "I8", "I8", 8, false, GB_OFFSETS_BYTES},
};

static gumbel_status find_kind(const gb_packed_query *query, const gb_tensor *codes, const json_t *about,
                               const tensor_kind **found, gumbel_error *error) {
    const char *type = json_string_value(json_object_get(about, "_type"));
    *found = NULL;
    if (!type)
        return gb_packed_fail(query, codes, GUMBEL_ERROR_FORMAT, error,
                              "is torchao's, but no metadata of the file says of which kind %s is",
                              query->name);
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++)
        if (strcmp(type, KINDS[i].name) == 0)
            *found = &KINDS[i];
    if (!*found)
        return gb_packed_fail(query, codes, GUMBEL_ERROR_UNSUPPORTED, error,
                              "is part of torchao's %.60s, which is not supported in this version; expected "
                              "Int4Tensor or IntxUnpackedToInt8Tensor",
                              type);
    return GUMBEL_OK;
}

/* Scales and zero points, both of the same shape. */
static gumbel_status find_numbers(const gb_packed_query *query, const tensor_kind *kind, int64_t groups,
                                  gb_packed *packed, gumbel_error *error) {
    char text[GB_PACKED_NAME];
    const int64_t rows = query->dims[0];
    const int64_t dims[] = {kind->is_transposed ? groups : rows, kind->is_transposed ? rows : groups};
    part_name(query->name, "scale", text);
    GB_TRY(gb_packed_part(query, packed->codes, text, "F32 F16 BF16", 2, dims, &packed->scales, error));
    packed->row_stride = kind->is_transposed ? 1 : (uint64_t)groups;
    packed->group_stride = kind->is_transposed ? (uint64_t)rows : 1;
    part_name(query->name, "zero_point", text);
    if (!gb_checkpoint_find(query->checkpoint, text))
        return GUMBEL_OK;
    packed->offset_kind = kind->offsets;
    return gb_packed_part(query, packed->codes, text, kind->zeros, 2, dims, &packed->offsets, error);
}

static gumbel_status find_parts(const gb_packed_query *query, const json_t *about, gb_packed *packed,
                                gumbel_error *error) {
    const gb_tensor *codes = packed->codes;
    const tensor_kind *kind;
    GB_TRY(find_kind(query, codes, about, &kind, error));
    if (query->rank != 2)
        return gb_packed_fail(query, codes, GUMBEL_ERROR_UNSUPPORTED, error,
                              "is part of a stack of matrices, which is not supported in this version");
    const int64_t rows = query->dims[0], columns = query->dims[1], group = read_group(about);
    if (group == 0 || columns % group != 0 || columns % 2 != 0)
        return gb_packed_fail(query, codes, GUMBEL_ERROR_FORMAT, error,
                              "has a block size other than [1, G] with a G that divides rows of %" PRId64,
                              columns);
    if (strcmp(codes->dtype_name, kind->codes) != 0)
        return gb_packed_fail(query, codes, GUMBEL_ERROR_FORMAT, error, "has dtype %s, expected %s",
                              codes->dtype_name, kind->codes);
    packed->bits = kind->bits;
    packed->has_signed_codes = kind->bits == 8;
    packed->group = (uint64_t)group;
    GB_TRY(gb_checkpoint_check_shape(query->checkpoint, codes, 2,
                                     (const int64_t[]){rows, columns * kind->bits / 8}, error));
    return find_numbers(query, kind, columns / group, packed, error);
}

gumbel_status gb_packed_find_torchao(const gb_packed_query *query, gb_packed *packed, bool *is_found,
                                     gumbel_error *error) {
    char text[GB_PACKED_NAME];
    packed->codes = gb_packed_torchao_name(query, text) ? gb_checkpoint_find(query->checkpoint, text) : NULL;
    *is_found = packed->codes != NULL;
    if (!*is_found)
        return GUMBEL_OK;
    const char *about = gb_checkpoint_metadata(query->checkpoint, query->name);
    json_t *object = NULL;
    if (about && gb_load_json(query->name, about, strlen(about), 0, &object, error) == GUMBEL_ERROR_MEMORY)
        return GUMBEL_ERROR_MEMORY;
    gumbel_status status = find_parts(query, object, packed, error);
    json_decref(object);
    return status;
}
