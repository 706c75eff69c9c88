/* SPDX-License-Identifier: Apache-2.0
 *
 * Matchers at the public API.
 */
#include "base/memory.h"
#include "grammar/api.h"

struct gumbel_matcher {
    gumbel_grammar *grammar; /* a reference */
    gb_matcher *matcher;
};

enum { WHERE = 160 };

static gumbel_status check_tokens(const gb_token_trie *trie, const int32_t *tokens, size_t count,
                                  gumbel_error *error) {
    if (count > 0 && !tokens)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "matcher: end_tokens is NULL");
    for (size_t i = 0; i < count; i++)
        if (tokens[i] < 0 || (uint32_t)tokens[i] >= trie->token_count)
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                           "matcher: end token %d: the vocabulary has ids 0 to %u", tokens[i],
                           trie->token_count - 1);
    return GUMBEL_OK;
}

/* matcher is owned, also after an error. */
static gumbel_status wrap(const gumbel_grammar *grammar, gb_matcher *matcher, gumbel_matcher **result,
                          gumbel_error *error) {
    gumbel_matcher *made = gb_allocate(1, sizeof *made);
    if (!made) {
        gb_matcher_destroy(matcher);
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a matcher");
    }
    made->grammar = gb_grammar_retain(grammar);
    made->matcher = matcher;
    *result = made;
    return GUMBEL_OK;
}

gumbel_status gumbel_matcher_create(const gumbel_grammar *grammar, const int32_t *end_tokens, size_t count,
                                    gumbel_matcher **result, gumbel_error *error) {
    *result = NULL;
    GB_TRY(check_tokens(grammar->trie, end_tokens, count, error));
    const gb_matcher_options options = {.end_tokens = (const uint32_t *)(const void *)end_tokens,
                                        .end_token_count = count};
    gb_matcher *matcher;
    GB_TRY(gb_matcher_create(grammar->compiled, grammar->trie, &options, &matcher, error));
    return wrap(grammar, matcher, result, error);
}

gumbel_status gumbel_matcher_clone(const gumbel_matcher *matcher, gumbel_matcher **clone,
                                   gumbel_error *error) {
    gb_matcher *cloned;
    *clone = NULL;
    GB_TRY(gb_matcher_clone(matcher->matcher, &cloned, error));
    return wrap(matcher->grammar, cloned, clone, error);
}

void gumbel_matcher_destroy(gumbel_matcher *matcher) {
    if (!matcher)
        return;
    gb_matcher_destroy(matcher->matcher);
    gumbel_grammar_destroy(matcher->grammar);
    gb_free(matcher);
}

gumbel_status gumbel_matcher_mask(gumbel_matcher *matcher, uint32_t *words, size_t word_count,
                                  gumbel_error *error) {
    const uint32_t needed = matcher->grammar->trie->word_count;
    if (word_count < needed)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "matcher: a mask of %zu words, expected %u or more",
                       word_count, needed);
    for (size_t i = needed; i < word_count; i++)
        words[i] = 0;
    return gb_matcher_mask(matcher->matcher, words, error);
}

gumbel_status gumbel_matcher_accept(gumbel_matcher *matcher, int32_t token, gumbel_error *error) {
    const bool is_token = token >= 0 && (uint32_t)token < matcher->grammar->trie->token_count;
    if (is_token && gb_matcher_accept_token(matcher->matcher, (uint32_t)token))
        return GUMBEL_OK;
    if (is_token)
        GB_TRY(gb_matcher_error(matcher->matcher, error));
    char where[WHERE];
    gb_matcher_where(matcher->matcher, where, sizeof where);
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "token %d is not allowed: the grammar expects %s", token,
                   where);
}

gumbel_status gumbel_matcher_rollback(gumbel_matcher *matcher, size_t count, gumbel_error *error) {
    if (gb_matcher_rollback(matcher->matcher, count))
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "matcher: back by %zu tokens, of which it has %zu", count,
                   gb_matcher_history(matcher->matcher));
}

int32_t gumbel_matcher_forced(gumbel_matcher *matcher) {
    return gb_matcher_forced(matcher->matcher);
}

bool gumbel_matcher_may_end(const gumbel_matcher *matcher) {
    return gb_matcher_may_end(matcher->matcher);
}
