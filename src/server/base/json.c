/* SPDX-License-Identifier: Apache-2.0 */
#include "server/base/json.h"

#include "base/text_sink.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Real numbers up to it have no integer between them. */
#define MOST_EXACT 9007199254740992.0

/* ---- Memory -------------------------------------------------------------------------------------------- */

static _Thread_local bool has_failed;

/* jansson's functions for trees leave out what they have no memory for, so that this is noted below them. */
static void *allocate(size_t size) {
    void *block = malloc(size);
    has_failed |= block == NULL;
    return block;
}

void server_json_init(void) {
    json_set_alloc_funcs(allocate, free);
    json_object_seed(0);
}

bool server_json_has_failed(void) {
    return has_failed;
}

void server_json_fail(void) {
    has_failed = true;
}

void server_json_forget(void) {
    has_failed = false;
}

/* ---- Reading ------------------------------------------------------------------------------------------- */

static const char *kind_of(const json_t *value) {
    static const char *const kinds[] = {"an object", "an array", "a string", "an integer",
                                        "a number",  "true",     "false",    "null"};
    return value ? kinds[json_typeof(value)] : "nothing";
}

static bool refuse_kind(const char *name, const json_t *value, const char *expected,
                        server_failure *failure) {
    return server_refuse(failure, name, "%s: expected %s, found %s", name, expected, kind_of(value));
}

bool server_read_bool(const char *name, const json_t *value, bool *read, server_failure *failure) {
    if (!json_is_boolean(value))
        return refuse_kind(name, value, "true or false", failure);
    *read = json_is_true(value);
    return true;
}

bool server_is_whole(const json_t *value) {
    const double real = json_is_real(value) ? json_real_value(value) : NAN;
    return json_is_integer(value) || (floor(real) == real && fabs(real) <= MOST_EXACT);
}

bool server_read_integer(const char *name, const json_t *value, int64_t low, int64_t high, int64_t *read,
                         server_failure *failure) {
    if (!server_is_whole(value))
        return refuse_kind(name, value, "an integer", failure);
    *read = json_is_integer(value) ? json_integer_value(value) : (int64_t)json_real_value(value);
    if (*read >= low && *read <= high)
        return true;
    return server_refuse(failure, name, "%s: %" PRId64 ": expected an integer from %" PRId64 " to %" PRId64,
                         name, *read, low, high);
}

bool server_read_number(const char *name, const json_t *value, double *read, server_failure *failure) {
    if (!json_is_number(value))
        return refuse_kind(name, value, "a number", failure);
    *read = json_number_value(value);
    return true;
}

bool server_read_string(const char *name, const json_t *value, const char **read, server_failure *failure) {
    if (!json_is_string(value))
        return refuse_kind(name, value, "a string", failure);
    *read = json_string_value(value);
    if (strlen(*read) == json_string_length(value))
        return true;
    return server_refuse(failure, name, "%s: a string here has no zero character", name);
}

bool server_read_array(const char *name, const json_t *value, server_failure *failure) {
    return json_is_array(value) || refuse_kind(name, value, "an array", failure);
}

bool server_read_object(const char *name, const json_t *value, server_failure *failure) {
    return json_is_object(value) || refuse_kind(name, value, "an object", failure);
}

bool server_has_word(const char *words, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = words; length > 0 && (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

bool server_check_members(const char *name, const json_t *value, const char *members,
                          server_failure *failure) {
    const char *key;
    json_t *member;
    if (!server_read_object(name, value, failure))
        return false;
    json_object_foreach((json_t *)(uintptr_t)value, key, member) {
        if (strchr(key, ' ') || !server_has_word(members, key))
            return server_refuse(failure, name, "%s.%.40s: this route has no such field", name, key);
    }
    return true;
}

bool server_read_choice(const char *name, const json_t *value, const char *choices, const char **read,
                        server_failure *failure) {
    if (!server_read_string(name, value, read, failure))
        return false;
    if (!strchr(*read, ' ') && server_has_word(choices, *read))
        return true;
    return server_refuse(failure, name, "%s: \"%.40s\": expected one of: %s", name, *read, choices);
}

bool server_read_tokens(const char *name, const json_t *value, uint32_t limit, int32_t **tokens,
                        size_t *count, server_failure *failure) {
    if (!server_read_array(name, value, failure))
        return false;
    *count = json_array_size(value);
    *tokens = malloc((*count + 1) * sizeof **tokens);
    if (!*tokens)
        return server_fail(failure, 503, "no memory for %zu tokens", *count);
    for (size_t i = 0; i < *count; i++) {
        int64_t token = 0;
        if (!server_read_integer(name, json_array_get(value, i), 0, (int64_t)limit - 1, &token, failure)) {
            free(*tokens);
            *tokens = NULL;
            return false;
        }
        (*tokens)[i] = (int32_t)token;
    }
    return true;
}

/* ---- Making -------------------------------------------------------------------------------------------- */

void server_print_text(gb_byte_buffer *text, const char *bytes, size_t length) {
    gb_print_json_string(&(gb_text_sink){gb_buffer_write, text}, bytes, length);
}

json_t *server_json_text(const char *bytes, size_t length) {
    json_t *made = json_stringn(length > 0 ? bytes : "", length);
    if (made)
        return made;
    gb_byte_buffer escaped = {0};
    server_print_text(&escaped, bytes, length);
    made = json_loadb(escaped.text, escaped.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    gb_buffer_free(&escaped);
    return made;
}

json_t *server_json_seed(uint64_t seed) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, seed);
    return json_string(text);
}

json_t *server_json_float(float value) {
    char text[32];
    if (!isfinite(value))
        return json_null();
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value)
            break;
    }
    return json_real(strtod(text, NULL));
}

static int write_json(const char *bytes, size_t length, void *user) {
    gb_byte_buffer *text = user;
    gb_buffer_append(text, bytes, length);
    return text->failed ? -1 : 0;
}

void server_print_json(gb_byte_buffer *text, const json_t *value) {
    if (json_dump_callback(value, write_json, text,
                           JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9)) != 0)
        text->failed = true;
}

json_t *server_openai_error(const server_failure *failure) {
    json_t *error = json_pack(
        "{s:o, s:s, s:o, s:o}", "message", server_json_text(failure->message, strlen(failure->message)),
        "type", failure->type, "param", failure->param[0] ? json_string(failure->param) : json_null(), "code",
        failure->code ? json_string(failure->code) : json_null());
    return json_pack("{s:o}", "error", error);
}
