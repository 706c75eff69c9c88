/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of tokenizer that are read from GGUF files. A file names its kind and lists vocabulary, merges
 * or scores; what tokenizer.json says besides belongs to the kind and stands here.
 */
#ifndef GUMBEL_EXPORT_TEXT_GGUF_TOKENIZER_KINDS_H
#define GUMBEL_EXPORT_TEXT_GGUF_TOKENIZER_KINDS_H

#include "base/status.h"
#include "export/checkpoint/gguf.h"
#include "export/text/pre_tokenizers.h"

#include <jansson.h>

/* Values of tokenizer.ggml.token_type. */
typedef enum gb_gguf_token_type {
    GB_GGUF_TOKEN_NORMAL = 1,
    GB_GGUF_TOKEN_UNKNOWN = 2,
    GB_GGUF_TOKEN_CONTROL = 3,
    GB_GGUF_TOKEN_USER_DEFINED = 4,
    GB_GGUF_TOKEN_UNUSED = 5,
    GB_GGUF_TOKEN_BYTE = 6
} gb_gguf_token_type;

enum { GB_KIND_TEXTS = 8 };

typedef struct gb_tokenizer_kind {
    const char *model;       /* tokenizer.ggml.model */
    gb_alphabet alphabet;    /* unless the pre-tokenizer says it */
    bool has_pre_tokenizer;  /* tokenizer.ggml.pre is read */
    bool has_scores;         /* in place of merges: SentencePiece's BPE */
    bool has_space_prefix;   /* unless tokenizer.ggml.add_space_prefix is false, a text begins with a space */
    bool adds_bos;           /* where tokenizer.ggml.add_bos_token does not say */
    bool always_adds_bos;    /* whatever it says */
    bool has_unknown;        /* what has no token becomes the unknown one; else it is left out */
    bool unused_are_padding; /* tokens of the type unused fill up the vocabulary and spell nothing */
    int64_t bos, unknown;    /* ids where no key names them; -1: none */
    const char *specials[GB_KIND_TEXTS]; /* user-defined in GGUF, but special tokens of the model */
} gb_tokenizer_kind;

/* A file's kind, and its pre-tokenizer: NULL where the kind has none. */
typedef struct gb_gguf_tokenizer {
    const gb_tokenizer_kind *kind;
    const gb_pre_tokenizer *pre;
} gb_gguf_tokenizer;

/* Whether the file's keys name a known tokenizer. */
bool gb_gguf_tokenizer_find(const gb_gguf *file, gb_gguf_tokenizer *tokenizer);

/* The same; where there is none, the error names what was found, what is known and what can be done: FORMAT,
 * UNSUPPORTED. */
gumbel_status gb_gguf_tokenizer_need(const gb_gguf *file, gb_gguf_tokenizer *tokenizer, gumbel_error *error);

/* tokenizer.json of such a tokenizer without vocabulary, merges and added tokens; NULL without memory. */
json_t *gb_gguf_tokenizer_rules(const gb_gguf_tokenizer *tokenizer, bool has_space_prefix);

/* Whether a token is special: hidden in a decoded text, and never found in text that is not to be parsed. */
bool gb_gguf_is_special(const gb_tokenizer_kind *kind, int64_t type, const gb_gguf_value *token);

/* Whether a token ends an answer by what it spells. */
bool gb_gguf_is_stop(const gb_tokenizer_kind *kind, int64_t type, const gb_gguf_value *token);

/* Whether a value is this string. */
bool gb_gguf_is_text(const gb_gguf_value *value, const char *text);

#endif
