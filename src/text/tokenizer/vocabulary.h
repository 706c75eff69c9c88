/* SPDX-License-Identifier: Apache-2.0
 *
 * From a spelling to its id: a hash table over the spellings of the tokenizer's data.
 */
#ifndef GUMBEL_TEXT_TOKENIZER_VOCABULARY_H
#define GUMBEL_TEXT_TOKENIZER_VOCABULARY_H

#include "text/base/utf8.h"
#include "text/tokenizer/tokenizer_data.h"

typedef struct gb_vocabulary {
    const gb_tokenizer_data *data;
    int32_t *slots; /* id, or -1; a power of two of them, at most half full */
    uint64_t mask;
    uint8_t *flags;           /* GB_ADDED_* by id; 0 for a token that is not an added one */
    int32_t one_byte[256];    /* ids of the one-byte tokens that BPE may begin with, or -1 */
    int32_t byte_tokens[256]; /* ids of <0x00> .. <0xFF>, or -1; all -1 at byte level */
} gb_vocabulary;

/* data must outlive the vocabulary. Errors: MEMORY. On an error
 * gb_vocabulary_free is still to be called. */
gumbel_status gb_vocabulary_create(gb_vocabulary *vocabulary, const gb_tokenizer_data *data,
                                   gumbel_error *error);
void gb_vocabulary_free(gb_vocabulary *vocabulary);

/* The lowest id of this spelling, or -1. */
int32_t gb_vocabulary_find(const gb_vocabulary *vocabulary, const char *text, size_t length);

/* Whether BPE may produce the token: not a special one, nor one that only exists as an added token. */
static inline bool gb_is_ordinary(const gb_vocabulary *vocabulary, int32_t id) {
    return !(vocabulary->flags[id] & (GB_ADDED_SPECIAL | GB_ADDED_OUTSIDE));
}

/* The ordinary token spelled so, or -1. */
static inline int32_t gb_vocabulary_find_ordinary(const gb_vocabulary *vocabulary, const char *text,
                                                  size_t length) {
    int32_t id = gb_vocabulary_find(vocabulary, text, length);
    return id >= 0 && gb_is_ordinary(vocabulary, id) ? id : -1;
}

/* What BPE begins with: a character of the text, or at byte level a byte. Its size in bytes, from its first
 * one. */
static inline size_t gb_unit_size(const gb_vocabulary *vocabulary, char first) {
    return gb_is_byte_level(vocabulary->data) ? 1 : gb_utf8_size(first);
}

/* The ordinary token of the one unit of size bytes at text, or -1. */
static inline int32_t gb_vocabulary_find_unit(const gb_vocabulary *vocabulary, const char *text,
                                              size_t size) {
    if (size == 1)
        return vocabulary->one_byte[(uint8_t)text[0]];
    return gb_vocabulary_find_ordinary(vocabulary, text, size);
}

#endif
