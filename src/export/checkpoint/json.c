/* SPDX-License-Identifier: Apache-2.0 */
#include "export/checkpoint/json.h"

#include "base/file_map.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>

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
static json_t *parse(const char *text, size_t size, json_error_t *reason) {
    json_t *value = json_loadb(text, size, JSON_REJECT_DUPLICATES, reason);
    if (!value && json_error_code(reason) == json_error_numeric_overflow)
        value = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, reason);
    return value;
}

gumbel_status gb_parse_json(const char *name, const char *text, size_t size, json_t **root,
                            gumbel_error *error) {
    *root = NULL;
    json_error_t reason;
    json_t *value = parse(text, size, &reason);
    if (!value && json_error_code(&reason) == json_error_out_of_memory)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory to read it", name);
    if (!value)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: line %d: %s", name, reason.line, reason.text);
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
