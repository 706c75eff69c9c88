/* SPDX-License-Identifier: Apache-2.0 */
#include "run/drawn_ahead.h"

#include "base/memory.h"

#include <string.h>

gumbel_status gb_drawn_ahead_reserve(const gumbel_engine *engine, gb_drawn_ahead *ahead,
                                     gumbel_error *error) {
    const size_t rows = engine->draft_tokens + (size_t)1;
    const size_t tops = rows * engine->program->metadata.max_top_logprobs;
    *ahead = (gb_drawn_ahead){.results = gb_allocate(rows, sizeof *ahead->results),
                              .top_tokens = gb_allocate(tops, sizeof *ahead->top_tokens),
                              .top_logprobs = gb_allocate(tops, sizeof *ahead->top_logprobs)};
    if (ahead->results && ahead->top_tokens && ahead->top_logprobs) {
        for (size_t r = 0; r < rows; r++)
            ahead->results[r].size = sizeof *ahead->results;
        return GUMBEL_OK;
    }
    gb_drawn_ahead_free(ahead);
    return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for drafts of %u tokens", engine->draft_tokens);
}

void gb_drawn_ahead_free(gb_drawn_ahead *ahead) {
    gb_free(ahead->results);
    gb_free(ahead->top_tokens);
    gb_free(ahead->top_logprobs);
    *ahead = (gb_drawn_ahead){0};
}

void gb_drawn_ahead_keep(const gumbel_engine *engine, gb_drawn_ahead *ahead) {
    const size_t width = engine->program->metadata.max_top_logprobs;
    ahead->count = ahead->left = ahead->results[0].accepted + 1;
    for (uint32_t r = 0; r < ahead->count; r++) {
        gumbel_result *result = &ahead->results[r];
        const size_t top = result->top_tokens ? result->top_logprobs : 0;
        if (top == 0)
            continue;
        int32_t *tokens = ahead->top_tokens + r * width;
        float *logprobs = ahead->top_logprobs + r * width;
        memcpy(tokens, result->top_tokens, top * sizeof *tokens);
        memcpy(logprobs, result->top_token_logprob, top * sizeof *logprobs);
        result->top_tokens = tokens;
        result->top_token_logprob = logprobs;
    }
}

const gumbel_result *gb_drawn_ahead_take(gb_drawn_ahead *ahead) {
    return &ahead->results[ahead->count - ahead->left--];
}

/* A row without a token, which can only be the last one, has moved no seed. */
void gb_session_settle(gumbel_session *session) {
    gb_drawn_ahead *ahead = &session->ahead;
    gb_backend *backend = session->engine->backend;
    if (ahead->left == 0)
        return;
    const bool has_failed = ahead->results[ahead->count - 1].status != GUMBEL_OK;
    session->seed_counter -= ahead->left - has_failed;
    session->position -= ahead->left;
    backend->functions->truncate_slot(backend, session->slot, session->position);
    session->pending_token = session->drawn_token = session->tokens[session->position];
    ahead->left = 0;
}
