/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/reader/big_integers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW_DIGITS = 18, MOST_DIGITS = 80, KEY_SIZE = 32 };

static void write_key(double number, char key[KEY_SIZE]) {
    snprintf(key, KEY_SIZE, "%.17g", number);
}

/* The length of the string that begins at text, with its quotes. */
static size_t string_length(const char *text, size_t length) {
    size_t at = 1;
    while (at < length && text[at] != '"')
        at += text[at] == '\\' ? 2 : 1;
    return at < length ? at + 1 : length;
}

/* The length of the run of characters of a number. */
static size_t number_length(const char *text, size_t length) {
    size_t at = 0;
    while (at < length && text[at] && strchr("+-.0123456789Ee", text[at]))
        at++;
    return at;
}

static bool is_big_integer(const char *text, size_t length) {
    const size_t sign = text[0] == '-';
    for (size_t i = sign; i < length; i++)
        if (text[i] < '0' || text[i] > '9')
            return false;
    return length - sign > FEW_DIGITS && length <= MOST_DIGITS;
}

/* False where other digits are the same double. */
static bool keep_digits(json_t *digits, const char *text, size_t length) {
    char key[KEY_SIZE], number[MOST_DIGITS + 1];
    snprintf(number, sizeof number, "%.*s", (int)length, text);
    write_key(strtod(number, NULL), key);
    const char *known = json_string_value(json_object_get(digits, key));
    return known ? strcmp(known, number) == 0 : json_object_set_new(digits, key, json_string(number)) == 0;
}

bool gb_widen_integers(const char *text, size_t length, gb_byte_buffer *widened, json_t *digits) {
    bool is_done = true;
    for (size_t at = 0, size; at < length && is_done; at += size) {
        const size_t number = number_length(text + at, length - at);
        size = text[at] == '"' ? string_length(text + at, length - at) : number ? number : 1;
        gb_buffer_append(widened, text + at, size);
        if (number && is_big_integer(text + at, size)) {
            gb_buffer_append(widened, ".0", 2);
            is_done = keep_digits(digits, text + at, size);
        }
    }
    return is_done && !widened->failed;
}

const char *gb_big_integer(const json_t *digits, const json_t *number) {
    char key[KEY_SIZE];
    if (!digits || !json_is_real(number))
        return NULL;
    write_key(json_real_value(number), key);
    return json_string_value(json_object_get(digits, key));
}
