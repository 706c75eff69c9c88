/* SPDX-License-Identifier: Apache-2.0
 *
 * What a token spells by itself: its bytes, which need not be whole characters.
 */
#ifndef GUMBEL_TEXT_DECODE_TOKEN_BYTES_H
#define GUMBEL_TEXT_DECODE_TOKEN_BYTES_H

#include "base/byte_buffer.h"
#include "text/tokenizer/tokenizer.h"

/* Appends the spelling (length bytes) as the decoder replaces parts of it; spare is overwritten. Where memory
 * ran out the buffers say so. */
void gb_append_spelling(const gb_tokenizer_data *data, const char *spelling, size_t length,
                        gb_byte_buffer *output, gb_byte_buffer *spare);

/* The byte that the spelling of a byte token stands for, or -1: it is none. */
int gb_token_byte(const gb_tokenizer_data *data, const char *spelling, size_t length);

/* Appends the bytes of an ordinary token; nothing for one that stands outside of texts, special or not, and
 * for an id without a spelling. token is below the tokenizer's id_limit. */
void gb_append_token_bytes(const gumbel_tokenizer *tokenizer, int32_t token, gb_byte_buffer *output,
                           gb_byte_buffer *spare);

#endif
