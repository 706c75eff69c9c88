/* SPDX-License-Identifier: Apache-2.0
 *
 * From a conversation to the text that the model reads, with which of its bytes come from the conversation.
 */
#ifndef GUMBEL_TEXT_CHAT_CHAT_RENDER_H
#define GUMBEL_TEXT_CHAT_CHAT_RENDER_H

#include "text/chat/chat_section.h"
#include "text/jinja/jinja.h"
#include "text/tokenizer/added_tokens.h"

/* Renders as gumbel_chat_encode says, with its errors. section may be NULL where options have a template's
 * text. Free output with gb_jinja_output_free. Thread-safe. */
gumbel_status gb_chat_render(const gb_chat_section *section, const gumbel_message *messages, size_t count,
                             const gumbel_chat_options *options, gb_jinja_output *output,
                             gumbel_error *error);

/* The parts of the bytes [start, end) that come from the conversation, counted from start; free *spans with
 * gb_free. Errors: MEMORY. */
gumbel_status gb_chat_literal_spans(const gb_jinja_output *output, size_t start, size_t end, gb_span **spans,
                                    size_t *count, gumbel_error *error);

#endif
