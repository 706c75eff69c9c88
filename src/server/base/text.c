/* SPDX-License-Identifier: Apache-2.0 */
#include "server/base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 256 };

static bool grow(server_text *text, size_t wanted) {
    size_t capacity = text->capacity ? text->capacity : FIRST_CAPACITY;
    while (capacity < wanted)
        capacity = capacity > SIZE_MAX / 2 ? wanted : 2 * capacity;
    char *bytes = realloc(text->bytes, capacity);
    if (!bytes) {
        text->has_failed = true;
        return false;
    }
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

char *server_text_extend(server_text *text, size_t length) {
    if (text->has_failed || length > SIZE_MAX - text->length)
        return NULL;
    if (text->length + length > text->capacity && !grow(text, text->length + length))
        return NULL;
    char *room = text->bytes + text->length;
    text->length += length;
    return room;
}

void server_text_add(server_text *text, const char *bytes, size_t length) {
    char *room = length > 0 ? server_text_extend(text, length) : NULL;
    if (room)
        memcpy(room, bytes, length);
}

void server_text_add_string(server_text *text, const char *string) {
    server_text_add(text, string, strlen(string));
}

void server_text_print(server_text *text, const char *format, ...) {
    char line[512];
    va_list values;
    va_start(values, format);
    const int length = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    if (length > 0)
        server_text_add(text, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

void server_text_write(void *user, const char *bytes, size_t length) {
    server_text_add(user, bytes, length);
}

int server_text_write_json(const char *bytes, size_t length, void *user) {
    server_text *text = user;
    server_text_add(text, bytes, length);
    return text->has_failed ? -1 : 0;
}

const char *server_text_string(server_text *text) {
    char *end = server_text_extend(text, 1);
    if (!end)
        return "";
    *end = '\0';
    text->length--;
    return text->bytes;
}

void server_text_clear(server_text *text) {
    text->length = 0;
    text->has_failed = false;
}

void server_text_free(server_text *text) {
    free(text->bytes);
    *text = (server_text){0};
}
