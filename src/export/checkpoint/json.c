/* SPDX-License-Identifier: Apache-2.0 */
#include "export/checkpoint/json.h"

#include "base/file_map.h"
#include "base/memory.h"
#include "text/base/load_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gumbel_status gb_read_json(const char *path, size_t limit, json_t **root, gumbel_error *error) {
    *root = NULL;
    char *text = NULL;
    size_t size = 0;
    GB_TRY(gb_read_file(path, limit, &text, &size, error));
    gumbel_status status = gb_parse_json(path, text, size, root, error);
    gb_free(text);
    return status;
}

/* An integer of more than 64 bits, such as the 10^30 that stands for no limit in released
 * tokenizer_config.json files, makes all integers of its file real numbers. */
static gumbel_status load(const char *name, const char *text, size_t size, json_t **value,
                          gumbel_error *error) {
    const gumbel_status status = gb_load_json(name, text, size, JSON_REJECT_DUPLICATES, value, error);
    return status == GUMBEL_ERROR_FORMAT
               ? gb_load_json(name, text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, value,
                              error)
               : status;
}

/* Python writes Infinity, which JSON has no number for: a large one of as many characters takes its place.
 * Returns whether there was one outside of a string. */
static bool replace_infinities(char *text, size_t size) {
    static const char infinity[] = "Infinity", large[] = "1.79e308";
    const size_t length = sizeof infinity - 1;
    bool is_in_string = false, is_found = false;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"')
            is_in_string = !is_in_string;
        else if (is_in_string && text[i] == '\\')
            i++;
        else if (!is_in_string && size - i >= length && memcmp(text + i, infinity, length) == 0)
            is_found = memcpy(text + i, large, length) != NULL;
    }
    return is_found;
}

static gumbel_status load_with_infinities(const char *name, const char *text, size_t size, json_t **value,
                                          gumbel_error *error) {
    char *copy = gb_allocate(size + 1, 1);
    if (!copy)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the text of %s", name);
    memcpy(copy, text, size);
    const gumbel_status status =
        replace_infinities(copy, size) ? load(name, copy, size, value, error) : GUMBEL_ERROR_FORMAT;
    gb_free(copy);
    return status;
}

gumbel_status gb_parse_json(const char *name, const char *text, size_t size, json_t **root,
                            gumbel_error *error) {
    *root = NULL;
    json_t *value;
    gumbel_status status = load(name, text, size, &value, error);
    if (status == GUMBEL_ERROR_FORMAT)
        status = load_with_infinities(name, text, size, &value, error);
    GB_TRY(status);
    if (!json_is_object(value)) {
        json_decref(value);
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: expected a JSON object", name);
    }
    *root = value;
    return GUMBEL_OK;
}

const char *gb_json_text(const json_t *value, char text[GB_JSON_TEXT]) {
    char *whole = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    const char *source = whole ? whole : value ? "a value" : "nothing";
    int length = snprintf(text, GB_JSON_TEXT, "%s", source);
    if (length >= GB_JSON_TEXT)
        snprintf(text + GB_JSON_TEXT - 4, 4, "...");
    free(whole);
    return text;
}
