/* SPDX-License-Identifier: Apache-2.0
 *
 * From text to token ids: added tokens, normalizer, pre-tokenizer, byte-pair encoding.
 */
#ifndef GUMBEL_TEXT_TOKENIZER_ENCODE_H
#define GUMBEL_TEXT_TOKENIZER_ENCODE_H

#include "text/tokenizer/bpe.h"
#include "text/tokenizer/tokenizer.h"

/* Encodes length bytes of well-formed UTF-8. In the literal parts special tokens are ordinary text; where
 * nothing is literal the ids are those of the `tokenizers` package. Special tokens that are found after
 * normalizing are only looked for between raw added tokens where nothing is literal. Errors: LIMIT (2 GiB of
 * text or more), FORMAT (the splitting expression exceeds its limits), MEMORY. A full sink is no error.
 * Thread-safe. */
gumbel_status gb_encode(const gumbel_tokenizer *tokenizer, const char *text, size_t length,
                        const gb_literal_spans *literal, gb_token_sink *sink, gumbel_error *error);

/* The same for what stands behind a raw added token: cursor is that of gb_added_tokens_next after it. */
gumbel_status gb_encode_from(const gumbel_tokenizer *tokenizer, const char *text, size_t length,
                             const gb_literal_spans *literal, gb_added_cursor cursor, gb_token_sink *sink,
                             gumbel_error *error);

/* LIMIT when more tokens were given out than the sink holds, with the number in *count either way. */
gumbel_status gb_finish_sink(const gb_token_sink *sink, size_t *count, gumbel_error *error);

#endif
