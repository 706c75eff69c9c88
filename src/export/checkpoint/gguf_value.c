/* SPDX-License-Identifier: Apache-2.0 */
#include "export/checkpoint/gguf_value.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 4 };

const char *gb_gguf_type_name(gb_gguf_type type) {
    switch (type) {
#define X(number, enumerator, name, size)                                                                    \
    case enumerator:                                                                                         \
        return name;
        GB_GGUF_TYPES(X)
#undef X
    default:
        return "?";
    }
}

/* Bytes of a number, 0 for a string or an array. */
static uint64_t fixed_size(gb_gguf_type type) {
    switch (type) {
#define X(number, enumerator, name, size)                                                                    \
    case enumerator:                                                                                         \
        return size;
        GB_GGUF_TYPES(X)
#undef X
    default:
        return 0;
    }
}

uint64_t gb_read_u64(gb_byte_reader *reader) {
    uint64_t low = gb_read_u32(reader);
    return low | (uint64_t)gb_read_u32(reader) << 32;
}

static gumbel_status ends_early(gumbel_error *error) {
    return gb_fail(error, GUMBEL_ERROR_FORMAT, "the file ends within the value");
}

static gumbel_status read_at(gb_byte_reader *reader, uint32_t type, int depth, gb_gguf_value *value,
                             gumbel_error *error);

/* Array items of a size that is not fixed have to be walked through to find the end. */
static gumbel_status skip_items(gb_byte_reader *reader, const gb_gguf_value *array, int depth,
                                gumbel_error *error) {
    gb_gguf_value item;
    for (uint64_t i = 0; i < array->count; i++)
        GB_TRY(read_at(reader, (uint32_t)array->item_type, depth + 1, &item, error));
    return GUMBEL_OK;
}

static gumbel_status read_array(gb_byte_reader *reader, int depth, gb_gguf_value *value,
                                gumbel_error *error) {
    if (depth == MAX_DEPTH)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "arrays within arrays, expected at most %d", MAX_DEPTH);
    uint32_t item_type = gb_read_u32(reader);
    value->count = gb_read_u64(reader);
    if (reader->failed)
        return ends_early(error);
    if (item_type >= GB_GGUF_TYPE_COUNT)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "an array of type %" PRIu32 ", expected 0 to %d",
                       item_type, GB_GGUF_TYPE_COUNT - 1);
    value->item_type = (gb_gguf_type)item_type;
    value->data = reader->data;
    size_t before = reader->size;
    uint64_t item_size = fixed_size(value->item_type), bytes = 0;
    if (item_size == 0)
        GB_TRY(skip_items(reader, value, depth, error));
    else if (!gb_multiply_size(value->count, item_size, &bytes) || !gb_read_bytes(reader, bytes))
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "an array of %" PRIu64 " items of %s, but the file ends %zu bytes on", value->count,
                       gb_gguf_type_name(value->item_type), before);
    value->size = before - reader->size;
    return GUMBEL_OK;
}

static gumbel_status read_at(gb_byte_reader *reader, uint32_t type, int depth, gb_gguf_value *value,
                             gumbel_error *error) {
    if (type >= GB_GGUF_TYPE_COUNT)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "a value of type %" PRIu32 ", expected 0 to %d", type,
                       GB_GGUF_TYPE_COUNT - 1);
    *value = (gb_gguf_value){.type = (gb_gguf_type)type, .count = 1};
    if (value->type == GB_GGUF_ARRAY)
        return read_array(reader, depth, value, error);
    value->size = fixed_size(value->type);
    if (value->type == GB_GGUF_STRING)
        value->count = value->size = gb_read_u64(reader);
    value->data = gb_read_bytes(reader, value->size);
    return value->data ? GUMBEL_OK : ends_early(error);
}

gumbel_status gb_gguf_read_value(gb_byte_reader *reader, uint32_t type, gb_gguf_value *value,
                                 gumbel_error *error) {
    return read_at(reader, type, 0, value, error);
}

gb_gguf_items gb_gguf_items_of(const gb_gguf_value *array) {
    return (gb_gguf_items){
        .data = array->data, .size = array->size, .left = array->count, .type = array->item_type};
}

bool gb_gguf_next(gb_gguf_items *items, gb_gguf_value *item) {
    if (items->left == 0)
        return false;
    gb_byte_reader reader = {.data = items->data, .size = (size_t)items->size};
    if (read_at(&reader, (uint32_t)items->type, 1, item, NULL) != GUMBEL_OK)
        return false;
    items->data = reader.data;
    items->size = reader.size;
    items->left--;
    return true;
}

/* ---- Numbers ---- */

static uint64_t load(const gb_gguf_value *value) {
    uint64_t bits = 0;
    for (uint64_t i = value->size; i > 0; i--)
        bits = bits << 8 | value->data[i - 1];
    return bits;
}

bool gb_gguf_integer(const gb_gguf_value *value, int64_t *integer) {
    switch (value->type) {
    case GB_GGUF_UINT8:
    case GB_GGUF_UINT16:
    case GB_GGUF_UINT32:
        *integer = (int64_t)load(value);
        return true;
    case GB_GGUF_INT8:
        *integer = (int8_t)load(value);
        return true;
    case GB_GGUF_INT16:
        *integer = (int16_t)load(value);
        return true;
    case GB_GGUF_INT32:
        *integer = (int32_t)load(value);
        return true;
    case GB_GGUF_INT64:
        *integer = (int64_t)load(value);
        return true;
    case GB_GGUF_BOOL:
        *integer = load(value) != 0;
        return true;
    case GB_GGUF_UINT64:
        *integer = (int64_t)load(value);
        return *integer >= 0;
    default:
        return false;
    }
}

/* The decimal with the fewest digits that still rounds to x. */
static double shortest_decimal(float x) {
    for (int digits = 1; digits <= 9; digits++) {
        char text[32];
        snprintf(text, sizeof text, "%.*g", digits, (double)x);
        if (strtof(text, NULL) == x)
            return strtod(text, NULL);
    }
    return (double)x;
}

bool gb_gguf_number(const gb_gguf_value *value, double *number) {
    uint64_t bits = value->size <= 8 ? load(value) : 0;
    if (value->type == GB_GGUF_FLOAT32) {
        uint32_t low = (uint32_t)bits;
        float x;
        memcpy(&x, &low, sizeof x);
        *number = shortest_decimal(x);
        return true;
    }
    if (value->type == GB_GGUF_FLOAT64)
        memcpy(number, &bits, sizeof *number);
    return value->type == GB_GGUF_FLOAT64;
}
