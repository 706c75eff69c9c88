/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/byte_level.h"

#include "text/base/utf8.h"

#include <string.h>

static bool is_byte_level(const json_t *value) {
    const char *type = json_string_value(json_object_get(value, "type"));
    return type && strcmp(type, "ByteLevel") == 0;
}

bool gb_json_has_byte_level(const json_t *value, const char *members) {
    const json_t *array = json_object_get(value, members);
    for (size_t i = 0; i < json_array_size(array); i++)
        if (is_byte_level(json_array_get(array, i)))
            return true;
    return is_byte_level(value);
}

/* Bytes that are visible characters of Latin-1 spell themselves; the others are U+0100 and up, in order. */
static int byte_of(uint32_t c) {
    if ((c >= 0x21 && c <= 0x7E) || (c >= 0xA1 && c <= 0xFF && c != 0xAD))
        return (int)c;
    if (c >= 0x100 && c <= 0x120)
        return (int)(c - 0x100);
    if (c >= 0x121 && c <= 0x142)
        return (int)(c - 0x121 + 0x7F);
    return c == 0x143 ? 0xAD : -1;
}

bool gb_read_byte_level(const char *text, size_t length, char *bytes, size_t *count) {
    *count = 0;
    for (size_t at = 0, size; at < length; at += size) {
        size = gb_utf8_size(text[at]);
        int byte = byte_of(gb_utf8_code_point(text + at, size));
        if (byte < 0)
            return false;
        bytes[(*count)++] = (char)byte;
    }
    return true;
}
