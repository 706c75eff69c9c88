/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/match/match_cache.h"

#include "base/memory.h"

#include <string.h>

#define DEFAULT_WORK UINT64_C(20000000)
#define DEFAULT_CACHE_BYTES ((size_t)16 << 20)

struct gb_match_caches {
    pthread_mutex_t mutex;
    gb_match_cache *list;
};

/* ---- One cache -------------------------------------------------------------------------------------------
 */

static size_t cache_bytes_of(const gb_matcher_options *options) {
    return options->cache_bytes ? options->cache_bytes : DEFAULT_CACHE_BYTES;
}

static uint64_t work_of(const gb_matcher_options *options) {
    return options->work ? options->work : DEFAULT_WORK;
}

static void free_cache(gb_match_cache *cache) {
    gb_configurations_free(&cache->configurations);
    gb_plain_runs_free(&cache->plain_runs);
    gb_plain_states_free(&cache->plain_states);
    gb_alike_free(&cache->alike);
    gb_mask_cache_free(&cache->masks);
    gb_free(cache->end_tokens);
    pthread_mutex_destroy(&cache->mutex);
    gb_free(cache);
}

static bool fill_cache(gb_match_cache *cache, const gb_matcher_options *options) {
    const size_t count = options->end_token_count;
    cache->end_tokens = gb_allocate(count, sizeof *cache->end_tokens);
    cache->end_token_count = count;
    if (!cache->end_tokens || (cache->trie && !gb_mask_cache_begin(&cache->masks, cache->trie)))
        return false;
    if (count)
        memcpy(cache->end_tokens, options->end_tokens, count * sizeof *cache->end_tokens);
    if (cache->automaton->count_count || cache->automaton->distinct_count)
        gb_alike_begin(&cache->alike, cache->trie);
    return gb_configurations_begin(&cache->configurations, cache->automaton, GB_STACK_LIMIT, cache->work);
}

static gb_match_cache *make_cache(const gb_automaton *automaton, const gb_token_trie *trie,
                                  const gb_matcher_options *options) {
    gb_match_cache *made = gb_allocate(1, sizeof *made);
    if (!made)
        return NULL;
    *made = (gb_match_cache){.automaton = automaton,
                             .trie = trie,
                             .cache_bytes = cache_bytes_of(options),
                             .work = work_of(options)};
    made->bound = made->cache_bytes;
    if (pthread_mutex_init(&made->mutex, NULL) != 0) {
        gb_free(made);
        return NULL;
    }
    if (fill_cache(made, options))
        return made;
    free_cache(made);
    return NULL;
}

bool gb_is_end_token(const gb_match_cache *cache, uint32_t token) {
    for (size_t i = 0; i < cache->end_token_count; i++)
        if (cache->end_tokens[i] == token)
            return true;
    return false;
}

/* ---- Those of a grammar ----------------------------------------------------------------------------------
 */

gb_match_caches *gb_match_caches_create(void) {
    gb_match_caches *caches = gb_allocate(1, sizeof *caches);
    if (caches && pthread_mutex_init(&caches->mutex, NULL) != 0) {
        gb_free(caches);
        return NULL;
    }
    return caches;
}

void gb_match_caches_destroy(gb_match_caches *caches) {
    if (!caches)
        return;
    while (caches->list) {
        gb_match_cache *cache = caches->list;
        caches->list = cache->next;
        free_cache(cache);
    }
    pthread_mutex_destroy(&caches->mutex);
    gb_free(caches);
}

static bool fits(const gb_match_cache *cache, const gb_token_trie *trie, const gb_matcher_options *options) {
    return cache->trie == trie && cache->cache_bytes == cache_bytes_of(options) &&
           cache->work == work_of(options) && cache->end_token_count == options->end_token_count &&
           (options->end_token_count == 0 ||
            memcmp(cache->end_tokens, options->end_tokens,
                   options->end_token_count * sizeof *options->end_tokens) == 0);
}

gb_match_cache *gb_match_cache_acquire(gb_match_caches *caches, const gb_automaton *automaton,
                                       const gb_token_trie *trie, const gb_matcher_options *options) {
    pthread_mutex_lock(&caches->mutex);
    gb_match_cache *cache = caches->list;
    while (cache && !fits(cache, trie, options))
        cache = cache->next;
    if (!cache && (cache = make_cache(automaton, trie, options))) {
        cache->next = caches->list;
        caches->list = cache;
    }
    if (cache)
        cache->references++;
    pthread_mutex_unlock(&caches->mutex);
    return cache;
}

void gb_match_cache_retain(gb_match_caches *caches, gb_match_cache *cache) {
    pthread_mutex_lock(&caches->mutex);
    cache->references++;
    pthread_mutex_unlock(&caches->mutex);
}

/* Takes the last cache that nobody uses out of the list where there are too many; NULL: there are not. */
static gb_match_cache *take_surplus(gb_match_caches *caches) {
    gb_match_cache **last = NULL;
    size_t idle = 0;
    for (gb_match_cache **at = &caches->list; *at; at = &(*at)->next)
        if ((*at)->references == 0) {
            last = at;
            idle++;
        }
    if (idle <= GB_IDLE_CACHES)
        return NULL;
    gb_match_cache *surplus = *last;
    *last = surplus->next;
    return surplus;
}

void gb_match_cache_release(gb_match_caches *caches, gb_match_cache *cache) {
    pthread_mutex_lock(&caches->mutex);
    cache->references--;
    gb_match_cache *surplus = take_surplus(caches);
    pthread_mutex_unlock(&caches->mutex);
    if (surplus)
        free_cache(surplus);
}
