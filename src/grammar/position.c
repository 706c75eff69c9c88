/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/position.h"

#include <stdio.h>
#include <string.h>

enum { DEEPEST = 32, LONGEST_NAME = 24, LONGEST_TAIL = 32 };

/* An object or array that has been opened and not closed. */
typedef struct level {
    const char *name; /* of the member that is written; NULL: none yet */
    size_t length, index;
    bool is_object;
} level;

typedef struct reader {
    level levels[DEEPEST];
    size_t depth; /* may be more than DEEPEST */
    bool expects_name;
} reader;

static level *innermost(reader *r) {
    return r->depth > 0 && r->depth <= DEEPEST ? &r->levels[r->depth - 1] : NULL;
}

/* Reads a string from its opening quote on; returns how many bytes it takes. */
static size_t read_string(reader *r, const char *text, size_t size) {
    size_t end = 1;
    while (end < size && text[end] != '"')
        end += text[end] == '\\' ? 2 : 1;
    end = end < size ? end : size;
    level *at = innermost(r);
    if (at && at->is_object && r->expects_name) {
        at->name = text + 1;
        at->length = end - 1;
        r->expects_name = false;
    }
    return end < size ? end + 1 : size;
}

static void open_level(reader *r, bool is_object) {
    r->depth++;
    level *at = innermost(r);
    if (at)
        *at = (level){.is_object = is_object};
    r->expects_name = is_object;
}

static void next_item(reader *r) {
    level *at = innermost(r);
    if (!at)
        return;
    at->index++;
    at->name = NULL;
    r->expects_name = at->is_object;
}

static void read_mark(reader *r, char mark) {
    if (mark == '{' || mark == '[')
        open_level(r, mark == '{');
    else if ((mark == '}' || mark == ']') && r->depth > 0)
        r->depth--;
    else if (mark == ',')
        next_item(r);
}

typedef struct writer {
    char *where; /* [GB_POSITION_SIZE] */
    size_t length;
} writer;

static void append(writer *w, const char *text, size_t size) {
    const size_t left = GB_POSITION_SIZE - 1 - w->length;
    size = size < left ? size : left;
    memcpy(w->where + w->length, text, size);
    w->length += size;
    w->where[w->length] = '\0';
}

static void write_path(const reader *r, char where[GB_POSITION_SIZE]) {
    writer w = {where, 0};
    append(&w, "at $", 4);
    for (size_t i = 0; i < r->depth && i < DEEPEST; i++) {
        const level *at = &r->levels[i];
        char index[24];
        snprintf(index, sizeof index, "[%zu]", at->index);
        if (!at->is_object)
            append(&w, index, strlen(index));
        if (at->name) {
            append(&w, ".", 1);
            append(&w, at->name, at->length < LONGEST_NAME ? at->length : LONGEST_NAME);
        }
    }
}

static void describe_json(const char *text, size_t size, char where[GB_POSITION_SIZE]) {
    reader r = {.depth = 0};
    for (size_t i = 0; i < size;) {
        if (text[i] == '"') {
            i += read_string(&r, text + i, size - i);
            continue;
        }
        read_mark(&r, text[i++]);
    }
    write_path(&r, where);
}

static bool continues_character(char byte) {
    return ((unsigned char)byte & 0xC0) == 0x80;
}

static void describe_tail(const char *text, size_t size, char where[GB_POSITION_SIZE]) {
    size_t begin = size > LONGEST_TAIL ? size - LONGEST_TAIL : 0;
    while (begin < size && continues_character(text[begin]))
        begin++;
    if (size == 0)
        snprintf(where, GB_POSITION_SIZE, "at the beginning");
    else
        snprintf(where, GB_POSITION_SIZE, "after %zu bytes, which end in \"%.*s\"", size, (int)(size - begin),
                 text + begin);
}

void gb_describe_position(bool is_json, const char *text, size_t size, char where[GB_POSITION_SIZE]) {
    if (is_json)
        describe_json(text, size, where);
    else
        describe_tail(text, size, where);
}
