/* SPDX-License-Identifier: Apache-2.0
 *
 * Where printed text goes: a caller's callback. The library itself never prints.
 */
#ifndef GUMBEL_BASE_TEXT_SINK_H
#define GUMBEL_BASE_TEXT_SINK_H

#include "base/status.h"

typedef struct gb_text_sink {
    gumbel_write_callback write;
    void *user;
} gb_text_sink;

/* Formats into the sink. A line of more than 4 KiB is cut. */
void gb_print(const gb_text_sink *sink, const char *format, ...) GB_PRINTF(2, 3);
void gb_print_list(const gb_text_sink *sink, const char *format, va_list arguments) GB_PRINTF(2, 0);

/* Writes length bytes as they are. */
void gb_print_bytes(const gb_text_sink *sink, const char *text, size_t length);

/* Writes text that came from a file as gumbel_escape does for a line, without a limit. */
void gb_print_escaped(const gb_text_sink *sink, const char *text);

/* Writes text as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. */
void gb_print_json_string(const gb_text_sink *sink, const char *text, size_t length);

#endif
