/* SPDX-License-Identifier: Apache-2.0
 *
 * The text is rewritten as strict JSON, of which jansson makes the value.
 */
#include "text/reply/lenient_json.h"

#include "base/byte_buffer.h"
#include "text/reply/json_text.h"

#include <string.h>

typedef struct reader {
    const gb_json_dialect *dialect;
    const char *text;
    size_t length, at;
    int depth;
    gb_byte_buffer strict;
} reader;

static bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static void skip_space(reader *r) {
    while (r->at < r->length && is_space(r->text[r->at]))
        r->at++;
}

static bool next_is(reader *r, char c) {
    skip_space(r);
    return r->at < r->length && r->text[r->at] == c;
}

/* Takes the character, if it is next, to the output. */
static bool take(reader *r, char c) {
    if (!next_is(r, c))
        return false;
    gb_buffer_append(&r->strict, &c, 1);
    r->at++;
    return true;
}

static bool starts_with(const reader *r, size_t at, const char *text) {
    const size_t length = strlen(text);
    return r->length - at >= length && memcmp(r->text + at, text, length) == 0;
}

/* "..." as it is, but for control characters, which JSON does not allow. */
static bool read_quoted(reader *r) {
    size_t end = r->at + 1;
    while (end < r->length && r->text[end] != '"')
        end += r->text[end] == '\\' ? 2 : 1;
    if (end >= r->length)
        return false;
    for (; r->at <= end; r->at++) {
        const uint8_t c = (uint8_t)r->text[r->at];
        if (c < 0x20)
            gb_append_json_escape(&r->strict, c);
        else
            gb_buffer_append(&r->strict, &c, 1);
    }
    return true;
}

/* A string between marks of the dialect. False where none begins, or it does not end. */
static bool read_marked(reader *r) {
    for (size_t i = 0; i < r->dialect->mark_count; i++) {
        const char *open = r->dialect->marks[i].open, *close = r->dialect->marks[i].close;
        if (!starts_with(r, r->at, open))
            continue;
        const size_t start = r->at + strlen(open);
        for (size_t end = start; end < r->length; end++)
            if (starts_with(r, end, close)) {
                gb_append_json_string(&r->strict, r->text + start, end - start);
                r->at = end + strlen(close);
                return true;
            }
        return false;
    }
    return false;
}

static bool read_string(reader *r) {
    skip_space(r);
    return r->at < r->length && r->text[r->at] == '"' ? read_quoted(r) : read_marked(r);
}

/* The key's text up to its colon, white space around it left out. */
static bool read_bare_key(reader *r) {
    size_t start = r->at, end = r->at;
    while (end < r->length && !strchr(":,{}[]\"", r->text[end]))
        end++;
    r->at = end;
    while (end > start && is_space(r->text[end - 1]))
        end--;
    gb_append_json_string(&r->strict, r->text + start, end - start);
    return end > start;
}

static bool read_key(reader *r) {
    return read_string(r) || (r->dialect->unquoted_keys && read_bare_key(r));
}

/* A number or a literal: jansson checks it. */
static bool read_scalar(reader *r) {
    const size_t start = r->at;
    while (r->at < r->length && !is_space(r->text[r->at]) && !strchr(",:{}[]\"", r->text[r->at]))
        r->at++;
    gb_buffer_append(&r->strict, r->text + start, r->at - start);
    return r->at > start;
}

static bool read_value(reader *r);

static bool read_members(reader *r, bool has_keys, char close) {
    if (take(r, close))
        return true;
    do {
        if (has_keys && !(read_key(r) && take(r, ':')))
            return false;
        if (!read_value(r))
            return false;
    } while (take(r, ','));
    return take(r, close);
}

static bool read_value(reader *r) {
    if (r->depth == GB_MAX_REPLY_JSON_DEPTH)
        return false;
    r->depth++;
    bool read;
    if (take(r, '{'))
        read = read_members(r, true, '}');
    else if (take(r, '['))
        read = read_members(r, false, ']');
    else
        read = read_string(r) || read_scalar(r);
    r->depth--;
    return read;
}

static json_t *load(const gb_byte_buffer *strict) {
    const size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL;
    json_t *value = json_loadb((const char *)strict->data, strict->size, flags, NULL);
    return value
               ? value
               : json_loadb((const char *)strict->data, strict->size, flags | JSON_DECODE_INT_AS_REAL, NULL);
}

json_t *gb_read_lenient_json(const gb_json_dialect *dialect, const char *text, size_t length) {
    reader r = {.dialect = dialect, .text = text, .length = length};
    json_t *value = NULL;
    if (read_value(&r)) {
        skip_space(&r);
        if (r.at == length && !r.strict.failed)
            value = load(&r.strict);
    }
    gb_buffer_free(&r.strict);
    return value;
}
