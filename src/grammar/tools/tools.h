/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers that may call tools, as expressions: which tools, when, and how the model writes a call, which the
 * tokenizer's reply format says (text/reply/call_form.h).
 */
#ifndef GUMBEL_GRAMMAR_TOOLS_TOOLS_H
#define GUMBEL_GRAMMAR_TOOLS_TOOLS_H

#include "grammar/schema/schema.h"
#include "gumbel.h"

#include <jansson.h>

/* What the parts of this folder share. */
typedef struct gb_tool_writer {
    gb_expressions *expressions;
    const gumbel_tokenizer *tokenizer;
    const struct gb_reply_field *field; /* of calls */
    gb_expression call[3], again;       /* the texts of written.call */
    gb_argument_form arguments;
} gb_tool_writer;

/* The expression of an answer with the options' tools; 0 on an error. answer: what a text that calls nothing
 * is; 0: any. loosened: arguments of tools that are not strict and whose schema cannot be honoured are asked
 * their types alone. Errors: ARGUMENT (tools, a tool_name that is none of them), UNSUPPORTED (the reply
 * format does not say how calls are written; a schema), and those of schemas, naming the tool. */
gb_expression gb_express_tools(gb_expressions *expressions, const gumbel_tokenizer *tokenizer,
                               const gumbel_grammar_options *options, gb_expression answer, bool loosened,
                               gumbel_error *error);

/* *is_free: whether any token may follow where such an answer may end: free text, in which the mark of a call
 * is a token, or that nothing constrains. Errors: those of reading the tools, as above. */
gumbel_status gb_find_free_text(const gumbel_tokenizer *tokenizer, const gumbel_grammar_options *options,
                                bool *is_free, gumbel_error *error);

/* ---- Parts --------------------------------------------------------------------------------------------- */

/* Expresses the texts that all calls share, for a writer with the fields before them. */
void gb_prepare_writer(gb_tool_writer *writer);

/* A call of the tool, from its first mark to its last; 0 on an error. */
gb_expression gb_express_call(const gb_tool_writer *writer, const json_t *tool, bool loosened,
                              gumbel_error *error);

/* A text of the reply format; what the tokenizer has a token for is that token. */
gb_expression gb_express_marked(const gb_tool_writer *writer, const char *text, size_t length);

/* The token that the text begins with and that no other tokens can spell, or -1; *size is that of its text.
 */
int32_t gb_find_mark(const gumbel_tokenizer *tokenizer, const char *text, size_t length, size_t *size);

/* Any text without calls of the tools: what begins one is not in it. Where that is no token, special tokens
 * are not in it either. 0: no memory. */
gb_expression gb_express_free_text(const gb_tool_writer *writer, const json_t *tools);

/* Any tokens but those that end the answer. */
gb_expression gb_express_any_tokens(gb_expressions *expressions);

#endif
