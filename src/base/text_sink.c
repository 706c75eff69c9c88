/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text_sink.h"

#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 4096 };

void gb_print_list(const gb_text_sink *sink, const char *format, va_list arguments) {
    char line[LINE_BYTES];
    int length = vsnprintf(line, sizeof line, format, arguments);
    if (length > 0)
        gb_print_bytes(sink, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

void gb_print(const gb_text_sink *sink, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    gb_print_list(sink, format, arguments);
    va_end(arguments);
}

void gb_print_bytes(const gb_text_sink *sink, const char *text, size_t length) {
    if (length)
        sink->write(sink->user, text, length);
}

void gb_print_escaped(const gb_text_sink *sink, const char *text) {
    gumbel_escape(GUMBEL_ESCAPE_LINE, text, strlen(text), sink->write, sink->user);
}

void gb_print_json_string(const gb_text_sink *sink, const char *text, size_t length) {
    gb_print_bytes(sink, "\"", 1);
    gumbel_escape(GUMBEL_ESCAPE_JSON, text, length, sink->write, sink->user);
    gb_print_bytes(sink, "\"", 1);
}
