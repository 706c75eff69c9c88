/* SPDX-License-Identifier: Apache-2.0
 *
 * What the names of pre-tokenizers in GGUF files stand for: the file has only the name.
 */
#ifndef GUMBEL_EXPORT_TEXT_PRE_TOKENIZERS_H
#define GUMBEL_EXPORT_TEXT_PRE_TOKENIZERS_H

#include "text/tokenizer/expressions.h"

/* What a vocabulary is spelled in. */
typedef enum gb_alphabet {
    GB_ALPHABET_BYTES,      /* characters that stand for bytes, as ByteLevel has them */
    GB_ALPHABET_METASPACE,  /* the text's characters, with U+2581 for spaces, and <0x00> .. for bytes */
    GB_ALPHABET_CHARACTERS, /* the text's own */
} gb_alphabet;

enum { GB_PRE_TOKENIZER_STEPS = 7 };

typedef struct gb_pre_tokenizer {
    const char *names; /* values of tokenizer.ggml.pre, between spaces */
    gb_split_expression expressions[GB_PRE_TOKENIZER_STEPS]; /* each cuts the pieces of the one before */
    gb_alphabet alphabet;
    bool takes_whole_tokens; /* a piece that is a token is that token, whatever the merges say */
    bool adds_bos;           /* where tokenizer.ggml.add_bos_token does not say */
} gb_pre_tokenizer;

/* The pre-tokenizer of that name (length bytes), or NULL. */
const gb_pre_tokenizer *gb_pre_tokenizer_find(const char *name, size_t length);

/* Writes all names, separated by ", ", to text of size bytes, cut where it is too short. */
void gb_pre_tokenizer_list(char *text, size_t size);

#endif
