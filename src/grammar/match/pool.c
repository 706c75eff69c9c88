/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/match/pool.h"

#include "base/memory.h"
#include "grammar/match/matcher.h"

#include <pthread.h>
#include <string.h>

struct gb_matcher_pool {
    pthread_mutex_t mutex;
    gb_matcher *matchers[GB_POOL_SIZE];
    size_t count;
};

gb_matcher_pool *gb_matcher_pool_create(void) {
    gb_matcher_pool *pool = gb_allocate(1, sizeof *pool);
    if (pool && pthread_mutex_init(&pool->mutex, NULL) != 0) {
        gb_free(pool);
        return NULL;
    }
    return pool;
}

void gb_matcher_pool_destroy(gb_matcher_pool *pool) {
    if (!pool)
        return;
    for (size_t i = 0; i < pool->count; i++)
        gb_matcher_free(pool->matchers[i]);
    pthread_mutex_destroy(&pool->mutex);
    gb_free(pool);
}

static bool fits(const gb_matcher *matcher, const gb_token_trie *trie, const gb_matcher_options *options) {
    return matcher->trie == trie && matcher->cache_bytes == gb_cache_bytes_of(options) &&
           matcher->work == gb_work_of(options) && matcher->end_token_count == options->end_token_count &&
           (options->end_token_count == 0 ||
            memcmp(matcher->end_tokens, options->end_tokens,
                   options->end_token_count * sizeof *options->end_tokens) == 0);
}

gb_matcher *gb_matcher_pool_take(gb_matcher_pool *pool, const gb_token_trie *trie,
                                 const gb_matcher_options *options) {
    gb_matcher *taken = NULL;
    pthread_mutex_lock(&pool->mutex);
    for (size_t i = pool->count; i-- > 0 && !taken;)
        if (fits(pool->matchers[i], trie, options)) {
            taken = pool->matchers[i];
            pool->matchers[i] = pool->matchers[--pool->count];
        }
    pthread_mutex_unlock(&pool->mutex);
    return taken;
}

bool gb_matcher_pool_put(gb_matcher_pool *pool, gb_matcher *matcher) {
    pthread_mutex_lock(&pool->mutex);
    bool has_room = pool->count < GB_POOL_SIZE;
    if (has_room)
        pool->matchers[pool->count++] = matcher;
    pthread_mutex_unlock(&pool->mutex);
    return has_room;
}
