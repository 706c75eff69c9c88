/* SPDX-License-Identifier: Apache-2.0 */
#include "text/base/utf8.h"

#include <string.h>

/* The second byte's range depends on the first (table 3-7); all later ones are 80..BF. Returns how many bytes
 * the character has, 0 for a byte that begins none. */
static size_t expected_size(uint8_t first, uint8_t *low, uint8_t *high) {
    *low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    *high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (first < 0x80)
        return 1;
    if (first < 0xC2 || first > 0xF4)
        return 0;
    return gb_utf8_size((char)first);
}

gb_utf8_state gb_utf8_next(const char *text, size_t length, size_t *size) {
    uint8_t low, high;
    size_t expected = expected_size((uint8_t)text[0], &low, &high);
    *size = 1;
    if (expected == 0)
        return GB_UTF8_BROKEN;
    for (; *size < expected; ++*size) {
        if (*size == length)
            return GB_UTF8_PARTIAL;
        uint8_t byte = (uint8_t)text[*size];
        if (byte < low || byte > high)
            return GB_UTF8_BROKEN;
        low = 0x80;
        high = 0xBF;
    }
    return GB_UTF8_CHARACTER;
}

uint32_t gb_utf8_code_point(const char *text, size_t size) {
    static const uint8_t first_bits[5] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t code_point = (uint8_t)text[0] & first_bits[size];
    for (size_t i = 1; i < size; i++)
        code_point = code_point << 6 | ((uint8_t)text[i] & 0x3F);
    return code_point;
}

bool gb_utf8_is_valid(const char *text, size_t length) {
    size_t size;
    for (size_t at = 0; at < length; at += size)
        if (gb_utf8_next(text + at, length - at, &size) != GB_UTF8_CHARACTER)
            return false;
    return true;
}

void gb_utf8_append_repaired(gb_byte_buffer *buffer, const char *text, size_t length) {
    size_t start = 0, size;
    for (size_t at = 0; at < length; at += size) {
        if (gb_utf8_next(text + at, length - at, &size) == GB_UTF8_CHARACTER)
            continue;
        gb_buffer_append(buffer, text + start, at - start);
        gb_buffer_append(buffer, GB_REPLACEMENT, strlen(GB_REPLACEMENT));
        start = at + size;
    }
    gb_buffer_append(buffer, text + start, length - start);
}

bool gb_is_white_space(uint32_t c) {
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
           c == 0x3000;
}

static bool is_stripped(const char *text, size_t size) {
    uint32_t c = gb_utf8_code_point(text, size);
    return gb_is_white_space(c) || (c >= 0x1C && c <= 0x1F);
}

void gb_utf8_strip(const char *text, size_t *start, size_t *end) {
    while (*start < *end && is_stripped(text + *start, gb_utf8_size(text[*start])))
        *start += gb_utf8_size(text[*start]);
    while (*end > *start) {
        size_t last = *end - 1;
        while (((uint8_t)text[last] & 0xC0) == 0x80)
            last--;
        if (!is_stripped(text + last, *end - last))
            return;
        *end = last;
    }
}
