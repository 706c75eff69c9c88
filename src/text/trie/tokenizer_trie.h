/* SPDX-License-Identifier: Apache-2.0
 *
 * The trie of a tokenizer's tokens: as bytes to store, or made when a grammar first needs it. Tokens that
 * stand outside of texts, special or not, and ids without a spelling have no bytes in it.
 */
#ifndef GUMBEL_TEXT_TRIE_TOKENIZER_TRIE_H
#define GUMBEL_TEXT_TRIE_TOKENIZER_TRIE_H

#include "text/tokenizer/tokenizer.h"
#include "text/trie/trie.h"

/* Appends what gb_token_trie_open reads, of id_limit tokens, to an empty buffer. Errors as of
 * gb_token_trie_write. */
gumbel_status gb_write_tokenizer_trie(const gumbel_tokenizer *tokenizer, gb_byte_buffer *section,
                                      gumbel_error *error);

/* Has the trie opened from what was stored, which must outlive the tokenizer; data NULL: it is made. Called
 * before anything asks for it. */
void gb_tokenizer_use_trie(gumbel_tokenizer *tokenizer, const gb_blob *stored);

/* The trie, which lives as long as the tokenizer; opened or made by the first call. What another version of
 * the trie's format stored is made anew. Thread-safe. Errors: FORMAT (what was stored is damaged, or of other
 * tokens), LIMIT, MEMORY. */
gumbel_status gb_tokenizer_trie(const gumbel_tokenizer *tokenizer, const gb_token_trie **trie,
                                gumbel_error *error);

#endif
