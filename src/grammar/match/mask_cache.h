/* SPDX-License-Identifier: Apache-2.0
 *
 * Masks that were made, by configuration. A mask is stored as the slices of the trie that it has whole, and
 * the tokens besides them: a list where they are few, else all its words.
 */
#ifndef GUMBEL_GRAMMAR_MATCH_MASK_CACHE_H
#define GUMBEL_GRAMMAR_MATCH_MASK_CACHE_H

#include "text/trie/trie.h"

typedef struct gb_stored_mask {
    uint32_t *items; /* owned: tokens, or the words of the mask */
    uint32_t count;  /* of tokens; GB_ENDLESS: items are words */
    uint8_t slices;  /* how many first slices are whole */
    int32_t forced;  /* the only token, or -1 */
} gb_stored_mask;

/* Zeroed at the start. */
typedef struct gb_mask_cache {
    gb_stored_mask *masks;
    size_t count, capacity;
    uint32_t *of_configuration; /* number + 1; 0: none */
    size_t configuration_capacity;
    uint32_t *scratch; /* [word_count + 1] a mask that is being made */
    uint32_t *list;    /* its tokens besides whole slices, as far as they are few */
    size_t bytes;
} gb_mask_cache;

/* Allocates what making a mask needs. false without memory. */
bool gb_mask_cache_begin(gb_mask_cache *cache, const gb_token_trie *trie);

/* The stored mask, or NULL. */
const gb_stored_mask *gb_find_mask(const gb_mask_cache *cache, uint32_t configuration);

/* Stores the mask in cache->scratch, which has the first `slices` slices whole. NULL without memory. */
const gb_stored_mask *gb_store_mask(gb_mask_cache *cache, const gb_token_trie *trie, uint32_t configuration,
                                    unsigned slices);

/* Writes a stored mask's words. */
void gb_write_mask(const gb_stored_mask *mask, const gb_token_trie *trie, uint32_t *words);

/* Forgets all masks. */
void gb_clear_masks(gb_mask_cache *cache);
void gb_mask_cache_free(gb_mask_cache *cache);

#endif
