/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/match/matcher.h"

#include "base/memory.h"
#include "grammar/match/pool.h"

#include <string.h>

/* Stacks that one closure may visit. */
#define STACK_LIMIT 20000
#define DEFAULT_WORK UINT64_C(20000000)
#define DEFAULT_CACHE_BYTES ((size_t)16 << 20)

static gumbel_status no_memory(gumbel_error *error) {
    return gb_fail(error, GUMBEL_ERROR_MEMORY, "grammar: no memory to follow an answer");
}

/* ---- Made and destroyed ----------------------------------------------------------------------------------
 */

static bool allocate(gb_matcher *matcher, const uint32_t *end_tokens, size_t count) {
    matcher->end_tokens = gb_allocate(count, sizeof *matcher->end_tokens);
    matcher->end_token_count = count;
    if (!matcher->end_tokens || (matcher->trie && !gb_mask_cache_begin(&matcher->masks, matcher->trie)))
        return false;
    if (count)
        memcpy(matcher->end_tokens, end_tokens, count * sizeof *end_tokens);
    return gb_configurations_begin(&matcher->configurations, &matcher->grammar->automaton, STACK_LIMIT,
                                   matcher->work);
}

static gumbel_status check_end_tokens(const gb_token_trie *trie, const gb_matcher_options *options,
                                      gumbel_error *error) {
    for (size_t i = 0; i < options->end_token_count; i++)
        if (!trie || options->end_tokens[i] >= trie->token_count)
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "grammar: end token %u is none of the vocabulary's",
                           options->end_tokens[i]);
    return GUMBEL_OK;
}

/* An error of one call is not one of the next: what it was about may not be asked again. */
static void forget_error(gb_matcher *matcher) {
    matcher->configurations.status = GUMBEL_OK;
    matcher->configurations.work = 0;
    matcher->configurations.closure.failed = matcher->configurations.closure.full = false;
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

size_t gb_cache_bytes_of(const gb_matcher_options *options) {
    return options->cache_bytes ? options->cache_bytes : DEFAULT_CACHE_BYTES;
}

uint64_t gb_work_of(const gb_matcher_options *options) {
    return options->work ? options->work : DEFAULT_WORK;
}

/* Puts the matcher at the start of an answer. */
static gumbel_status begin(gb_matcher *matcher, gumbel_error *error) {
    forget_error(matcher);
    matcher->history_count = 0;
    uint32_t start = gb_start_configuration(&matcher->configurations);
    GB_TRY(gb_matcher_error(matcher, error));
    return push(matcher, start) ? GUMBEL_OK : no_memory(error);
}

static gb_matcher *make_matcher(const gb_grammar *grammar, const gb_token_trie *trie,
                                const gb_matcher_options *options) {
    gb_matcher *made = gb_allocate(1, sizeof *made);
    if (!made)
        return NULL;
    *made = (gb_matcher){.grammar = grammar,
                         .trie = trie,
                         .cache_bytes = gb_cache_bytes_of(options),
                         .work = gb_work_of(options)};
    made->bound = made->cache_bytes;
    if (allocate(made, options->end_tokens, options->end_token_count))
        return made;
    gb_matcher_free(made);
    return NULL;
}

gumbel_status gb_matcher_create(const gb_grammar *grammar, const gb_token_trie *trie,
                                const gb_matcher_options *options, gb_matcher **matcher,
                                gumbel_error *error) {
    const gb_matcher_options none = {0};
    options = options ? options : &none;
    *matcher = NULL;
    GB_TRY(check_end_tokens(trie, options, error));
    gb_matcher *made = gb_matcher_pool_take(grammar->pool, trie, options);
    if (!made)
        made = make_matcher(grammar, trie, options);
    if (!made)
        return no_memory(error);
    gumbel_status status = begin(made, error);
    if (status == GUMBEL_OK)
        *matcher = made;
    else
        gb_matcher_free(made);
    return status;
}

void gb_matcher_free(gb_matcher *matcher) {
    gb_configurations_free(&matcher->configurations);
    gb_plain_runs_free(&matcher->plain_runs);
    gb_mask_cache_free(&matcher->masks);
    gb_free(matcher->end_tokens);
    gb_free(matcher->history);
    gb_free(matcher);
}

void gb_matcher_destroy(gb_matcher *matcher) {
    if (matcher && !gb_matcher_pool_put(matcher->grammar->pool, matcher))
        gb_matcher_free(matcher);
}

gumbel_status gb_matcher_error(const gb_matcher *matcher, gumbel_error *error) {
    gumbel_status status = matcher->configurations.status;
    if (status == GUMBEL_ERROR_LIMIT)
        return gb_fail(error, status,
                       "grammar: more than %d ways to read the answer, or too many to go on; make it less "
                       "ambiguous",
                       STACK_LIMIT);
    return status == GUMBEL_OK ? status : no_memory(error);
}

/* ---- Tokens ----------------------------------------------------------------------------------------------
 */

static bool take(gb_matcher *matcher, uint32_t configuration) {
    return configuration != GB_DEAD && matcher->configurations.status == GUMBEL_OK &&
           push(matcher, configuration);
}

bool gb_matcher_accept_byte(gb_matcher *matcher, uint8_t byte) {
    forget_error(matcher);
    gb_matcher_bound(matcher);
    uint32_t at = gb_configuration_of(matcher);
    return at != GB_ENDED && take(matcher, gb_byte_step(&matcher->configurations, at, byte));
}

bool gb_is_end_token(const gb_matcher *matcher, uint32_t token) {
    for (size_t i = 0; i < matcher->end_token_count; i++)
        if (matcher->end_tokens[i] == token)
            return true;
    return false;
}

bool gb_matcher_accept_token(gb_matcher *matcher, uint32_t token) {
    forget_error(matcher);
    gb_matcher_bound(matcher);
    gb_configurations *configurations = &matcher->configurations;
    uint32_t at = gb_configuration_of(matcher);
    if (at == GB_ENDED || !matcher->trie || token >= matcher->trie->token_count)
        return false;
    if (configurations->traits[at] & GB_MAY_END && gb_is_end_token(matcher, token))
        return push(matcher, GB_ENDED);
    gb_token_bytes bytes = gb_bytes_of_token(matcher->trie, token);
    uint32_t by_id = gb_token_step(configurations, at, token, !gb_is_end_token(matcher, token));
    uint32_t by_bytes = bytes.size ? at : GB_DEAD;
    for (size_t i = 0; i < bytes.size && by_bytes != GB_DEAD; i++)
        by_bytes = gb_byte_step(configurations, by_bytes, bytes.data[i]);
    return take(matcher, gb_unite(configurations, by_id, by_bytes));
}

size_t gb_matcher_history(const gb_matcher *matcher) {
    return matcher->history_count - 1;
}

bool gb_matcher_rollback(gb_matcher *matcher, size_t count) {
    if (count >= matcher->history_count)
        return false;
    matcher->history_count -= count;
    return true;
}

bool gb_matcher_may_end(const gb_matcher *matcher) {
    uint32_t at = gb_configuration_of(matcher);
    return at == GB_ENDED || matcher->configurations.traits[at] & GB_MAY_END;
}

/* ---- Masks -----------------------------------------------------------------------------------------------
 */

/* The mask here, made if need be. NULL after an error. */
static const gb_stored_mask *find_mask(gb_matcher *matcher) {
    forget_error(matcher);
    gb_matcher_bound(matcher);
    uint32_t at = gb_configuration_of(matcher);
    const gb_stored_mask *mask = gb_find_mask(&matcher->masks, at);
    if (mask)
        return mask;
    unsigned slices;
    gb_walk_tokens(matcher, at, matcher->masks.scratch, &slices);
    if (matcher->configurations.status != GUMBEL_OK)
        return NULL;
    mask = gb_store_mask(&matcher->masks, matcher->trie, at, slices);
    if (!mask)
        matcher->configurations.status = GUMBEL_ERROR_MEMORY;
    return mask;
}

gumbel_status gb_matcher_mask(gb_matcher *matcher, uint32_t *words, gumbel_error *error) {
    if (gb_configuration_of(matcher) == GB_ENDED) {
        memset(words, 0, matcher->trie->word_count * sizeof *words);
        return GUMBEL_OK;
    }
    const gb_stored_mask *mask = find_mask(matcher);
    if (!mask)
        return gb_matcher_error(matcher, error);
    gb_write_mask(mask, matcher->trie, words);
    return GUMBEL_OK;
}

int32_t gb_matcher_forced(gb_matcher *matcher) {
    if (!matcher->trie || gb_configuration_of(matcher) == GB_ENDED)
        return -1;
    const gb_stored_mask *mask = find_mask(matcher);
    return mask ? mask->forced : -1;
}
