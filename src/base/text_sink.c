/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text_sink.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 4096 };

void gb_print(const gb_text_sink *sink, const char *format, ...) {
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length > 0)
        gb_print_bytes(sink, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

void gb_print_bytes(const gb_text_sink *sink, const char *text, size_t length) {
    if (length)
        sink->write(sink->user, text, length);
}

/* Bytes of the character at text by its first byte, 0 for a byte that begins none. */
static size_t expected_length(uint8_t first) {
    return first < 0x80                    ? 1
           : first >= 0xc2 && first < 0xe0 ? 2
           : first >= 0xe0 && first < 0xf0 ? 3
           : first >= 0xf0 && first < 0xf5 ? 4
                                           : 0;
}

/* Bytes of the UTF-8 character at text, 0 when there is none (Unicode 15, table 3-7). */
static size_t character_length(const uint8_t *text, size_t length) {
    size_t expected = expected_length(text[0]);
    if (expected > length)
        return 0;
    for (size_t i = 1; i < expected; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    }
    bool overlong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool beyond = (text[0] == 0xed && text[1] >= 0xa0) || (text[0] == 0xf4 && text[1] >= 0x90);
    return overlong || beyond ? 0 : expected;
}

/* The escape of the character, or NULL for one that stands for itself. */
static const char *json_escape(uint8_t byte, size_t character, char buffer[8]) {
    if (character == 0)
        return "\xef\xbf\xbd";
    if (byte == '"')
        return "\\\"";
    if (byte == '\\')
        return "\\\\";
    if (byte == '\n')
        return "\\n";
    if (byte >= 0x20 && byte != 0x7f)
        return NULL;
    snprintf(buffer, 8, "\\u%04x", byte);
    return buffer;
}

void gb_print_json_string(const gb_text_sink *sink, const char *text, size_t length) {
    const uint8_t *bytes = (const uint8_t *)text;
    size_t plain = 0; /* where what is not written yet begins */
    gb_print_bytes(sink, "\"", 1);
    for (size_t i = 0; i < length;) {
        char buffer[8];
        size_t character = character_length(bytes + i, length - i);
        const char *escape = json_escape(bytes[i], character, buffer);
        size_t next = i + (character ? character : 1);
        if (escape) {
            gb_print_bytes(sink, text + plain, i - plain);
            gb_print_bytes(sink, escape, strlen(escape));
            plain = next;
        }
        i = next;
    }
    gb_print_bytes(sink, text + plain, length - plain);
    gb_print_bytes(sink, "\"", 1);
}
