/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the reader of regular expressions.
 */
#ifndef GUMBEL_GRAMMAR_REGEX_READER_H
#define GUMBEL_GRAMMAR_REGEX_READER_H

#include "grammar/regex/ranges.h"
#include "grammar/regex/regex.h"

typedef struct gb_regex_reader {
    gb_expressions *expressions;
    const gb_regex_options *options;
    const char *text;
    size_t size, at;
    unsigned depth; /* groups around this place */
    gumbel_error error;
    gumbel_status status; /* the first error */
} gb_regex_reader;

/* Makes this the error unless there is one; the message gets the character at place in front. */
void gb_regex_fail(gb_regex_reader *reader, gumbel_status status, size_t place, const char *format, ...)
    GB_PRINTF(4, 5);

static inline bool gb_regex_has(const gb_regex_reader *reader, const char *text, size_t length) {
    return reader->size - reader->at >= length &&
           __builtin_memcmp(reader->text + reader->at, text, length) == 0;
}

/* Takes the character if it comes next. */
static inline bool gb_regex_take(gb_regex_reader *reader, char character) {
    bool has = reader->at < reader->size && reader->text[reader->at] == character;
    reader->at += has;
    return has;
}

/* The next character, whatever it is; there must be one. */
uint32_t gb_regex_next(gb_regex_reader *reader);

/* Reads what follows a backslash that stands for characters, and adds these. `within_class`: in brackets.
 * *single is the character where it is just one, else GB_NO_CHARACTER. */
#define GB_NO_CHARACTER UINT32_MAX
void gb_read_escape(gb_regex_reader *reader, bool within_class, gb_ranges *ranges, uint32_t *single);

/* Reads a class behind its opening bracket. */
void gb_read_class(gb_regex_reader *reader, gb_ranges *ranges);

/* One character of the ranges. */
gb_expression gb_express_ranges(gb_regex_reader *reader, const gb_ranges *ranges);

#endif
