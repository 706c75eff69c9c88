/* SPDX-License-Identifier: Apache-2.0 */
#include "run/handles.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Requests come from a caller whose structure may be longer than ours. */
static gumbel_request *request_at(gumbel_request *requests, size_t index) {
    return (gumbel_request *)(void *)((char *)requests + index * requests->size);
}

/* gumbel_request was smaller in the first release; even smaller ones are from nobody. */
enum { FIRST_REQUEST_SIZE = offsetof(gumbel_request, wants_logprob) };

static bool known_size(const gumbel_request *request) {
    return request->size >= FIRST_REQUEST_SIZE && request->size % _Alignof(gumbel_request) == 0;
}

/* Whether the request has the fields that came after the first release. */
static bool has_later_fields(const gumbel_request *request) {
    return request->size >= sizeof(gumbel_request);
}

static gumbel_status check_tokens(const gumbel_engine *engine, const gumbel_request *request, size_t index,
                                  gumbel_error *error) {
    if (!request->tokens || request->token_count == 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "request %zu: no tokens", index);
    if (request->token_count > engine->prefill_chunk)
        return gb_fail(
            error, GUMBEL_ERROR_ARGUMENT,
            "request %zu: %zu tokens for one session, at most %u (the program's prefill chunk) fit "
            "in a step",
            index, request->token_count, engine->prefill_chunk);
    uint64_t vocab_size = engine->program->metadata.vocab_size;
    for (size_t i = 0; i < request->token_count; i++)
        if (request->tokens[i] < 0 || (uint64_t)request->tokens[i] >= vocab_size)
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                           "request %zu: token %d: the vocabulary has ids 0 to %llu", index,
                           request->tokens[i], (unsigned long long)vocab_size - 1);
    if (request->token_count > engine->max_context - request->session->position)
        return gb_fail(error, GUMBEL_ERROR_LIMIT,
                       "request %zu: %zu tokens after position %u: the context holds %u", index,
                       request->token_count, request->session->position, engine->max_context);
    return GUMBEL_OK;
}

static gumbel_status check_request(gumbel_engine *engine, gumbel_request *requests, size_t index,
                                   gumbel_error *error) {
    const gumbel_request *request = request_at(requests, index);
    if (request->size != requests->size)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "request %zu: size %zu differs from the first's", index,
                       request->size);
    if (!request->session || request->session->engine != engine || !request->session->in_use)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "request %zu: not a session of this engine", index);
    for (size_t i = 0; i < index; i++)
        if (request_at(requests, i)->session == request->session)
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "requests %zu and %zu are for the same session", i,
                           index);
    return check_tokens(engine, request, index, error);
}

/* Whether the request's token i continues an answer: only its first one can, the one after a draw, unless
 * what was run is run again. */
static bool is_generated(const gumbel_request *request, uint32_t i) {
    const gumbel_session *session = request->session;
    if (session->is_repeating)
        return session->generated[session->position + i];
    if (i > 0 || session->drawn_token == -1)
        return false;
    return !session->is_rewound || request->tokens[0] == session->drawn_token;
}

/* Whether the request has no prompt. */
static bool only_generates(const gumbel_request *request) {
    return is_generated(request, (uint32_t)request->token_count - 1);
}

/* Appends the request's tokens to the batch. */
static void add_tokens(gumbel_engine *engine, const gumbel_request *request) {
    uint32_t first = engine->batch.token_count, count = (uint32_t)request->token_count;
    const gumbel_session *session = request->session;
    for (uint32_t i = 0; i < count; i++) {
        engine->batch_tokens[first + i] = request->tokens[i];
        engine->batch_positions[first + i] = (int32_t)(session->position + i);
        engine->batch_slots[first + i] = (int32_t)session->slot;
        engine->batch_generated[first + i] = is_generated(request, i);
    }
    engine->batch.token_count = first + count;
}

/* The position from which on tokens were generated, once the request's have been run. A session goes on
 * generating while it is given nothing but the token that it drew. */
static uint32_t generated_from(const gumbel_request *request) {
    const gumbel_session *session = request->session;
    const bool goes_on = request->token_count == 1 && request->tokens[0] == session->drawn_token;
    return goes_on ? session->generated_from : session->position + (uint32_t)request->token_count;
}

/* The prompt counts as the settings say, by bits for repetition, and for frequency and presence. */
static int32_t prompt_flags(gumbel_penalized penalized) {
    static const int32_t flags[] = {
        [GUMBEL_PENALIZED_USUAL] = 1, [GUMBEL_PENALIZED_GENERATED] = 0, [GUMBEL_PENALIZED_ALL] = 3};
    return flags[penalized];
}

/* Fills in the settings of a row that came after the first release. */
static void set_later_settings(gumbel_engine *engine, const gumbel_request *request,
                               const gumbel_sampling *settings, uint32_t row) {
    engine->batch_min_p[row] = settings->min_p;
    engine->batch_repetition[row] = settings->repetition_penalty;
    engine->batch_frequency[row] = settings->frequency_penalty;
    engine->batch_presence[row] = settings->presence_penalty;
    engine->batch_generated_from[row] = gb_has_penalties(settings) ? (int32_t)generated_from(request) : -1;
    engine->batch_penalize_prompt[row] = prompt_flags(settings->penalized);
    engine->batch_want_logprobs[row] =
        has_later_fields(request) && (request->wants_logprob || request->top_logprobs > 0);
    int32_t *ids = engine->batch_bias_ids + (size_t)row * engine->max_bias;
    float *values = engine->batch_bias_values + (size_t)row * engine->max_bias;
    for (size_t i = 0; i < settings->bias_count && i < engine->max_bias; i++) {
        ids[i] = settings->bias[i].token;
        values[i] = settings->bias[i].value;
    }
    if (settings->bias_count < engine->max_bias)
        ids[settings->bias_count] = -1;
}

/* Checks a row's settings against their ranges and what the program takes. */
static gumbel_status check_settings(const gumbel_engine *engine, const gumbel_request *request, size_t index,
                                    const gumbel_sampling *settings, gumbel_error *error) {
    char where[48];
    snprintf(where, sizeof where, "request %zu: ", index);
    if (has_later_fields(request))
        GB_TRY(
            gb_check_logprobs(engine->program, request->wants_logprob, request->top_logprobs, where, error));
    if (!engine->program->metadata.use_sampling)
        return GUMBEL_OK;
    GB_TRY(gb_check_sampling(settings, where, error));
    return gb_check_inputs(engine->program, settings, where, error);
}

static void report_settings(gumbel_request *request, const gumbel_sampling *settings) {
    request->used.size = sizeof request->used;
    request->used.temperature = settings->temperature;
    request->used.top_k = settings->top_k;
    request->used.top_p = settings->top_p;
    if (!has_later_fields(request))
        return;
    request->used_min_p = settings->min_p;
    request->used_presence_penalty = settings->presence_penalty;
    request->used_frequency_penalty = settings->frequency_penalty;
    request->used_repetition_penalty = settings->repetition_penalty;
}

/* Appends a row for the request's last token, with its settings and its seed. */
static gumbel_status add_row(gumbel_engine *engine, gumbel_request *request, size_t index,
                             gumbel_error *error) {
    gumbel_sampling settings;
    gb_settle_sampling(engine->program, request->sampling, &settings);
    GB_TRY(check_settings(engine, request, index, &settings, error));
    uint64_t seed = 0;
    if (engine->program->metadata.use_sampling && settings.temperature > 0)
        GB_TRY(gumbel_session_get_seed(request->session, &seed, error));
    uint32_t row = engine->batch.row_count++;
    engine->batch_rows[row] = (int32_t)engine->batch.token_count - 1;
    engine->batch_temperature[row] = settings.temperature;
    engine->batch_top_k[row] = settings.top_k;
    engine->batch_top_p[row] = settings.top_p;
    engine->batch_seed[row] = seed;
    engine->batch_request[row] = (uint32_t)index;
    set_later_settings(engine, request, &settings, row);
    report_settings(request, &settings);
    request->seed = seed;
    return GUMBEL_OK;
}

static void clear_results(gumbel_request *request) {
    request->token = -1;
    request->finish = GUMBEL_FINISH_NONE;
    request->logits = NULL;
    if (!has_later_fields(request))
        return;
    request->logprob = 0;
    request->top_tokens = NULL;
    request->top_token_logprob = NULL;
}

static gumbel_status check_requests(gumbel_engine *engine, gumbel_request *requests, size_t count,
                                    gumbel_error *error) {
    size_t left = engine->step_tokens;
    for (size_t i = 0; i < count; i++) {
        gumbel_request *request = request_at(requests, i);
        GB_TRY(check_request(engine, requests, i, error));
        if (request->token_count > left)
            return gb_fail(error, GUMBEL_ERROR_LIMIT,
                           "request %zu: the step has more than %u tokens (engine option step_tokens)", i,
                           engine->step_tokens);
        left -= request->token_count;
        clear_results(request);
    }
    return GUMBEL_OK;
}

/* Appends the requests that only generate, or the others. */
static gumbel_status add_requests(gumbel_engine *engine, gumbel_request *requests, size_t count,
                                  bool generating, gumbel_error *error) {
    for (size_t i = 0; i < count; i++) {
        gumbel_request *request = request_at(requests, i);
        if (only_generates(request) != generating)
            continue;
        add_tokens(engine, request);
        if (request->wants_token)
            GB_TRY(add_row(engine, request, i, error));
    }
    return GUMBEL_OK;
}

static gumbel_status fill_batch(gumbel_engine *engine, gumbel_request *requests, size_t count,
                                gumbel_error *error) {
    engine->batch.token_count = engine->batch.row_count = 0;
    engine->batch.logits = NULL;
    GB_TRY(check_requests(engine, requests, count, error));
    GB_TRY(add_requests(engine, requests, count, true, error));
    return add_requests(engine, requests, count, false, error);
}

/* How many steps of a generation follow on this one, each with the token that the one before draws, unless
 * that is a stop token. Steps that it asks for have its own settings; nobody reads their logits. */
static uint32_t steps_to_come(const gumbel_request *request) {
    const gumbel_session *session = request->session;
    const gb_generation *generation = &session->generation;
    if (!request->wants_token || !generation->active || request->sampling != &generation->sampling)
        return 0;
    const uint32_t end = session->position + (uint32_t)request->token_count;
    uint32_t count = session->engine->max_context - end;
    if (generation->max_new_tokens > 0 && generation->max_new_tokens - generation->generated - 1 < count)
        count = generation->max_new_tokens - generation->generated - 1;
    return count < session->engine->most_following ? count : session->engine->most_following;
}

/* Says which tokens end the session's generation. */
static void announce_stops(gumbel_engine *engine, const gb_generation *generation) {
    const gb_token_list *stops = &engine->program->metadata.stop_tokens;
    engine->batch.stop_ids = stops->ids;
    engine->batch.stop_count = generation->ignore_stop ? 0 : stops->count;
}

/* Says what follows a step for one session that generates: its token at the next position, with the next
 * seed. A greedy row has none. */
static void announce_following(gumbel_engine *engine, const gumbel_request *request, size_t count) {
    engine->batch.following = NULL;
    engine->batch.following_count = engine->batch.stop_count = 0;
    if (count == 1 && engine->program->metadata.use_sampling)
        engine->batch.following_count = steps_to_come(request);
    if (engine->batch.following_count == 0)
        return;
    announce_stops(engine, &request->session->generation);
    gb_batch *following = &engine->following;
    *following = engine->batch;
    following->token_count = 1;
    following->tokens = NULL;
    following->next = NULL;
    following->positions = &engine->following_position;
    following->rows = &engine->following_row;
    following->generated = &engine->following_generated;
    following->seed = &engine->following_seed;
    engine->following_position = (int32_t)(request->session->position + request->token_count);
    engine->following_row = 0;
    engine->following_generated = true;
    engine->following_seed = engine->batch_seed[0] + (engine->batch_temperature[0] > 0);
    engine->batch.following = following;
}

/* A failed step, or those that the backend began ahead, may have overwritten the oldest rows of rings;
 * rewinding must know. What has a recurrent state does not rewind, and the backend undoes what it began. */
static void note_written(const gumbel_engine *engine, gumbel_request *requests, size_t count) {
    const uint32_t ahead = gb_has_recurrent_state(engine->program) ? 0 : engine->batch.following_count;
    for (size_t i = 0; i < count; i++) {
        const gumbel_request *request = request_at(requests, i);
        uint32_t end = request->session->position + (uint32_t)request->token_count + ahead;
        if (end > request->session->written_end)
            request->session->written_end = end;
    }
}

static gumbel_status check_rows(const gumbel_engine *engine, gumbel_error *error) {
    if (!engine->program->metadata.use_sampling)
        return GUMBEL_OK;
    for (uint32_t row = 0; row < engine->batch.row_count; row++)
        if (engine->batch.next[row] < 0)
            return gb_fail(error, GUMBEL_ERROR_NUMERIC, "request %u: %s", engine->batch_request[row],
                           gb_token_problem(engine->batch.next[row]));
    return GUMBEL_OK;
}

static void advance_sessions(gumbel_request *requests, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const gumbel_request *request = request_at(requests, i);
        gumbel_session *session = request->session;
        session->generated_from = generated_from(request);
        for (uint32_t t = 0; t < request->token_count; t++)
            session->generated[session->position + t] = is_generated(request, t);
        session->drawn_token = -1;
        session->is_rewound = false;
        memmove(session->tokens + session->position, request->tokens, /* maybe its own, run again */
                request->token_count * sizeof *session->tokens);
        session->position += (uint32_t)request->token_count;
        session->pending_token = -1;
    }
}

static bool is_stop_token(const gb_program *program, int32_t token) {
    const gb_token_list *stops = &program->metadata.stop_tokens;
    for (uint32_t i = 0; i < stops->count; i++)
        if (stops->ids[i] == token)
            return true;
    return false;
}

static void hand_out_logprobs(const gumbel_engine *engine, gumbel_request *request, uint32_t row) {
    const gb_batch *batch = &engine->batch;
    if (!batch->want_logprobs[row])
        return;
    request->logprob = batch->logprob[row];
    if (request->top_logprobs == 0)
        return;
    const size_t first = row * engine->program->metadata.max_top_logprobs;
    request->top_tokens = batch->top_ids + first;
    request->top_token_logprob = batch->top_logprobs + first;
}

static void hand_out_rows(const gumbel_engine *engine, gumbel_request *requests) {
    const gb_metadata *metadata = &engine->program->metadata;
    for (uint32_t row = 0; row < engine->batch.row_count; row++) {
        gumbel_request *request = request_at(requests, engine->batch_request[row]);
        if (engine->batch.logits)
            request->logits = engine->batch.logits + row * metadata->vocab_size;
        if (!metadata->use_sampling) {
            request->session->drawn_token = GB_ANY_TOKEN;
            continue;
        }
        request->token = engine->batch.next[row];
        request->session->seed_counter++;
        request->session->drawn_token = request->token;
        hand_out_logprobs(engine, request, row);
        if (is_stop_token(engine->program, request->token))
            request->finish = GUMBEL_FINISH_STOP;
        else if (request->session->position == engine->max_context)
            request->finish = GUMBEL_FINISH_CONTEXT;
    }
}

static gumbel_status run_step(gumbel_engine *engine, gumbel_request *requests, size_t count,
                              gumbel_error *error) {
    GB_TRY(fill_batch(engine, requests, count, error));
    announce_following(engine, requests, count);
    note_written(engine, requests, count);
    GB_TRY(engine->backend->functions->step(engine->backend, &engine->batch, error));
    GB_TRY(check_rows(engine, error));
    advance_sessions(requests, count);
    hand_out_rows(engine, requests);
    return GUMBEL_OK;
}

/* Whether a failed step has left something that the session's next tokens do not overwrite. */
static bool is_ahead(const gumbel_session *session) {
    return gb_has_recurrent_state(session->engine->program) && session->written_end > session->position;
}

/* Makes the state that of the session's position again, by running tokens again. A session whose own tokens
 * the backend refuses is emptied. */
static void bring_back(gumbel_session *session) {
    uint32_t position = session->position, generated_from_position = session->generated_from;
    int32_t pending_token = session->pending_token, drawn_token = session->drawn_token;
    bool is_rewound = session->is_rewound;
    gb_session_start_over(session);
    session->is_repeating = true;
    while (session->position < position) {
        gumbel_request request = {
            .size = sizeof request, .session = session, .tokens = session->tokens + session->position};
        request.token_count = gb_session_chunk(session, position - session->position);
        gumbel_error ignored; /* the first error is the one to tell */
        if (run_step(session->engine, &request, 1, &ignored) != GUMBEL_OK) {
            gb_session_clear(session);
            return;
        }
    }
    session->is_repeating = false;
    session->pending_token = pending_token;
    session->generated_from = generated_from_position;
    session->drawn_token = drawn_token;
    session->is_rewound = is_rewound;
}

gumbel_status gumbel_step(gumbel_engine *engine, gumbel_request *requests, size_t count,
                          gumbel_error *error) {
    if (count == 0)
        return GUMBEL_OK;
    if (!requests || !known_size(requests))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "requests: NULL, or their size field is not set");
    if (count > engine->slots)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%zu requests: the engine has %u slots", count,
                       engine->slots);
    gumbel_status status = run_step(engine, requests, count, error);
    for (size_t i = 0; i < engine->slots && status != GUMBEL_OK; i++)
        if (engine->sessions[i].in_use && is_ahead(&engine->sessions[i]))
            bring_back(&engine->sessions[i]);
    return status;
}
