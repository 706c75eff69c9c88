/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/rewrite/honoured.h"

#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/rewrite/made.h"
#include "grammar/schema/string/formats.h"

#include <stdio.h>
#include <string.h>

static bool is_unknown(const gb_schema_reader *reader, const char *key, const json_t *value) {
    if (strcmp(key, "format") == 0 && json_is_string(value))
        return !gb_find_format(json_string_value(value));
    return gb_keyword_kind_of(reader, key) == GB_KEYWORD_UNKNOWN;
}

/* Refuses what is unknown, or lists it. */
static void note(gb_schema_reader *reader, const json_t *schema, const char *key, const json_t *value) {
    const bool is_format = strcmp(key, "format") == 0;
    char name[80];
    snprintf(name, sizeof name, is_format ? "format '%.60s'" : "\"%.60s\"",
             is_format ? json_string_value(value) : key);
    if (reader->options.strict)
        gb_schema_fail(
            reader, schema, key, GUMBEL_ERROR_UNSUPPORTED,
            is_format
                ? "%s is not known here"
                : "no draft of JSON Schema up to this one has %s; annotations of your own begin with x-",
            name);
    else if (reader->options.unknown && json_object_set_new(reader->options.unknown, name, json_true()) != 0)
        gb_schema_no_memory(reader);
}

static json_t *leave_out_unknown(gb_schema_reader *reader, const json_t *schema) {
    json_t *kept = json_object(), *value;
    const char *key;
    if (kept && gb_reference_stands_alone(reader, schema)) {
        if (json_object_set(kept, "$ref", json_object_get(schema, "$ref")) == 0)
            return kept;
        json_decref(kept);
        return NULL;
    }
    json_object_foreach(gb_mutable(schema), key, value) {
        if (is_unknown(reader, key, value))
            note(reader, schema, key, value);
        else if (json_object_set(kept, key, value) != 0)
            gb_schema_no_memory(reader);
    }
    return kept;
}

static bool is_all_honoured(const gb_schema_reader *reader, const json_t *schema) {
    const char *key;
    json_t *value;
    if (gb_reference_stands_alone(reader, schema))
        return json_object_size(schema) == 1;
    json_object_foreach(gb_mutable(schema), key, value) if (is_unknown(reader, key, value)) return false;
    return true;
}

const json_t *gb_honoured(gb_schema_reader *reader, const json_t *schema) {
    if (!json_is_object(schema) || is_all_honoured(reader, schema) || !gb_schema_is_given(reader, schema))
        return gb_schema_failed(reader) ? NULL : schema;
    const json_t *kept = gb_rewritten(reader, schema, "honoured", leave_out_unknown);
    return gb_schema_failed(reader) ? NULL : kept;
}
