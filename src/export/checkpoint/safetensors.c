/* SPDX-License-Identifier: Apache-2.0 */
#include "export/checkpoint/safetensors.h"

#include "base/memory.h"
#include "text/base/load_json.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

enum { LENGTH_BYTES = 8 };
static const uint64_t MAX_HEADER_BYTES = 100000000; /* the limit of the reference implementation */

/* The dtypes of the format. Those without one of ours can be listed but not used. */
typedef struct dtype_row {
    const char *name;
    uint32_t bits;
    gb_dtype dtype;
} dtype_row;

static const dtype_row DTYPES[] = {
    {"F32", 32, GB_F32},           {"F16", 16, GB_F16},           {"BF16", 16, GB_BF16},
    {"F64", 64, GB_DTYPE_NONE},    {"C64", 64, GB_DTYPE_NONE},    {"I64", 64, GB_DTYPE_NONE},
    {"I32", 32, GB_DTYPE_NONE},    {"I16", 16, GB_DTYPE_NONE},    {"I8", 8, GB_DTYPE_NONE},
    {"U64", 64, GB_DTYPE_NONE},    {"U32", 32, GB_DTYPE_NONE},    {"U16", 16, GB_DTYPE_NONE},
    {"U8", 8, GB_DTYPE_NONE},      {"BOOL", 8, GB_DTYPE_NONE},    {"F8_E4M3", 8, GB_DTYPE_NONE},
    {"F8_E5M2", 8, GB_DTYPE_NONE}, {"F8_E8M0", 8, GB_DTYPE_NONE}, {"F6_E2M3", 6, GB_DTYPE_NONE},
    {"F6_E3M2", 6, GB_DTYPE_NONE}, {"F4", 4, GB_DTYPE_NONE},
};

static const dtype_row *find_dtype(const char *name) {
    for (size_t i = 0; i < sizeof DTYPES / sizeof DTYPES[0]; i++)
        if (strcmp(DTYPES[i].name, name) == 0)
            return &DTYPES[i];
    return NULL;
}

static gumbel_status read_shape(const json_t *entry, gb_tensor *tensor, uint64_t *elements,
                                gumbel_error *error) {
    const json_t *shape = json_object_get(entry, "shape");
    if (!json_is_array(shape))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "shape: expected a list of sizes");
    if (json_array_size(shape) > GB_TENSOR_MAX_RANK)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "shape: %zu dimensions, expected at most %d",
                       json_array_size(shape), GB_TENSOR_MAX_RANK);
    tensor->rank = (int32_t)json_array_size(shape);
    *elements = 1;
    for (int32_t i = 0; i < tensor->rank; i++) {
        const json_t *dim = json_array_get(shape, (size_t)i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "shape: expected sizes of 0 or more");
        tensor->dims[i] = json_integer_value(dim);
        if (!gb_multiply_size(*elements, (uint64_t)tensor->dims[i], elements))
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "shape: more than 2^64 elements");
    }
    return GUMBEL_OK;
}

static gumbel_status read_offsets(const json_t *entry, uint64_t data_size, uint64_t *begin, uint64_t *end,
                                  gumbel_error *error) {
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const json_t *first = json_array_get(offsets, 0), *second = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(second))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "data_offsets: expected two integers");
    json_int_t low = json_integer_value(first), high = json_integer_value(second);
    if (low < 0 || high < low || (uint64_t)high > data_size)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "data_offsets: [%" JSON_INTEGER_FORMAT ", %" JSON_INTEGER_FORMAT
                       "], expected a range within the %" PRIu64 " bytes of data%s",
                       low, high, data_size,
                       low >= 0 && high >= low ? ": the file is cut short; take another copy of it" : "");
    *begin = (uint64_t)low;
    *end = (uint64_t)high;
    return GUMBEL_OK;
}

static gumbel_status read_tensor(const json_t *entry, const uint8_t *data, uint64_t data_size,
                                 gb_tensor *tensor, gumbel_error *error) {
    if (!json_is_object(entry))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "expected an object");
    const json_t *dtype = json_object_get(entry, "dtype");
    if (!json_is_string(dtype))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "dtype: expected a string");
    tensor->dtype_name = json_string_value(dtype);
    uint64_t elements = 0, begin = 0, end = 0, bits = 0;
    GB_TRY(read_shape(entry, tensor, &elements, error));
    GB_TRY(read_offsets(entry, data_size, &begin, &end, error));
    tensor->data = data + begin;
    tensor->size = end - begin;
    const dtype_row *row = find_dtype(tensor->dtype_name);
    if (!row) /* newer than this table: its size cannot be checked, and it cannot be used */
        return GUMBEL_OK;
    tensor->dtype = row->dtype;
    if (!gb_multiply_size(elements, row->bits, &bits) || bits % 8 != 0 || bits / 8 != tensor->size)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "%" PRIu64 " bytes of data, expected %" PRIu64 " elements of %s", tensor->size,
                       elements, row->name);
    return GUMBEL_OK;
}

static gumbel_status read_tensors(const json_t *header, const uint8_t *data, uint64_t data_size,
                                  gb_safetensors *file, gumbel_error *error) {
    file->tensors = gb_allocate(json_object_size(header), sizeof *file->tensors);
    if (!file->tensors)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %zu tensors", json_object_size(header));
    const char *name = NULL;
    json_t *entry = NULL;
    json_object_foreach((json_t *)(uintptr_t)header, name, entry) {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        gb_tensor *tensor = &file->tensors[file->tensor_count];
        tensor->name = name;
        gumbel_status status = read_tensor(entry, data, data_size, tensor, error);
        if (status != GUMBEL_OK)
            return gb_prefix(error, status, "tensor %s", name);
        file->tensor_count++;
    }
    return GUMBEL_OK;
}

static uint64_t little_endian(const uint8_t bytes[LENGTH_BYTES]) {
    uint64_t value = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

static gumbel_status parse(const uint8_t *data, size_t size, gb_safetensors *file, gumbel_error *error) {
    if (size < LENGTH_BYTES)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%zu bytes, too short for a safetensors file", size);
    uint64_t length = little_endian(data);
    if (length > MAX_HEADER_BYTES)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "a header of %" PRIu64 " bytes, expected at most %" PRIu64
                       " (is this a safetensors file?)",
                       length, MAX_HEADER_BYTES);
    if (length > size - LENGTH_BYTES)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "a header of %" PRIu64
                       " bytes in a file of %zu: the file is cut short; take another copy of it",
                       length, size);
    json_t *header;
    GB_TRY(gb_load_json("header", (const char *)data + LENGTH_BYTES, length, JSON_REJECT_DUPLICATES, &header,
                        error));
    file->header = header;
    if (!json_is_object(header))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "header: expected a JSON object");
    return read_tensors(header, data + LENGTH_BYTES + length, size - LENGTH_BYTES - length, file, error);
}

gumbel_status gb_safetensors_parse(const char *name, const uint8_t *data, size_t size, gb_safetensors *file,
                                   gumbel_error *error) {
    *file = (gb_safetensors){0};
    gumbel_status status = parse(data, size, file, error);
    if (status == GUMBEL_OK)
        return GUMBEL_OK;
    gb_safetensors_close(file);
    return gb_prefix(error, status, "%s", name);
}

gumbel_status gb_safetensors_open(const char *path, gb_safetensors *file, gumbel_error *error) {
    *file = (gb_safetensors){0};
    gb_file_map map;
    GB_TRY(gb_map_file(path, &map, error));
    gumbel_status status = gb_safetensors_parse(path, map.data, map.size, file, error);
    if (status != GUMBEL_OK) {
        gb_unmap_file(&map);
        return status;
    }
    file->map = map;
    return GUMBEL_OK;
}

void gb_safetensors_close(gb_safetensors *file) {
    gb_free(file->tensors);
    json_decref(file->header);
    gb_unmap_file(&file->map);
    *file = (gb_safetensors){0};
}
