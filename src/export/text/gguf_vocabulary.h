/* SPDX-License-Identifier: Apache-2.0
 *
 * The lists of a tokenizer in a GGUF file (tokens, their types, merges or scores), as tokenizer.json has
 * them.
 */
#ifndef GUMBEL_EXPORT_TEXT_GGUF_VOCABULARY_H
#define GUMBEL_EXPORT_TEXT_GGUF_VOCABULARY_H

#include "export/text/gguf_tokenizer_kinds.h"

/* The list of tokenizer.ggml.tokens, of 1 to GB_MAX_TOKENS strings. Errors: FORMAT. */
gumbel_status gb_gguf_need_tokens(const gb_gguf *file, const gb_gguf_value **tokens, gumbel_error *error);

/* Adds the members vocab, merges or scores, and repeated (vocabulary_json.h) to root's object model, and
 * added_tokens to root. Errors: FORMAT naming the key, and the token where it is one's; MEMORY. */
gumbel_status gb_gguf_add_vocabulary(const gb_gguf *file, const gb_tokenizer_kind *kind, json_t *root,
                                     gumbel_error *error);

#endif
