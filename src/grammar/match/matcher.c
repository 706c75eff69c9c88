/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/match/matcher.h"

#include "base/memory.h"

#include <string.h>

static gumbel_status no_memory(gumbel_error *error) {
    return gb_fail(error, GUMBEL_ERROR_MEMORY, "grammar: no memory to follow an answer");
}

/* ---- Calls -----------------------------------------------------------------------------------------------
 */

/* An error of one call is not one of the next: what it was about may not be asked again. */
static void forget_error(gb_configurations *configurations) {
    configurations->status = GUMBEL_OK;
    configurations->work = 0;
    configurations->closure.failed = configurations->closure.full = false;
}

gb_configurations *gb_matcher_lock(gb_matcher *matcher) {
    gb_match_cache *cache = matcher->cache;
    pthread_mutex_lock(&cache->mutex);
    forget_error(&cache->configurations);
    gb_match_cache_trim(cache);
    return &cache->configurations;
}

void gb_matcher_unlock(gb_matcher *matcher) {
    matcher->status = matcher->cache->configurations.status;
    pthread_mutex_unlock(&matcher->cache->mutex);
}

gumbel_status gb_matcher_error(const gb_matcher *matcher, gumbel_error *error) {
    if (matcher->status == GUMBEL_ERROR_LIMIT)
        return gb_fail(error, matcher->status,
                       "grammar: more than %d ways to read the answer, or too many to go on; make it less "
                       "ambiguous",
                       GB_STACK_LIMIT);
    return matcher->status == GUMBEL_OK ? GUMBEL_OK : no_memory(error);
}

/* ---- Made and destroyed ----------------------------------------------------------------------------------
 */

static gumbel_status check_end_tokens(const gb_token_trie *trie, const gb_matcher_options *options,
                                      gumbel_error *error) {
    for (size_t i = 0; i < options->end_token_count; i++)
        if (!trie || options->end_tokens[i] >= trie->token_count)
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "grammar: end token %u is none of the vocabulary's",
                           options->end_tokens[i]);
    return GUMBEL_OK;
}

static bool push(gb_matcher *matcher, uint32_t configuration) {
    if (matcher->history_count >= 2 * GB_MATCHER_ROLLBACK) {
        memmove(matcher->history, matcher->history + matcher->history_count - GB_MATCHER_ROLLBACK,
                GB_MATCHER_ROLLBACK * sizeof *matcher->history);
        matcher->history_count = GB_MATCHER_ROLLBACK;
    }
    if (!gb_grow((void **)&matcher->history, &matcher->history_capacity, matcher->history_count + 1,
                 sizeof *matcher->history))
        return false;
    matcher->history[matcher->history_count++] = configuration;
    return true;
}

/* Puts a matcher among the cache's, whose mutex the caller has. */
static void link_to_cache(gb_matcher *matcher) {
    gb_match_cache *cache = matcher->cache;
    matcher->previous = &cache->matchers;
    matcher->next = cache->matchers;
    if (matcher->next)
        matcher->next->previous = &matcher->next;
    cache->matchers = matcher;
}

static void unlink_from_cache(gb_matcher *matcher) {
    pthread_mutex_lock(&matcher->cache->mutex);
    *matcher->previous = matcher->next;
    if (matcher->next)
        matcher->next->previous = matcher->previous;
    pthread_mutex_unlock(&matcher->cache->mutex);
}

/* Puts the matcher at the start of an answer. */
static gumbel_status begin(gb_matcher *matcher, gumbel_error *error) {
    gb_configurations *configurations = gb_matcher_lock(matcher);
    link_to_cache(matcher);
    const uint32_t start = gb_start_configuration(configurations);
    const bool has_begun = configurations->status == GUMBEL_OK && push(matcher, start);
    gb_matcher_unlock(matcher);
    GB_TRY(gb_matcher_error(matcher, error));
    return has_begun ? GUMBEL_OK : no_memory(error);
}

gumbel_status gb_matcher_create(const gb_grammar *grammar, const gb_token_trie *trie,
                                const gb_matcher_options *options, gb_matcher **matcher,
                                gumbel_error *error) {
    const gb_matcher_options none = {0};
    options = options ? options : &none;
    *matcher = NULL;
    GB_TRY(check_end_tokens(trie, options, error));
    gb_matcher *made = gb_allocate(1, sizeof *made);
    gb_match_cache *cache =
        made ? gb_match_cache_acquire(grammar->caches, &grammar->automaton, trie, options) : NULL;
    if (!cache) {
        gb_free(made);
        return no_memory(error);
    }
    *made = (gb_matcher){.grammar = grammar, .cache = cache};
    const gumbel_status status = begin(made, error);
    if (status == GUMBEL_OK)
        *matcher = made;
    else
        gb_matcher_destroy(made);
    return status;
}

/* With the history of one that has the mutex. */
static bool copy_history(const gb_matcher *from, gb_matcher *to) {
    if (!gb_grow((void **)&to->history, &to->history_capacity, from->history_count, sizeof *to->history))
        return false;
    memcpy(to->history, from->history, from->history_count * sizeof *to->history);
    to->history_count = from->history_count;
    return true;
}

gumbel_status gb_matcher_clone(const gb_matcher *matcher, gb_matcher **clone, gumbel_error *error) {
    gb_match_cache *cache = matcher->cache;
    *clone = NULL;
    gb_matcher *made = gb_allocate(1, sizeof *made);
    if (!made)
        return no_memory(error);
    *made = (gb_matcher){.grammar = matcher->grammar, .cache = cache};
    gb_match_cache_retain(matcher->grammar->caches, cache);
    pthread_mutex_lock(&cache->mutex);
    const bool is_copied = copy_history(matcher, made);
    link_to_cache(made);
    pthread_mutex_unlock(&cache->mutex);
    if (is_copied) {
        *clone = made;
        return GUMBEL_OK;
    }
    gb_matcher_destroy(made);
    return no_memory(error);
}

void gb_matcher_destroy(gb_matcher *matcher) {
    if (!matcher)
        return;
    unlink_from_cache(matcher);
    gb_match_cache_release(matcher->grammar->caches, matcher->cache);
    gb_free(matcher->history);
    gb_free(matcher);
}

/* ---- Tokens ----------------------------------------------------------------------------------------------
 */

/* Goes on at a configuration, unless the way there met an error. */
static bool take(gb_matcher *matcher, uint32_t configuration) {
    gb_configurations *configurations = &matcher->cache->configurations;
    if (configuration == GB_DEAD || configurations->status != GUMBEL_OK)
        return false;
    if (!push(matcher, configuration))
        configurations->status = GUMBEL_ERROR_MEMORY;
    return configurations->status == GUMBEL_OK;
}

bool gb_matcher_accept_byte(gb_matcher *matcher, uint8_t byte) {
    gb_configurations *configurations = gb_matcher_lock(matcher);
    const uint32_t at = gb_configuration_of(matcher);
    const bool is_taken = at != GB_ENDED && take(matcher, gb_byte_step(configurations, at, byte));
    gb_matcher_unlock(matcher);
    return is_taken;
}

static bool accept_token(gb_matcher *matcher, gb_configurations *configurations, uint32_t token) {
    const gb_match_cache *cache = matcher->cache;
    const uint32_t at = gb_configuration_of(matcher);
    if (at == GB_ENDED || !cache->trie || token >= cache->trie->token_count)
        return false;
    const bool is_end = gb_is_end_token(cache, token);
    if (configurations->traits[at] & GB_MAY_END && is_end)
        return take(matcher, GB_ENDED);
    const gb_token_bytes bytes = gb_bytes_of_token(cache->trie, token);
    const uint32_t by_id = gb_token_step(configurations, at, token, !is_end);
    uint32_t by_bytes = bytes.size ? at : GB_DEAD;
    for (size_t i = 0; i < bytes.size && by_bytes != GB_DEAD; i++)
        by_bytes = gb_byte_step(configurations, by_bytes, bytes.data[i]);
    return take(matcher, gb_unite(configurations, by_id, by_bytes));
}

bool gb_matcher_accept_token(gb_matcher *matcher, uint32_t token) {
    gb_configurations *configurations = gb_matcher_lock(matcher);
    const bool is_taken = accept_token(matcher, configurations, token);
    gb_matcher_unlock(matcher);
    return is_taken;
}

size_t gb_matcher_history(const gb_matcher *matcher) {
    return matcher->history_count - 1;
}

bool gb_matcher_rollback(gb_matcher *matcher, size_t count) {
    if (count >= matcher->history_count)
        return false;
    pthread_mutex_lock(&matcher->cache->mutex);
    matcher->history_count -= count;
    pthread_mutex_unlock(&matcher->cache->mutex);
    return true;
}

bool gb_matcher_may_end(const gb_matcher *matcher) {
    gb_match_cache *cache = matcher->cache;
    pthread_mutex_lock(&cache->mutex);
    const uint32_t at = gb_configuration_of(matcher);
    const bool may_end = at == GB_ENDED || cache->configurations.traits[at] & GB_MAY_END;
    pthread_mutex_unlock(&cache->mutex);
    return may_end;
}

/* ---- Masks -----------------------------------------------------------------------------------------------
 */

/* The mask of a configuration, made if need be. NULL after an error. */
static const gb_stored_mask *find_mask(gb_match_cache *cache, uint32_t configuration) {
    const uint32_t at = gb_find_alike(&cache->alike, &cache->configurations, configuration);
    const gb_stored_mask *mask = gb_find_mask(&cache->masks, at);
    if (mask)
        return mask;
    unsigned slices;
    gb_walk_tokens(cache, at, cache->masks.scratch, &slices);
    if (cache->configurations.status != GUMBEL_OK)
        return NULL;
    mask = gb_store_mask(&cache->masks, cache->trie, at, slices);
    if (!mask)
        cache->configurations.status = GUMBEL_ERROR_MEMORY;
    return mask;
}

gumbel_status gb_matcher_mask(gb_matcher *matcher, uint32_t *words, gumbel_error *error) {
    const gb_token_trie *trie = matcher->cache->trie;
    gb_matcher_lock(matcher);
    const uint32_t at = gb_configuration_of(matcher);
    const gb_stored_mask *mask = at == GB_ENDED ? NULL : find_mask(matcher->cache, at);
    if (mask)
        gb_write_mask(mask, trie, words);
    else if (at == GB_ENDED)
        memset(words, 0, trie->word_count * sizeof *words);
    gb_matcher_unlock(matcher);
    return gb_matcher_error(matcher, error);
}

int32_t gb_matcher_forced(gb_matcher *matcher, bool makes_mask) {
    gb_match_cache *cache = matcher->cache;
    if (!cache->trie)
        return -1;
    gb_configurations *configurations = gb_matcher_lock(matcher);
    const uint32_t at = gb_configuration_of(matcher);
    const gb_stored_mask *mask = NULL;
    if (at != GB_ENDED)
        mask = makes_mask ? find_mask(cache, at)
                          : gb_find_mask(&cache->masks, gb_find_alike(&cache->alike, configurations, at));
    const int32_t forced = mask ? mask->forced : -1;
    gb_matcher_unlock(matcher);
    return forced;
}
