/* SPDX-License-Identifier: Apache-2.0 */
#include "export/checkpoint/json.h"

#include "base/file_map.h"
#include "base/memory.h"
#include "text/base/load_json.h"

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

gumbel_status gb_parse_json(const char *name, const char *text, size_t size, json_t **root,
                            gumbel_error *error) {
    *root = NULL;
    json_t *value;
    gumbel_status status = gb_load_json(name, text, size, JSON_REJECT_DUPLICATES, &value, error);
    /* An integer of more than 64 bits, such as the 10^30 that stands for no limit in released
     * tokenizer_config.json files, makes all integers of its file real numbers. */
    if (status == GUMBEL_ERROR_FORMAT)
        status =
            gb_load_json(name, text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &value, error);
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
