/* SPDX-License-Identifier: Apache-2.0 */
#include "run/requests.h"

#include "base/versioned.h"
#include "run/drawn_ahead.h"

#include <stdio.h>

enum { WHAT = 48 };

/* ---- Taking -------------------------------------------------------------------------------------------- */

gumbel_status gb_read_requests(gumbel_engine *engine, const gumbel_request *requests, size_t count,
                               gumbel_error *error) {
    GB_TRY(gb_check_versioned(requests, "request 0", error));
    const size_t size = requests->size;
    if (size % _Alignof(gumbel_request) != 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "request 0: the field size is %zu, expected its sizeof",
                       size);
    if (count > engine->slots)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%zu requests: the engine has %u slots", count,
                       engine->slots);
    for (size_t i = 0; i < count; i++) {
        const void *given = (const char *)requests + i * size;
        char what[WHAT];
        snprintf(what, sizeof what, "request %zu", i);
        if (((const gumbel_request *)given)->size != size)
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s: size %zu differs from the first's", what,
                           ((const gumbel_request *)given)->size);
        GB_TRY(gb_read_versioned(given, what, &engine->requests.list[i], sizeof(gumbel_request), error));
    }
    engine->requests.count = count;
    return GUMBEL_OK;
}

bool gb_session_continues(const gumbel_session *session, int32_t token) {
    if (session->is_repeating)
        return session->generated[session->position];
    return session->drawn_token != -1 && (!session->is_rewound || token == session->drawn_token);
}

bool gb_request_generated(const gumbel_request *request, uint32_t i) {
    const gumbel_session *session = request->session;
    if (session->is_repeating)
        return session->generated[gb_session_run_position(session) + i];
    return i == 0 && session->held == 0 && gb_session_continues(session, request->tokens[0]);
}

/* ---- Checking ------------------------------------------------------------------------------------------ */

static gumbel_status check_vocabulary(const gumbel_engine *engine, const int32_t *tokens, size_t count,
                                      size_t index, gumbel_error *error) {
    const uint64_t vocab_size = engine->program->metadata.vocab_size;
    for (size_t i = 0; i < count; i++)
        if (tokens[i] < 0 || (uint64_t)tokens[i] >= vocab_size)
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                           "request %zu: token %d: the vocabulary has ids 0 to %llu", index, tokens[i],
                           (unsigned long long)vocab_size - 1);
    return GUMBEL_OK;
}

static gumbel_status check_tokens(const gumbel_engine *engine, const gumbel_request *request, size_t index,
                                  gumbel_error *error) {
    const size_t count = gb_request_tokens(request);
    if (!request->tokens || request->token_count == 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "request %zu: no tokens", index);
    if (request->token_count > engine->prefill_chunk || count > engine->prefill_chunk)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "request %zu: %zu tokens for one session, at most %u (the engine's prefill chunk) fit "
                       "in a step",
                       index, count, engine->prefill_chunk);
    GB_TRY(check_vocabulary(engine, request->tokens, request->token_count, index, error));
    if (count > engine->max_context - request->session->position)
        return gb_fail(error, GUMBEL_ERROR_LIMIT,
                       "request %zu: %zu tokens after position %u: the context holds %u", index, count,
                       request->session->position, engine->max_context);
    return GUMBEL_OK;
}

static gumbel_status check_draft(const gumbel_engine *engine, const gumbel_request *request, size_t index,
                                 gumbel_error *error) {
    if (request->draft_count == 0)
        return GUMBEL_OK;
    if (request->draft_count > engine->draft_tokens)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "request %zu: %zu draft tokens: the engine takes at most %u (option draft_tokens)",
                       index, request->draft_count, engine->draft_tokens);
    if (!request->draft || !request->result)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "request %zu: %zu draft tokens without %s", index,
                       request->draft_count, request->draft ? "a result for each row" : "a draft");
    if (request->token_count != 1 || !gb_request_generated(request, 0))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "request %zu: a draft stands behind one token that continues an answer", index);
    return check_vocabulary(engine, request->draft, request->draft_count, index, error);
}

static gumbel_status check_results(const gumbel_request *request, size_t index, gumbel_error *error) {
    char what[WHAT];
    snprintf(what, sizeof what, "request %zu: result", index);
    if (!request->result)
        return GUMBEL_OK;
    GB_TRY(gb_check_versioned(request->result, what, error));
    if (request->draft_count > 0 && request->result->size % _Alignof(gumbel_result) != 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s: the field size is %zu, expected its sizeof", what,
                       request->result->size);
    for (size_t r = 1; r <= request->draft_count; r++)
        if (gb_request_result(request, r)->size != request->result->size)
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s %zu: size %zu differs from the first's", what, r,
                           gb_request_result(request, r)->size);
    return GUMBEL_OK;
}

static gumbel_status check_request(const gumbel_engine *engine, size_t index, gumbel_error *error) {
    const gumbel_request *requests = engine->requests.list, *request = &requests[index];
    if (!request->session || request->session->engine != engine || !request->session->in_use)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "request %zu: not a session of this engine", index);
    for (size_t i = 0; i < index; i++)
        if (requests[i].session == request->session)
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "requests %zu and %zu are for the same session", i,
                           index);
    gb_session_settle(request->session);
    GB_TRY(check_tokens(engine, request, index, error));
    GB_TRY(check_draft(engine, request, index, error));
    return check_results(request, index, error);
}

gumbel_status gb_check_requests(const gumbel_engine *engine, gumbel_error *error) {
    for (size_t i = 0; i < engine->requests.count; i++)
        GB_TRY(check_request(engine, i, error));
    return GUMBEL_OK;
}

gumbel_status gb_check_step(const gumbel_engine *engine, gumbel_error *error) {
    size_t left = engine->step_tokens;
    for (size_t i = 0; i < engine->requests.count; i++) {
        const gumbel_request *request = &engine->requests.list[i];
        const size_t count = gb_request_tokens(request);
        if (count > engine->prefill_chunk)
            return gb_fail(
                error, GUMBEL_ERROR_ARGUMENT,
                "request %zu: %zu tokens, with %u that its session held until their block is full: "
                "at most %u (the engine's prefill chunk) fit in a step",
                i, count, request->session->held, engine->prefill_chunk);
        if (count > left)
            return gb_fail(error, GUMBEL_ERROR_LIMIT,
                           "request %zu: the step has more than %u tokens%s (engine option step_tokens)", i,
                           engine->step_tokens,
                           request->session->held > 0 ? ", those that its session held among them" : "");
        left -= count;
    }
    return GUMBEL_OK;
}
