/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds added tokens in text, before anything else looks at it: leftmost first, the longest where several
 * begin at one place, never overlapping, with the conditions of each token's flags. The rules are those of
 * the `tokenizers` package (AddedVocabulary).
 */
#ifndef GUMBEL_TEXT_TOKENIZER_ADDED_TOKENS_H
#define GUMBEL_TEXT_TOKENIZER_ADDED_TOKENS_H

#include "text/tokenizer/tokenizer_data.h"

/* Bytes [start, end) of a text. */
typedef struct gb_span {
    size_t start, end;
} gb_span;

/* The parts of a text where special tokens are ordinary text: ascending, not touching each other. */
typedef struct gb_literal_spans {
    const gb_span *spans;
    size_t count;
} gb_literal_spans;

/* Whether any byte of the part is literal; *all: whether it lies in one literal span. */
bool gb_is_literal(const gb_literal_spans *literal, gb_span part, bool *all);

typedef struct gb_added_pattern {
    const char *text;
    size_t length;
    int32_t id;
    uint32_t flags;
} gb_added_pattern;

/* A set of patterns: sorted by bytes, with the range of patterns for each first byte. */
typedef struct gb_added_tokens {
    gb_added_pattern *patterns;
    size_t count;
    uint32_t first[257]; /* patterns that begin with byte b are first[b] .. first[b + 1] - 1 */
    char *storage;       /* owned: spellings that normalizing has changed */
} gb_added_tokens;

/* Sorts the patterns, which the set takes over (free with gb_added_tokens_free). Each has length >= 1. */
void gb_added_tokens_index(gb_added_tokens *set);
void gb_added_tokens_free(gb_added_tokens *set);

/* Where the next token is looked for, and where the text that is still to be given out begins. */
typedef struct gb_added_cursor {
    size_t search, start;
} gb_added_cursor;

typedef struct gb_added_match {
    gb_span before; /* the text up to the token */
    int32_t id;     /* -1: no more tokens, before is the rest */
} gb_added_match;

/* The next match in the well-formed text. Begin with a zeroed cursor; done when id is -1. A special token is
 * only found where no byte of it is literal. */
gb_added_match gb_added_tokens_next(const gb_added_tokens *set, const char *text, size_t length,
                                    const gb_literal_spans *literal, gb_added_cursor *cursor);

#endif
