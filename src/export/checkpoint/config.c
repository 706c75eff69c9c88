/* SPDX-License-Identifier: Apache-2.0 */
#include "export/checkpoint/config.h"

#include "base/memory.h"
#include "export/checkpoint/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const size_t MAX_CONFIG_BYTES = 16000000;

struct gb_config_file {
    char *path;
    json_t *root;
    gumbel_error error; /* status is GUMBEL_OK until something is wrong */
};

gumbel_status gb_config_from_json(const char *name, json_t *root, gb_config_file **file,
                                  gumbel_error *error) {
    *file = NULL;
    gb_config_file *opened = gb_allocate(1, sizeof *opened);
    if (!opened || !(opened->path = gb_copy_string(name, strlen(name)))) {
        gb_config_close(opened);
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory to read it", name);
    }
    opened->root = json_incref(root);
    *file = opened;
    return GUMBEL_OK;
}

gumbel_status gb_config_open(const char *path, gb_config_file **file, gumbel_error *error) {
    *file = NULL;
    json_t *root = NULL;
    GB_TRY(gb_read_json(path, MAX_CONFIG_BYTES, &root, error));
    gumbel_status status = gb_config_from_json(path, root, file, error);
    json_decref(root);
    return status;
}

void gb_config_close(gb_config_file *file) {
    if (!file)
        return;
    json_decref(file->root);
    gb_free(file->path);
    gb_free(file);
}

gumbel_status gb_config_status(const gb_config_file *file, gumbel_error *error) {
    if (file->error.status != GUMBEL_OK && error)
        *error = file->error;
    return file->error.status;
}

void gb_config_fail(const gb_config *config, const char *key, gumbel_status status, const char *format, ...) {
    gb_config_file *file = config->file;
    if (file->error.status != GUMBEL_OK)
        return;
    char message[sizeof file->error.message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    gb_fail(&file->error, status, "%s: %s%s: %s", file->path, config->path, key, message);
}

static void fail_type(const gb_config *config, const char *key, const char *expected, const json_t *found) {
    char text[GB_JSON_TEXT];
    gb_config_fail(config, key, GUMBEL_ERROR_FORMAT, "expected %s, found %s", expected,
                   gb_json_text(found, text));
}

static json_t *get(const gb_config *config, const char *key) {
    return json_object_get(config->object, key);
}

gb_config gb_config_root(gb_config_file *file) {
    return (gb_config){.file = file, .object = file->root};
}

gb_config gb_config_child(const gb_config *config, const char *key) {
    gb_config child = {.file = config->file};
    snprintf(child.path, sizeof child.path, "%.100s%.80s.", config->path, key); /* cut, not overrun */
    json_t *value = get(config, key);
    if (json_is_object(value))
        child.object = value;
    else if (value && !json_is_null(value))
        fail_type(config, key, "an object", value);
    return child;
}

bool gb_config_has(const gb_config *config, const char *key) {
    const json_t *value = get(config, key);
    return value && !json_is_null(value);
}

bool gb_config_is_null(const gb_config *config, const char *key) {
    const json_t *value = get(config, key);
    return value && json_is_null(value);
}

int64_t gb_config_integer(const gb_config *config, const char *key, int64_t fallback, int64_t low,
                          int64_t high) {
    const json_t *value = get(config, key);
    if (!value)
        return fallback;
    if (json_is_integer(value) && json_integer_value(value) >= low && json_integer_value(value) <= high)
        return json_integer_value(value);
    char expected[80];
    snprintf(expected, sizeof expected, "an integer from %" PRId64 " to %" PRId64, low, high);
    fail_type(config, key, expected, value);
    return fallback;
}

int64_t gb_config_optional_integer(const gb_config *config, const char *key, int64_t fallback, int64_t low,
                                   int64_t high) {
    return gb_config_has(config, key) ? gb_config_integer(config, key, fallback, low, high) : fallback;
}

/* NAN where it is none. transformers writes infinity as an object. */
static double number_of(const json_t *value) {
    const char *special = json_string_value(json_object_get(value, "__float__"));
    if (special && strcmp(special, "Infinity") == 0)
        return INFINITY;
    return json_is_number(value) ? json_number_value(value) : NAN;
}

double gb_config_number(const gb_config *config, const char *key, double fallback, double low, double high) {
    const json_t *value = get(config, key);
    if (!value)
        return fallback;
    const double number = number_of(value);
    if (number >= low && number <= high)
        return number;
    char expected[80];
    snprintf(expected, sizeof expected, "a number from %g to %g", low, high);
    fail_type(config, key, expected, value);
    return fallback;
}

bool gb_config_bool(const gb_config *config, const char *key, bool fallback) {
    const json_t *value = get(config, key);
    if (!value)
        return fallback;
    if (json_is_boolean(value))
        return json_is_true(value);
    fail_type(config, key, "true or false", value);
    return fallback;
}

const char *gb_config_string(const gb_config *config, const char *key, const char *fallback) {
    const json_t *value = get(config, key);
    if (!value || json_is_null(value))
        return fallback;
    if (json_is_string(value))
        return json_string_value(value);
    fail_type(config, key, "a string", value);
    return fallback;
}

size_t gb_config_list_size(const gb_config *config, const char *key) {
    const json_t *value = get(config, key);
    if (value && !json_is_null(value) && !json_is_array(value))
        fail_type(config, key, "a list", value);
    return json_array_size(value);
}

const char *gb_config_list_string(const gb_config *config, const char *key, size_t index) {
    const json_t *item = json_array_get(get(config, key), index);
    if (json_is_string(item))
        return json_string_value(item);
    fail_type(config, key, "a list of strings", item);
    return "";
}

double gb_config_list_number(const gb_config *config, const char *key, size_t index, double low,
                             double high) {
    const json_t *item = json_array_get(get(config, key), index);
    const double number = number_of(item);
    if (number >= low && number <= high)
        return number;
    char expected[80];
    snprintf(expected, sizeof expected, "a list of numbers from %g to %g", low, high);
    fail_type(config, key, expected, item);
    return low;
}

size_t gb_config_integers(const gb_config *config, const char *key, int64_t low, int64_t high,
                          int64_t *values, size_t capacity) {
    const json_t *value = get(config, key);
    if (!value || json_is_null(value))
        return 0;
    bool is_list = json_is_array(value);
    size_t count = is_list ? json_array_size(value) : 1;
    if (count > capacity) {
        gb_config_fail(config, key, GUMBEL_ERROR_FORMAT, "a list of %zu, expected at most %zu", count,
                       capacity);
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *item = is_list ? json_array_get(value, i) : value;
        if (!json_is_integer(item) || json_integer_value(item) < low || json_integer_value(item) > high) {
            char expected[100];
            snprintf(expected, sizeof expected, "integers from %" PRId64 " to %" PRId64, low, high);
            fail_type(config, key, expected, item);
            return 0;
        }
        values[i] = json_integer_value(item);
    }
    return count;
}

const char *gb_config_next_key(const gb_config *config, const char *previous) {
    if (!config->object)
        return NULL;
    json_t *object = (json_t *)(uintptr_t)config->object;
    void *iterator = previous ? json_object_iter_next(object, json_object_key_to_iter(previous))
                              : json_object_iter(object);
    return iterator ? json_object_iter_key(iterator) : NULL;
}

bool gb_config_equal(const gb_config *a, const gb_config *b, const char *key) {
    const json_t *left = get(a, key), *right = get(b, key);
    return left && right && json_equal(left, right);
}

bool gb_config_equal_objects(const gb_config *a, const gb_config *b) {
    return a->object && b->object && json_equal(a->object, b->object);
}
