/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/value/text.h"

#include "text/base/utf8.h"

#include <string.h>

gb_jinja_text gb_jinja_text_of(const char *string) {
    return (gb_jinja_text){.bytes = string, .length = strlen(string)};
}

gb_jinja_text gb_jinja_text_part(gb_jinja_text text, size_t start, size_t length) {
    return (gb_jinja_text){
        .bytes = length ? text.bytes + start : "",
        .length = length,
        .taint = text.taint && length ? text.taint + start : NULL,
    };
}

bool gb_jinja_text_equal(gb_jinja_text a, gb_jinja_text b) {
    return a.length == b.length && (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

bool gb_jinja_text_is(gb_jinja_text text, const char *string) {
    return gb_jinja_text_equal(text, gb_jinja_text_of(string));
}

int gb_jinja_text_compare(gb_jinja_text a, gb_jinja_text b) {
    size_t common = a.length < b.length ? a.length : b.length;
    int order = common ? memcmp(a.bytes, b.bytes, common) : 0;
    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

bool gb_jinja_text_starts_with(gb_jinja_text text, gb_jinja_text start) {
    return start.length <= text.length &&
           gb_jinja_text_equal(gb_jinja_text_part(text, 0, start.length), start);
}

bool gb_jinja_text_ends_with(gb_jinja_text text, gb_jinja_text end) {
    return end.length <= text.length &&
           gb_jinja_text_equal(gb_jinja_text_part(text, text.length - end.length, end.length), end);
}

size_t gb_jinja_text_find(gb_jinja_text text, gb_jinja_text needle, size_t start) {
    if (start > text.length || needle.length > text.length - start)
        return GB_JINJA_NOT_FOUND;
    if (needle.length == 0)
        return start;
    size_t last = text.length - needle.length;
    while (start <= last) {
        const char *found = memchr(text.bytes + start, needle.bytes[0], last - start + 1);
        if (!found)
            break;
        start = (size_t)(found - text.bytes);
        if (memcmp(found, needle.bytes, needle.length) == 0)
            return start;
        start++;
    }
    return GB_JINJA_NOT_FOUND;
}

size_t gb_jinja_text_find_last(gb_jinja_text text, gb_jinja_text needle) {
    if (needle.length > text.length)
        return GB_JINJA_NOT_FOUND;
    for (size_t start = text.length - needle.length + 1; start-- > 0;)
        if (gb_jinja_text_equal(gb_jinja_text_part(text, start, needle.length), needle))
            return start;
    return GB_JINJA_NOT_FOUND;
}

size_t gb_jinja_text_count(gb_jinja_text text) {
    size_t count = 0;
    for (size_t i = 0; i < text.length; i++)
        count += ((unsigned char)text.bytes[i] & 0xC0) != 0x80;
    return count;
}

size_t gb_jinja_text_offset(gb_jinja_text text, size_t index) {
    size_t offset = 0;
    while (index > 0 && offset < text.length) {
        offset += gb_utf8_size(text.bytes[offset]);
        index--;
    }
    return offset;
}

uint32_t gb_jinja_text_code_point(gb_jinja_text text, size_t offset, size_t *size) {
    *size = gb_utf8_size(text.bytes[offset]);
    return gb_utf8_code_point(text.bytes + offset, *size);
}

bool gb_jinja_is_space(uint32_t code_point) {
    return gb_is_white_space(code_point) || (code_point >= 0x1C && code_point <= 0x1F);
}

static bool strips(gb_jinja_text text, size_t offset, size_t *size, const gb_jinja_text *characters) {
    uint32_t code_point = gb_jinja_text_code_point(text, offset, size);
    if (!characters)
        return gb_jinja_is_space(code_point);
    gb_jinja_text character = gb_jinja_text_part(text, offset, *size);
    return gb_jinja_text_find(*characters, character, 0) != GB_JINJA_NOT_FOUND;
}

gb_jinja_text gb_jinja_text_strip(gb_jinja_text text, const gb_jinja_text *characters, bool start, bool end) {
    size_t first = 0, last = text.length, size;
    while (start && first < last && strips(text, first, &size, characters))
        first += size;
    while (end && first < last) {
        size_t previous = last - 1;
        while (((unsigned char)text.bytes[previous] & 0xC0) == 0x80)
            previous--;
        if (!strips(text, previous, &size, characters))
            break;
        last = previous;
    }
    return gb_jinja_text_part(text, first, last - first);
}

static bool ends_line(uint32_t code_point) {
    return (code_point >= 0x0A && code_point <= 0x0D) || (code_point >= 0x1C && code_point <= 0x1E) ||
           code_point == 0x85 || code_point == 0x2028 || code_point == 0x2029;
}

size_t gb_jinja_text_line_end(gb_jinja_text text, size_t start, size_t *next) {
    size_t size;
    for (size_t offset = start; offset < text.length; offset += size) {
        if (!ends_line(gb_jinja_text_code_point(text, offset, &size)))
            continue;
        bool pair = text.bytes[offset] == '\r' && offset + 1 < text.length && text.bytes[offset + 1] == '\n';
        *next = offset + (pair ? 2 : size);
        return offset;
    }
    *next = text.length;
    return text.length;
}
