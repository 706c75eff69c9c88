/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts a template into tokens, white space already trimmed as trim_blocks, lstrip_blocks and the - and +
 * marks ask for. Comments leave no token.
 */
#ifndef GUMBEL_TEXT_JINJA_PARSE_LEXER_H
#define GUMBEL_TEXT_JINJA_PARSE_LEXER_H

#include "text/jinja/value/state.h"

typedef enum gb_jinja_token_kind {
    GB_JINJA_TOKEN_TEXT,        /* text: what stands outside of {{ }} and {% %} */
    GB_JINJA_TOKEN_PRINT_BEGIN, /* {{ */
    GB_JINJA_TOKEN_PRINT_END,
    GB_JINJA_TOKEN_BLOCK_BEGIN, /* {% */
    GB_JINJA_TOKEN_BLOCK_END,
    GB_JINJA_TOKEN_NAME,     /* text */
    GB_JINJA_TOKEN_STRING,   /* text: with its escapes resolved */
    GB_JINJA_TOKEN_INTEGER,  /* integer */
    GB_JINJA_TOKEN_FLOAT,    /* real */
    GB_JINJA_TOKEN_OPERATOR, /* text */
    GB_JINJA_TOKEN_END
} gb_jinja_token_kind;

typedef struct gb_jinja_token {
    struct gb_jinja_token *next; /* NULL after the END token */
    gb_jinja_token_kind kind;
    uint32_t line;
    gb_jinja_text text;
    int64_t integer;
    double real;
} gb_jinja_token;

/* The tokens of source, which is well-formed UTF-8 and must outlive them. Errors: FORMAT; LIMIT. */
gumbel_status gb_jinja_tokenize(gb_jinja_state *state, gb_jinja_text source, const gb_jinja_token **first);

/* The text of a string literal between its quotes, escapes resolved. */
gumbel_status gb_jinja_unescape(gb_jinja_state *state, gb_jinja_text literal, gb_jinja_text *text);

#endif
