/* SPDX-License-Identifier: Apache-2.0
 *
 * From a conversation, by the tokenizer's chat templates, to text and tokens: what gumbel_chat_encode and
 * gumbel_chat_render say.
 */
#ifndef GUMBEL_TEXT_CHAT_CHAT_ENCODE_H
#define GUMBEL_TEXT_CHAT_CHAT_ENCODE_H

#include "text/jinja/jinja.h"
#include "text/tokenizer/bpe.h"

/* options may be NULL. Free output with gb_jinja_output_free. Thread-safe. */
gumbel_status gb_chat_render_with(const gumbel_tokenizer *tokenizer, const gumbel_message *messages,
                                  size_t count, const gumbel_chat_options *options, gb_jinja_output *output,
                                  gumbel_error *error);

/* Encodes the bytes [start, end) of what was rendered; special tokens are recognized in what the template
 * wrote. Errors: as gb_encode. Thread-safe. */
gumbel_status gb_chat_encode_range(const gumbel_tokenizer *tokenizer, const gb_jinja_output *output,
                                   size_t start, size_t end, gb_token_sink *sink, gumbel_error *error);

#endif
