/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the reader of GBNF.
 */
#ifndef GUMBEL_GRAMMAR_GBNF_READER_H
#define GUMBEL_GRAMMAR_GBNF_READER_H

#include "grammar/gbnf/gbnf.h"

/* Where a rule is used, for the message when it is not defined. */
typedef struct gb_gbnf_use {
    gb_expression rule;
    size_t place;
} gb_gbnf_use;

typedef struct gb_gbnf_reader {
    gb_expressions *expressions;
    const gb_gbnf_options *options;
    const char *text;
    size_t size, at;
    unsigned depth; /* groups around this place */
    gb_gbnf_use *uses;
    size_t use_count, use_capacity;
    gumbel_error error;
    gumbel_status status; /* the first error */
} gb_gbnf_reader;

/* Makes this the error unless there is one; the message gets line and column of the place in front. */
void gb_gbnf_fail(gb_gbnf_reader *reader, gumbel_status status, size_t place, const char *format, ...)
    GB_PRINTF(4, 5);

static inline bool gb_gbnf_is_at(const gb_gbnf_reader *reader, char character) {
    return reader->at < reader->size && reader->text[reader->at] == character;
}

static inline bool gb_gbnf_take(gb_gbnf_reader *reader, char character) {
    bool has = gb_gbnf_is_at(reader, character);
    reader->at += has;
    return has;
}

/* Each reads what begins here: "literal", [class], <token> or !<token>. */
gb_expression gb_read_literal(gb_gbnf_reader *reader);
gb_expression gb_read_gbnf_class(gb_gbnf_reader *reader);
gb_expression gb_read_gbnf_token(gb_gbnf_reader *reader);

#endif
