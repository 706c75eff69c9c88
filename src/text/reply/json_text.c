/* SPDX-License-Identifier: Apache-2.0 */
#include "text/reply/json_text.h"

#include "base/text_sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append(void *user, const char *text, size_t length) {
    gb_buffer_append(user, text, length);
}

void gb_append_json_string(gb_byte_buffer *buffer, const char *text, size_t length) {
    const gb_text_sink sink = {append, buffer};
    gb_print_json_string(&sink, text, length);
}

void gb_append_json_escape(gb_byte_buffer *buffer, uint8_t control) {
    char escape[8];
    const int length = snprintf(escape, sizeof escape, "\\u%04x", control);
    gb_buffer_append(buffer, escape, (size_t)length);
}

/* Locales may spell the decimal point otherwise. */
static void use_point(char *text) {
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (strchr("0123456789+-e", *from))
            *to++ = *from;
        else if (to == text || to[-1] != '.')
            *to++ = '.';
    }
    *to = 0;
}

/* The fewest digits that give the same number again. jansson writes 17, which turn 0.1 into another text. */
static void append_real(gb_byte_buffer *buffer, double value) {
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text - 2, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    use_point(text);
    if (!strpbrk(text, ".e"))
        strcat(text, ".0");
    gb_buffer_append(buffer, text, strlen(text));
}

static void append_object(gb_byte_buffer *buffer, const json_t *object) {
    /* jansson's iterators take a value that is not const, but change nothing. */
    json_t *members = (json_t *)(uintptr_t)object;
    gb_buffer_append(buffer, "{", 1);
    for (void *at = json_object_iter(members); at; at = json_object_iter_next(members, at)) {
        gb_append_json_string(buffer, json_object_iter_key(at), json_object_iter_key_len(at));
        gb_buffer_append(buffer, ":", 1);
        gb_append_json(buffer, json_object_iter_value(at));
        if (json_object_iter_next(members, at))
            gb_buffer_append(buffer, ",", 1);
    }
    gb_buffer_append(buffer, "}", 1);
}

static void append_array(gb_byte_buffer *buffer, const json_t *array) {
    gb_buffer_append(buffer, "[", 1);
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i > 0)
            gb_buffer_append(buffer, ",", 1);
        gb_append_json(buffer, json_array_get(array, i));
    }
    gb_buffer_append(buffer, "]", 1);
}

void gb_append_json(gb_byte_buffer *buffer, const json_t *value) {
    char text[32];
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        append_object(buffer, value);
        return;
    case JSON_ARRAY:
        append_array(buffer, value);
        return;
    case JSON_STRING:
        gb_append_json_string(buffer, json_string_value(value), json_string_length(value));
        return;
    case JSON_REAL:
        append_real(buffer, json_real_value(value));
        return;
    case JSON_INTEGER:
        snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_TRUE:
        strcpy(text, "true");
        break;
    case JSON_FALSE:
        strcpy(text, "false");
        break;
    default:
        strcpy(text, "null");
        break;
    }
    gb_buffer_append(buffer, text, strlen(text));
}
