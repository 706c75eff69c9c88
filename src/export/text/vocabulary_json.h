/* SPDX-License-Identifier: Apache-2.0
 *
 * The vocabulary, merges and added tokens of a tokenizer.json.
 */
#ifndef GUMBEL_EXPORT_TEXT_VOCABULARY_JSON_H
#define GUMBEL_EXPORT_TEXT_VOCABULARY_JSON_H

#include "base/byte_buffer.h"
#include "base/status.h"

#include <jansson.h>
#include <stdint.h>

/* One id. Pointers lead into the JSON values, or at byte level into the vocabulary's bytes. */
typedef struct gb_json_token {
    const char *text; /* NULL: the id is unused */
    size_t length;    /* 0: a spelling that is not in the byte-level alphabet */
    uint32_t flags;   /* GB_ADDED_* */
    bool is_added;
    bool is_repeated; /* spelled as an earlier token is: it decodes, but no text becomes it */
} gb_json_token;

typedef struct gb_json_vocabulary {
    gb_json_token *tokens; /* owned, by id */
    uint32_t count;
    const json_t *model_vocab; /* the model's own spellings */
    char *bytes;               /* owned; NULL unless the file is byte-level: what they stand for */
} gb_json_vocabulary;

/* Reads model.vocab and added_tokens, and of a GGUF model.repeated: [[id, spelling], ...] of tokens that are
 * spelled as earlier ones, which an object cannot have. At byte level, turns the model's spellings into
 * bytes. Errors: FORMAT, LIMIT as FORMAT, MEMORY. Free with gb_json_vocabulary_free, also after an error.
 * root must outlive it. */
gumbel_status gb_read_json_vocabulary(const json_t *root, gb_json_vocabulary *vocabulary,
                                      gumbel_error *error);
void gb_json_vocabulary_free(gb_json_vocabulary *vocabulary);

/* The id of a spelling in model.vocab, or -1. */
int32_t gb_json_token_id(const gb_json_vocabulary *vocabulary, const char *text, size_t length);

/* Append the parts of the section. */
void gb_write_vocabulary(const gb_json_vocabulary *vocabulary, gb_byte_buffer *bytes);
void gb_write_added(const gb_json_vocabulary *vocabulary, gb_byte_buffer *bytes);

#endif
