/* SPDX-License-Identifier: Apache-2.0
 *
 * Matchers at the public API.
 */
#include "base/byte_buffer.h"
#include "base/memory.h"
#include "grammar/api.h"
#include "grammar/position.h"

#include <stdio.h>
#include <string.h>

struct gumbel_matcher {
    gumbel_grammar *grammar; /* a reference */
    gb_matcher *matcher;
    int32_t *tokens; /* that were accepted; owned */
    size_t token_count, token_capacity;
};

enum { EXPECTED = 160, MESSAGE = 400 };

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

static bool copy_tokens(const gumbel_matcher *from, gumbel_matcher *to) {
    if (!gb_grow((void **)&to->tokens, &to->token_capacity, from->token_count, sizeof *to->tokens))
        return false;
    if (from->token_count > 0)
        memcpy(to->tokens, from->tokens, from->token_count * sizeof *to->tokens);
    to->token_count = from->token_count;
    return true;
}

gumbel_status gumbel_matcher_clone(const gumbel_matcher *matcher, gumbel_matcher **clone,
                                   gumbel_error *error) {
    gb_matcher *cloned;
    *clone = NULL;
    GB_TRY(gb_matcher_clone(matcher->matcher, &cloned, error));
    GB_TRY(wrap(matcher->grammar, cloned, clone, error));
    if (copy_tokens(matcher, *clone))
        return GUMBEL_OK;
    gumbel_matcher_destroy(*clone);
    *clone = NULL;
    return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a matcher");
}

void gumbel_matcher_destroy(gumbel_matcher *matcher) {
    if (!matcher)
        return;
    gb_matcher_destroy(matcher->matcher);
    gumbel_grammar_destroy(matcher->grammar);
    gb_free(matcher->tokens);
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

void gb_describe_matcher(const gumbel_matcher *matcher, char *text, size_t size) {
    char where[GB_POSITION_SIZE], expected[EXPECTED];
    gb_byte_buffer answer = {0};
    for (size_t i = 0; i < matcher->token_count; i++) {
        const gb_token_bytes bytes = gb_bytes_of_token(matcher->grammar->trie, (uint32_t)matcher->tokens[i]);
        gb_buffer_append(&answer, bytes.data, bytes.size);
    }
    gb_describe_position(matcher->grammar->is_json, (const char *)answer.data, answer.size, where);
    gb_matcher_where(matcher->matcher, expected, sizeof expected);
    snprintf(text, size, "%s: the grammar expects %s", where, expected);
    gb_buffer_free(&answer);
}

gumbel_status gumbel_matcher_accept(gumbel_matcher *matcher, int32_t token, gumbel_error *error) {
    const bool is_token = token >= 0 && (uint32_t)token < matcher->grammar->trie->token_count;
    if (!gb_grow((void **)&matcher->tokens, &matcher->token_capacity, matcher->token_count + 1,
                 sizeof *matcher->tokens))
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a matcher");
    if (is_token && gb_matcher_accept_token(matcher->matcher, (uint32_t)token)) {
        matcher->tokens[matcher->token_count++] = token;
        return GUMBEL_OK;
    }
    if (is_token)
        GB_TRY(gb_matcher_error(matcher->matcher, error));
    char message[MESSAGE];
    gb_describe_matcher(matcher, message, sizeof message);
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "token %d is not allowed %s", token, message);
}

gumbel_status gumbel_matcher_rollback(gumbel_matcher *matcher, size_t count, gumbel_error *error) {
    if (gb_matcher_rollback(matcher->matcher, count)) {
        matcher->token_count -= count;
        return GUMBEL_OK;
    }
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "matcher: back by %zu tokens, of which it has %zu", count,
                   gb_matcher_history(matcher->matcher));
}

int32_t gumbel_matcher_forced(gumbel_matcher *matcher) {
    return gb_matcher_forced(matcher->matcher, true);
}

int32_t gb_known_forced(gumbel_matcher *matcher) {
    return gb_matcher_forced(matcher->matcher, false);
}

bool gumbel_matcher_may_end(const gumbel_matcher *matcher) {
    return gb_matcher_may_end(matcher->matcher);
}
