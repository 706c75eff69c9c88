/* SPDX-License-Identifier: Apache-2.0 */
#include "export/gguf/metadata.h"

#include "base/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { KEY_BYTES = 160 };

static const char *full_key(const gb_gguf_metadata *metadata, const char *key, char text[KEY_BYTES]) {
    snprintf(text, KEY_BYTES, "%.60s%.90s", key[0] == '.' ? metadata->architecture : "", key);
    return text;
}

void gb_gguf_fail(gb_gguf_metadata *metadata, const char *key, gumbel_status status, const char *format,
                  ...) {
    if (metadata->error.status != GUMBEL_OK)
        return;
    char message[sizeof metadata->error.message], full[KEY_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    gb_fail(&metadata->error, status, "%s: %s: %s", metadata->path, full_key(metadata, key, full), message);
}

const gb_gguf_value *gb_gguf_value_of(const gb_gguf_metadata *metadata, const char *key) {
    char full[KEY_BYTES];
    return gb_gguf_find(&metadata->files->files[0], full_key(metadata, key, full));
}

static const gb_gguf_value *need(gb_gguf_metadata *metadata, const char *key) {
    const gb_gguf_value *value = gb_gguf_value_of(metadata, key);
    if (!value)
        gb_gguf_fail(metadata, key, GUMBEL_ERROR_FORMAT, "the key is missing");
    return value;
}

static int64_t integer_of(gb_gguf_metadata *metadata, const char *key, const gb_gguf_value *value) {
    int64_t integer = 0;
    if (!gb_gguf_integer(value, &integer))
        gb_gguf_fail(metadata, key, GUMBEL_ERROR_FORMAT, "expected an integer, found a value of type %s",
                     gb_gguf_type_name(value->type));
    else if (integer < 0 || integer > INT32_MAX)
        gb_gguf_fail(metadata, key, GUMBEL_ERROR_FORMAT,
                     "expected an integer from 0 to 2147483647, found %" PRId64, integer);
    else
        return integer;
    return 0;
}

int64_t gb_gguf_need_integer(gb_gguf_metadata *metadata, const char *key) {
    const gb_gguf_value *value = need(metadata, key);
    return value ? integer_of(metadata, key, value) : 0;
}

int64_t gb_gguf_get_integer(gb_gguf_metadata *metadata, const char *key, int64_t fallback) {
    const gb_gguf_value *value = gb_gguf_value_of(metadata, key);
    return value ? integer_of(metadata, key, value) : fallback;
}

double gb_gguf_get_number(gb_gguf_metadata *metadata, const char *key, double fallback) {
    const gb_gguf_value *value = gb_gguf_value_of(metadata, key);
    double number = fallback;
    int64_t integer = 0;
    if (!value)
        return fallback;
    if (gb_gguf_integer(value, &integer))
        return (double)integer;
    if (!gb_gguf_number(value, &number))
        gb_gguf_fail(metadata, key, GUMBEL_ERROR_FORMAT, "expected a number, found a value of type %s",
                     gb_gguf_type_name(value->type));
    else if (!isfinite(number))
        gb_gguf_fail(metadata, key, GUMBEL_ERROR_FORMAT, "expected a finite number, found %g", number);
    else
        return number;
    return fallback;
}

double gb_gguf_need_number(gb_gguf_metadata *metadata, const char *key) {
    return need(metadata, key) ? gb_gguf_get_number(metadata, key, 0) : 0;
}

void gb_gguf_need_per_layer(gb_gguf_metadata *metadata, const char *key, int64_t *values, size_t count) {
    const gb_gguf_value *value = need(metadata, key);
    bool is_array = value && value->type == GB_GGUF_ARRAY;
    memset(values, 0, count * sizeof *values);
    if (is_array && value->count != count)
        gb_gguf_fail(metadata, key, GUMBEL_ERROR_FORMAT,
                     "an array of %" PRIu64 ", expected one value for each of %zu layers", value->count,
                     count);
    if (!value || metadata->error.status != GUMBEL_OK)
        return;
    gb_gguf_items items = gb_gguf_items_of(value);
    gb_gguf_value item = *value;
    for (size_t i = 0; i < count; i++) {
        if (is_array && !gb_gguf_next(&items, &item))
            return;
        values[i] = integer_of(metadata, key, &item);
    }
}

int64_t gb_gguf_need_uniform(gb_gguf_metadata *metadata, const char *key, size_t count) {
    int64_t *values = gb_allocate(count, sizeof *values);
    if (!values) {
        gb_gguf_fail(metadata, key, GUMBEL_ERROR_MEMORY, "no memory for %zu layers", count);
        return 0;
    }
    gb_gguf_need_per_layer(metadata, key, values, count);
    for (size_t i = 1; i < count; i++)
        if (values[i] != values[0])
            gb_gguf_fail(metadata, key, GUMBEL_ERROR_UNSUPPORTED,
                         "%" PRId64 " in layer %zu and %" PRId64
                         " in layer 0; layers that differ in it are not supported in this version",
                         values[i], i, values[0]);
    int64_t first = count > 0 ? values[0] : 0;
    gb_free(values);
    return first;
}

char *gb_gguf_copy_text(gb_gguf_metadata *metadata, const char *key) {
    const gb_gguf_value *value = gb_gguf_value_of(metadata, key);
    if (!value)
        return NULL;
    if (value->type != GB_GGUF_STRING || memchr(value->data, 0, (size_t)value->size)) {
        gb_gguf_fail(metadata, key, GUMBEL_ERROR_FORMAT, "expected a text, found %s",
                     value->type == GB_GGUF_STRING ? "one with a zero byte" : gb_gguf_type_name(value->type));
        return NULL;
    }
    char *text = gb_copy_string((const char *)value->data, (size_t)value->size);
    if (!text)
        gb_gguf_fail(metadata, key, GUMBEL_ERROR_MEMORY, "no memory for it");
    return text;
}

bool gb_gguf_text_is(const gb_gguf_metadata *metadata, const char *key, const char *text) {
    const gb_gguf_value *value = gb_gguf_value_of(metadata, key);
    return value && value->type == GB_GGUF_STRING && value->size == strlen(text) &&
           memcmp(value->data, text, (size_t)value->size) == 0;
}

void gb_gguf_set(gb_gguf_metadata *metadata, json_t *object, const char *key, json_t *value) {
    if (json_object_set_new(object, key, value) != 0)
        gb_gguf_fail(metadata, key, GUMBEL_ERROR_MEMORY, "no memory for it");
}

void gb_gguf_append(gb_gguf_metadata *metadata, json_t *array, json_t *value) {
    if (json_array_append_new(array, value) != 0)
        gb_gguf_fail(metadata, "", GUMBEL_ERROR_MEMORY, "no memory for a list");
}
