/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokens of a vocabulary by their bytes, as a flat trie that stands depth first, so that a subtree is
 * skipped by one addition. Made once for a tokenizer; the bytes that it is stored as can be mapped from a
 * file.
 *
 * Tokens are divided into slices, each with a trie of its own. A slice has the tokens that are whole
 * characters which JSON strings have unescaped, of up to so many characters; where a grammar allows all such
 * texts they need no walk. The last slice has all other tokens.
 */
#ifndef GUMBEL_TEXT_TRIE_TRIE_H
#define GUMBEL_TEXT_TRIE_TRIE_H

#include "base/byte_buffer.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum {
    GB_SLICE_COUNT = 6,  /* the last one is of the tokens that are in no other */
    GB_TRIE_DEPTH = 255, /* bytes of the longest token in a trie */
    GB_TRIE_MAX_TOKENS = 1 << 23
};

/* Characters of the longest token of each slice but the last; GB_ENDLESS where there is no limit. */
#define GB_ENDLESS UINT32_MAX
extern const uint32_t gb_slice_lengths[GB_SLICE_COUNT - 1];

#define GB_NO_NODE UINT32_MAX

typedef struct gb_trie_node {
    uint32_t token_and_byte; /* id << 8 | byte; the id is the trie's no_token where none ends here */
    uint32_t size_and_depth; /* nodes of the subtree, with this one << 8 | depth, from 1 */
} gb_trie_node;

/* A token of the same bytes as another, which is in the trie. */
typedef struct gb_twin_token {
    uint32_t token, twin;
} gb_twin_token;

/* Immutable, so that any number of threads may use it at once. */
typedef struct gb_token_trie {
    uint32_t token_count, word_count;    /* word_count: of a mask */
    uint32_t no_token;                   /* 32 * word_count: its bit is in the word after a mask */
    uint32_t slice_ends[GB_SLICE_COUNT]; /* nodes[slice_ends[i - 1], slice_ends[i]) is slice i */
    const gb_trie_node *nodes;
    const gb_twin_token *twins;
    uint32_t twin_count;
    uint32_t long_count;
    const uint32_t *long_tokens; /* ids of tokens that are in no slice, since they are too long */
    const uint32_t *offsets;     /* [token_count + 1] into bytes: what each token is spelled as */
    const uint8_t *bytes;
    uint32_t (
        *roots)[256]; /* [GB_SLICE_COUNT][256]: a slice's node of each first byte, or GB_NO_NODE; owned */
    uint32_t *masks;  /* [GB_SLICE_COUNT - 1][word_count]: the tokens of slices 0 to i; owned */
    uint32_t counts[GB_SLICE_COUNT - 1]; /* how many these are */
    void *storage;                       /* owned; what the arrays lie in, or NULL */
} gb_token_trie;

/* One token's bytes; size 0 for a token without any: a special one, or an id that is not used. */
typedef struct gb_token_bytes {
    const uint8_t *data;
    size_t size;
} gb_token_bytes;

/* Appends to section, which is empty, what gb_token_trie_open reads. tokens[id] is copied. Errors: LIMIT
 * (more than GB_TRIE_MAX_TOKENS tokens or 2^24 nodes), MEMORY. */
gumbel_status gb_token_trie_write(const gb_token_bytes *tokens, size_t count, gb_byte_buffer *section,
                                  gumbel_error *error);

/* Checks the bytes of a section, which must be aligned to 4 and outlive the trie. Errors: FORMAT, MEMORY.
 * Destroy with gb_token_trie_destroy. */
gumbel_status gb_token_trie_open(const uint8_t *data, size_t size, gb_token_trie **trie, gumbel_error *error);

/* Both in one, for a trie that is not stored. */
gumbel_status gb_token_trie_create(const gb_token_bytes *tokens, size_t count, gb_token_trie **trie,
                                   gumbel_error *error);

/* NULL is allowed. Its matchers must be destroyed first. */
void gb_token_trie_destroy(gb_token_trie *trie);

static inline gb_token_bytes gb_bytes_of_token(const gb_token_trie *trie, uint32_t token) {
    uint32_t start = trie->offsets[token];
    return (gb_token_bytes){trie->bytes + start, trie->offsets[token + 1] - start};
}

/* The slice that a text belongs to. */
unsigned gb_slice_of(const uint8_t *data, size_t size);

#endif
