/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/match/mask_cache.h"

#include "base/memory.h"

#include <string.h>

/* A longer list of tokens is stored as words. */
static uint32_t longest_list(const gb_token_trie *trie) {
    return trie->word_count / 2 + 1;
}

const gb_stored_mask *gb_find_mask(const gb_mask_cache *cache, uint32_t configuration) {
    if (configuration >= cache->configuration_capacity || !cache->of_configuration[configuration])
        return NULL;
    return &cache->masks[cache->of_configuration[configuration] - 1];
}

static bool make_room(gb_mask_cache *cache, uint32_t configuration) {
    size_t before = cache->configuration_capacity;
    if (!gb_grow((void **)&cache->of_configuration, &cache->configuration_capacity, configuration + (size_t)1,
                 sizeof *cache->of_configuration))
        return false;
    memset(cache->of_configuration + before, 0,
           (cache->configuration_capacity - before) * sizeof *cache->of_configuration);
    return gb_grow((void **)&cache->masks, &cache->capacity, cache->count + 1, sizeof *cache->masks);
}

static const uint32_t *words_of_slices(const gb_token_trie *trie, unsigned slices) {
    return slices ? trie->masks + (size_t)(slices - 1) * trie->word_count : NULL;
}

/* Words that are looked at together: most have no token. */
enum { BLOCK = 16 };

static bool has_others(const uint32_t *words, const uint32_t *whole) {
    uint32_t any = 0;
    for (int i = 0; i < BLOCK; i++)
        any |= words[i] & ~whole[i];
    return any;
}

/* Lists the tokens that the mask has besides its slices; GB_ENDLESS where they are too many. */
static uint32_t list_others(gb_mask_cache *cache, const gb_token_trie *trie, unsigned slices) {
    static const uint32_t none[BLOCK];
    const uint32_t *words = cache->scratch, *all = words_of_slices(trie, slices);
    uint32_t count = 0, most = longest_list(trie);
    for (uint32_t i = 0; i < trie->word_count;) {
        if (i % BLOCK == 0 && i + BLOCK <= trie->word_count && !has_others(words + i, all ? all + i : none)) {
            i += BLOCK;
            continue;
        }
        if (count > most)
            return GB_ENDLESS;
        for (uint32_t others = all ? words[i] & ~all[i] : words[i]; others; others &= others - 1)
            cache->list[count++] = i * 32 + (uint32_t)__builtin_ctz(others);
        i++;
    }
    return count > most ? GB_ENDLESS : count;
}

bool gb_mask_cache_begin(gb_mask_cache *cache, const gb_token_trie *trie) {
    cache->scratch = gb_allocate(trie->word_count + (size_t)1, sizeof *cache->scratch);
    cache->list = gb_allocate(longest_list(trie) + (size_t)32, sizeof *cache->list);
    return cache->scratch && cache->list;
}

const gb_stored_mask *gb_store_mask(gb_mask_cache *cache, const gb_token_trie *trie, uint32_t configuration,
                                    unsigned slices) {
    uint32_t count = list_others(cache, trie, slices);
    uint32_t size = count != GB_ENDLESS ? count : trie->word_count;
    uint32_t *items = make_room(cache, configuration) ? gb_allocate(size, sizeof *items) : NULL;
    if (!items)
        return NULL;
    if (size)
        memcpy(items, count != GB_ENDLESS ? cache->list : cache->scratch, size * sizeof *items);
    bool alone = count == 1 && (slices == 0 || trie->counts[slices - 1] == 0);
    gb_stored_mask *mask = &cache->masks[cache->count++];
    *mask = (gb_stored_mask){
        .items = items, .count = count, .slices = (uint8_t)slices, .forced = alone ? (int32_t)items[0] : -1};
    cache->of_configuration[configuration] = (uint32_t)cache->count;
    cache->bytes += size * sizeof *items + sizeof *mask;
    return mask;
}

void gb_write_mask(const gb_stored_mask *mask, const gb_token_trie *trie, uint32_t *words) {
    size_t bytes = trie->word_count * sizeof *words;
    if (mask->count == GB_ENDLESS) {
        memcpy(words, mask->items, bytes);
        return;
    }
    const uint32_t *whole = words_of_slices(trie, mask->slices);
    if (whole)
        memcpy(words, whole, bytes);
    else
        memset(words, 0, bytes);
    for (uint32_t i = 0; i < mask->count; i++)
        words[mask->items[i] / 32] |= 1u << (mask->items[i] % 32);
}

void gb_clear_masks(gb_mask_cache *cache) {
    for (size_t i = 0; i < cache->count; i++)
        gb_free(cache->masks[i].items);
    if (cache->configuration_capacity)
        memset(cache->of_configuration, 0, cache->configuration_capacity * sizeof *cache->of_configuration);
    cache->count = cache->bytes = 0;
}

void gb_mask_cache_free(gb_mask_cache *cache) {
    gb_clear_masks(cache);
    gb_free(cache->masks);
    gb_free(cache->of_configuration);
    gb_free(cache->scratch);
    gb_free(cache->list);
    *cache = (gb_mask_cache){0};
}
