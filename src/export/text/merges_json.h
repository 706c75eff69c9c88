/* SPDX-License-Identifier: Apache-2.0
 *
 * The merges of byte-pair encoding, from the list in a tokenizer.json or from the scores of a SentencePiece
 * model in a GGUF file.
 */
#ifndef GUMBEL_EXPORT_TEXT_MERGES_JSON_H
#define GUMBEL_EXPORT_TEXT_MERGES_JSON_H

#include "export/text/vocabulary_json.h"

/* Appends the part of the merges in root's model.merges or, where it has model.scores, one number for each
 * id, of all that SentencePiece would do: any two tokens whose spellings together are a token's become it,
 * that of the highest score first (Kudo and Richardson, SentencePiece, 2018). Errors: FORMAT, MEMORY. */
gumbel_status gb_write_merges(const json_t *root, const gb_json_vocabulary *vocabulary, gb_byte_buffer *bytes,
                              gumbel_error *error);

#endif
