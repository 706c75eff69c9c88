/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps between added tokens and byte-pair encoding: normalizing a text, and splitting it into pieces
 * that are encoded separately. Which steps there are is data (tokenizer_data.h); a new kind is one more case
 * here.
 */
#ifndef GUMBEL_TEXT_TOKENIZER_TEXT_STEPS_H
#define GUMBEL_TEXT_TOKENIZER_TEXT_STEPS_H

#include "base/byte_buffer.h"
#include "text/tokenizer/tokenizer_data.h"

/* Appends text with every occurrence of a replacing step's pattern, from left to right, replaced by its
 * content. */
void gb_replace(const gb_text_step *step, const char *text, size_t length, gb_byte_buffer *output);

/* Replaces *output's content by the normalized text. spare is working memory. Out of memory shows in
 * output->failed. */
void gb_normalize(const gb_text_steps *steps, const char *text, size_t length, gb_byte_buffer *output,
                  gb_byte_buffer *spare);

/* Bytes of the first piece that a GB_SPLIT_TEXT step cuts off the text, 1 to length for length >= 1. What is
 * left is then cut in the same way. For GB_SPLIT_EXPRESSION see splitter.h. */
size_t gb_first_piece(const gb_text_step *step, const char *text, size_t length);

#endif
