/* SPDX-License-Identifier: Apache-2.0
 *
 * The trie of a tokenizer's tokens, made when a grammar first needs it.
 */
#ifndef GUMBEL_TEXT_TRIE_TOKENIZER_TRIE_H
#define GUMBEL_TEXT_TRIE_TOKENIZER_TRIE_H

#include "text/tokenizer/tokenizer.h"
#include "text/trie/trie.h"

/* The trie of id_limit tokens, which lives as long as the tokenizer; made by the first call. Tokens that
 * stand outside of texts have no bytes in it. Thread-safe. Errors: LIMIT, MEMORY. */
gumbel_status gb_tokenizer_trie(const gumbel_tokenizer *tokenizer, const gb_token_trie **trie,
                                gumbel_error *error);

#endif
