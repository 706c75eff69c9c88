/* SPDX-License-Identifier: Apache-2.0
 *
 * The trie of a tokenizer.
 */
#ifndef GUMBEL_GRAMMAR_TRIE_TOKENIZER_TOKENS_H
#define GUMBEL_GRAMMAR_TRIE_TOKENIZER_TOKENS_H

#include "grammar/trie/trie.h"

/* Appends the section of a trie to an empty buffer: of each token the bytes that it adds to a text. Special
 * tokens and ids that have no spelling add none. Errors as of gb_token_trie_write. */
gumbel_status gb_write_tokenizer_trie(const gumbel_tokenizer *tokenizer, gb_byte_buffer *section,
                                      gumbel_error *error);

#endif
