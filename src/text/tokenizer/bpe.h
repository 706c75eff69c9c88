/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte-pair encoding (Sennrich et al. 2016) of one piece of text, with the results of the `tokenizers`
 * package: characters, or where the vocabulary lacks one its bytes, or the unknown token; at byte level bytes
 * from the start; then merges by rank.
 */
#ifndef GUMBEL_TEXT_TOKENIZER_BPE_H
#define GUMBEL_TEXT_TOKENIZER_BPE_H

#include "text/tokenizer/merge_table.h"

/* Where ids go: the caller's array, counting on when it is full. */
typedef struct gb_token_sink {
    int32_t *tokens;
    size_t capacity, count;
} gb_token_sink;

static inline void gb_sink_token(gb_token_sink *sink, int32_t id) {
    if (sink->count < sink->capacity)
        sink->tokens[sink->count] = id;
    sink->count++;
}

/* One symbol of the text; symbols that were merged away have id -1. Positions are indices into the word. */
typedef struct gb_symbol {
    int32_t id;
    uint32_t previous, next;
} gb_symbol;

/* Working memory, kept from one piece to the next. Zero it first. */
typedef struct gb_bpe_scratch {
    gb_symbol *symbols; /* the run of symbols that may still be joined to each other */
    size_t count, capacity;
    uint64_t *queue; /* binary heap of rank << 32 | position of the left symbol */
    size_t queued, queue_capacity;
} gb_bpe_scratch;

void gb_bpe_scratch_free(gb_bpe_scratch *scratch);

/* Encodes length bytes of well-formed text, fewer than 2^31, in O(n log n). Errors: MEMORY. */
gumbel_status gb_bpe_encode(const gb_vocabulary *vocabulary, const gb_merge_table *merges, const char *text,
                            size_t length, gb_bpe_scratch *scratch, gb_token_sink *sink, gumbel_error *error);

#endif
