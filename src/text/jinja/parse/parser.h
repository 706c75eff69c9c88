/* SPDX-License-Identifier: Apache-2.0
 *
 * From tokens to the syntax tree: parser.c has the statements, expression.c the expressions. The grammar is
 * that of jinja2 3.1, its precedences and its limits on where a conditional expression may stand included.
 */
#ifndef GUMBEL_TEXT_JINJA_PARSE_PARSER_H
#define GUMBEL_TEXT_JINJA_PARSE_PARSER_H

#include "text/jinja/parse/ast.h"
#include "text/jinja/parse/lexer.h"

typedef struct gb_jinja_parser {
    gb_jinja_state *state;
    const gb_jinja_token *token; /* the next one to be read */
    uint32_t nesting;
    bool in_loop;
} gb_jinja_parser;

/* The statements of a whole template; NULL for an empty one. Errors: FORMAT; UNSUPPORTED for statements that
 * are not known; LIMIT. */
gumbel_status gb_jinja_parse(gb_jinja_state *state, const gb_jinja_token *tokens,
                             const gb_jinja_statement **statements);

/* An expression. Without conditional, "a if b" ends before the `if`. */
gumbel_status gb_jinja_parse_expression(gb_jinja_parser *parser, bool conditional,
                                        gb_jinja_expression **expression);

/* One expression, or several with commas, which make a tuple. */
gumbel_status gb_jinja_parse_tuple(gb_jinja_parser *parser, bool conditional,
                                   gb_jinja_expression **expression);

/* A filter's name and arguments behind "|", applied to left. */
gumbel_status gb_jinja_parse_filter(gb_jinja_parser *parser, gb_jinja_expression *left,
                                    gb_jinja_expression **expression);

/* A node of the current line. */
gumbel_status gb_jinja_new_expression(gb_jinja_parser *parser, gb_jinja_expression_kind kind,
                                      gb_jinja_expression **expression);

/* Tokens. at_* look at the next one; skip_* also pass it when it is the one asked for; expect_* fail
 * otherwise. */
bool gb_jinja_at_operator(const gb_jinja_parser *parser, const char *operator);
bool gb_jinja_at_name(const gb_jinja_parser *parser, const char *name);
bool gb_jinja_skip_operator(gb_jinja_parser *parser, const char *operator);
bool gb_jinja_skip_name(gb_jinja_parser *parser, const char *name);
gumbel_status gb_jinja_expect_operator(gb_jinja_parser *parser, const char *operator);
gumbel_status gb_jinja_expect_name(gb_jinja_parser *parser, gb_jinja_text *name); /* any name */

/* Fails with what was expected and the next token, which was found. */
gumbel_status gb_jinja_unexpected(const gb_jinja_parser *parser, const char *expected);

/* Goes one level deeper into the template, and back. Fails with LIMIT. */
gumbel_status gb_jinja_nest(gb_jinja_parser *parser);
static inline void gb_jinja_unnest(gb_jinja_parser *parser) {
    parser->nesting--;
}

#endif
