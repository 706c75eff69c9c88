/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes masks: the slices that a configuration allows whole, a walk over the tries of the others, and tokens
 * that are in no trie.
 */
#include "grammar/match/match_cache.h"

#include <string.h>

static void set_bit(uint32_t *words, uint32_t token) {
    words[token / 32] |= 1u << (token % 32);
}

static bool has_bit(const uint32_t *words, uint32_t token) {
    return words[token / 32] >> (token % 32) & 1u;
}

/* Walks the subtree of a root whose byte leads to `after`. Nodes without a token set a bit after the mask,
 * which costs less than asking. */
static void walk_subtree(gb_configurations *configurations, const gb_trie_node *root, uint32_t after,
                         uint32_t *words) {
    const gb_automaton *automaton = configurations->closure.automaton;
    const size_t classes = automaton->class_count, count = root->size_and_depth >> 8;
    uint32_t path[GB_TRIE_DEPTH + 1];
    path[1] = after;
    set_bit(words, root->token_and_byte >> 8);
    for (size_t i = 1; i < count;) {
        gb_trie_node node = root[i];
        uint32_t depth = node.size_and_depth & 0xFF, class = automaton->class_of[node.token_and_byte & 0xFF];
        uint32_t from = path[depth - 1], to = configurations->rows[from * classes + class];
        if (to == GB_UNKNOWN)
            to = gb_find_step(configurations, from, class);
        if (to == GB_DEAD) {
            i += node.size_and_depth >> 8;
            continue;
        }
        path[depth] = to;
        set_bit(words, node.token_and_byte >> 8);
        i++;
    }
}

/* Walks the tries of all slices but the first ones. */
static void walk_slices(gb_match_cache *cache, uint32_t configuration, unsigned first, uint32_t *words) {
    const gb_token_trie *trie = cache->trie;
    for (unsigned byte = 0; byte < 256; byte++) {
        uint32_t after = gb_byte_step(&cache->configurations, configuration, (uint8_t)byte);
        for (unsigned slice = first; slice < GB_SLICE_COUNT && after != GB_DEAD; slice++)
            if (trie->roots[slice][byte] != GB_NO_NODE)
                walk_subtree(&cache->configurations, trie->nodes + trie->roots[slice][byte], after, words);
    }
}

/* Slices that are allowed whole; they come first. */
static unsigned whole_slices(gb_match_cache *cache, uint32_t configuration) {
    if (gb_allows_plain_texts(&cache->plain_states, &cache->configurations, configuration))
        return GB_SLICE_COUNT - 1;
    uint32_t longest = gb_slice_lengths[GB_SLICE_COUNT - 3];
    uint32_t run = gb_find_plain_run(&cache->plain_runs, &cache->configurations, configuration, longest);
    unsigned slices = 0;
    while (slices < GB_SLICE_COUNT - 1 && gb_slice_lengths[slices] <= run)
        slices++;
    return slices;
}

static void add_long_tokens(gb_match_cache *cache, uint32_t configuration, uint32_t *words) {
    const gb_token_trie *trie = cache->trie;
    for (uint32_t i = 0; i < trie->long_count; i++) {
        gb_token_bytes bytes = gb_bytes_of_token(trie, trie->long_tokens[i]);
        uint32_t at = configuration;
        for (size_t k = 0; k < bytes.size && at != GB_DEAD; k++)
            at = gb_byte_step(&cache->configurations, at, bytes.data[k]);
        if (at != GB_DEAD)
            set_bit(words, trie->long_tokens[i]);
    }
}

/* All tokens but one and those that end the answer; what is in the mask stays. */
static void add_other_tokens(const gb_match_cache *cache, uint32_t but, uint32_t *words) {
    for (uint32_t token = 0; token < cache->trie->token_count; token++)
        if (token != but && !gb_is_end_token(cache, token))
            set_bit(words, token);
}

/* Tokens that the grammar has by their ids, and those that end the answer. */
static void add_special_tokens(const gb_match_cache *cache, uint32_t configuration, uint32_t *words) {
    const gb_configurations *configurations = &cache->configurations;
    size_t count = 0;
    const gb_stack *stacks = gb_stacks_of(configurations, configuration, &count);
    for (size_t i = 0; i < count && configurations->traits[configuration] & GB_HAS_TOKENS; i++) {
        const gb_automaton_state *state = &cache->automaton->states[stacks[i].state];
        if (state->action == GB_ACTION_TOKEN && state->argument < cache->trie->token_count)
            set_bit(words, state->argument);
        if (state->action == GB_ACTION_OTHER_TOKEN)
            add_other_tokens(cache, state->argument, words);
    }
    if (configurations->traits[configuration] & GB_MAY_END)
        for (size_t i = 0; i < cache->end_token_count; i++)
            set_bit(words, cache->end_tokens[i]);
}

void gb_walk_tokens(gb_match_cache *cache, uint32_t configuration, uint32_t *words, unsigned *slices) {
    const gb_token_trie *trie = cache->trie;
    *slices = whole_slices(cache, configuration);
    if (*slices)
        memcpy(words, trie->masks + (size_t)(*slices - 1) * trie->word_count,
               trie->word_count * sizeof *words);
    else
        memset(words, 0, trie->word_count * sizeof *words);
    walk_slices(cache, configuration, *slices, words);
    for (uint32_t i = 0; i < trie->twin_count; i++)
        if (has_bit(words, trie->twins[i].twin))
            set_bit(words, trie->twins[i].token);
    add_long_tokens(cache, configuration, words);
    add_special_tokens(cache, configuration, words);
}
