/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of tokenizer that are read from GGUF files. A file names its kind and lists vocabulary and
 * merges; what tokenizer.json says besides belongs to the kind and stands here.
 */
#ifndef GUMBEL_EXPORT_TEXT_GGUF_TOKENIZER_KINDS_H
#define GUMBEL_EXPORT_TEXT_GGUF_TOKENIZER_KINDS_H

#include "base/status.h"
#include "export/checkpoint/gguf.h"

enum { GB_KIND_TEXTS = 8 };

typedef struct gb_tokenizer_kind {
    const char *model;              /* tokenizer.ggml.model */
    const char *pre[GB_KIND_TEXTS]; /* values of tokenizer.ggml.pre; none: it is not read */
    const char *json;               /* tokenizer.json without vocabulary, merges and added tokens */
    bool adds_bos;                  /* whatever tokenizer.ggml.add_bos_token says */
    bool unused_are_padding;        /* tokens of the type unused fill up the vocabulary and spell nothing */
    const char *specials[GB_KIND_TEXTS]; /* user-defined in GGUF, but special tokens of the model */
    const char *stops[GB_KIND_TEXTS];    /* tokens that end a turn by what they spell */
} gb_tokenizer_kind;

/* The kind that the file's keys name, or NULL. */
const gb_tokenizer_kind *gb_tokenizer_kind_find(const gb_gguf *file);

/* The same; where there is none, the error names what was found and what is known: FORMAT, UNSUPPORTED. */
gumbel_status gb_tokenizer_kind_need(const gb_gguf *file, const gb_tokenizer_kind **kind,
                                     gumbel_error *error);

/* Whether a value is this string. */
bool gb_gguf_is_text(const gb_gguf_value *value, const char *text);

#endif
