/* SPDX-License-Identifier: Apache-2.0 */
#include "run/step.h"
#include "base/versioned.h"
#include "program/settings.h"
#include "run/blocks.h"
#include "run/requests.h"

#include <stdio.h>
#include <string.h>

/* ---- Filling the batch --------------------------------------------------------------------------------- */

/* The position of its first token. */
static uint32_t begin_of(const gumbel_request *request) {
    return gb_session_run_position(request->session);
}

/* Whether the request has no prompt. */
static bool only_generates(const gumbel_request *request) {
    return request->token_count > 0 && gb_request_generated(request, (uint32_t)request->token_count - 1);
}

/* The last position whose keys a draft head finds: of its program, or before the token. */
static int32_t last_of(const gumbel_session *session, uint32_t position) {
    const uint32_t known = session->known > 0 ? session->known : position;
    return known > 0 ? (int32_t)known - 1 : 0;
}

/* Appends the request's tokens and its draft to the batch. */
static void add_tokens(gumbel_engine *engine, const gumbel_request *request) {
    const gumbel_session *session = request->session;
    const gb_batch_arrays *arrays = &engine->arrays;
    for (uint32_t i = 0; i < gb_request_tokens(request); i++) {
        const bool is_draft = i >= request->token_count;
        const uint32_t n = engine->batch.token_count++;
        arrays->tokens[n] = is_draft ? request->draft[i - request->token_count] : request->tokens[i];
        arrays->positions[n] = (int32_t)(begin_of(request) + i);
        arrays->last[n] = last_of(session, begin_of(request) + i);
        arrays->slots[n] = (int32_t)session->slot;
        arrays->generated[n] = is_draft || gb_request_generated(request, i);
        arrays->draft[n] = is_draft;
    }
}

/* The position from which on tokens were generated, once the request's have been run. A session goes on
 * generating while it is given nothing but the token that it drew, or tokens of its answer again. */
static uint32_t generated_from(const gumbel_request *request) {
    const gumbel_session *session = request->session;
    const bool goes_on = session->is_repeating
                             ? gb_request_generated(request, (uint32_t)request->token_count - 1)
                             : request->token_count == 1 && request->tokens[0] == session->drawn_token;
    return goes_on ? session->generated_from : begin_of(request) + (uint32_t)request->token_count;
}

/* The prompt counts as the settings say, by bits for repetition, and for frequency and presence. */
static int32_t prompt_flags(gumbel_penalized penalized) {
    static const int32_t flags[] = {
        [GUMBEL_PENALIZED_USUAL] = 1, [GUMBEL_PENALIZED_GENERATED] = 0, [GUMBEL_PENALIZED_ALL] = 3};
    return flags[penalized];
}

static void set_biases(const gb_batch_arrays *arrays, const gumbel_sampling *settings, uint32_t row) {
    int32_t *ids = arrays->bias_ids + (size_t)row * arrays->widths.max_bias;
    float *values = arrays->bias_values + (size_t)row * arrays->widths.max_bias;
    for (size_t i = 0; i < settings->bias_count && i < arrays->widths.max_bias; i++) {
        ids[i] = settings->bias[i].token;
        values[i] = settings->bias[i].value;
    }
    if (settings->bias_count < arrays->widths.max_bias)
        ids[settings->bias_count] = -1;
}

/* The masks of the request's rows: its own, or those that are made while the step computes. */
static void set_masks(gumbel_engine *engine, const gumbel_request *request, uint32_t first_row) {
    const gb_batch_arrays *arrays = &engine->arrays;
    const size_t words = arrays->widths.mask_words, rows = request->draft_count + 1;
    const gb_mask_source *late = &request->session->mask;
    uint32_t *mask = arrays->mask + first_row * words;
    for (size_t r = 0; r < rows; r++)
        arrays->masked[first_row + r] = request->mask || late->make;
    if (request->mask)
        memcpy(mask, request->mask, rows * words * sizeof *mask);
    else if (late->make)
        gb_late_masks_add(engine->late_masks, *late, mask, (uint32_t)rows);
}

/* Fills in a row's inputs: its settings, and what follows from them and the request. */
static void set_row(const gb_batch_arrays *arrays, const gumbel_request *request,
                    const gumbel_sampling *settings, uint64_t seed, uint32_t row) {
#define GB_SETTING(number, NAME, name, ...) arrays->name[row] = settings->name;
#include "program/roles.def"
    arrays->seed[row] = seed;
    arrays->generated_from[row] = gb_has_penalties(settings) ? (int32_t)generated_from(request) : -1;
    arrays->penalize_prompt[row] = prompt_flags(settings->penalized);
    arrays->want_logprobs[row] = request->wants_logprob || request->top_logprobs > 0;
    set_biases(arrays, settings, row);
}

enum { WHERE = 48 };

/* "request 2: " begins the messages about a request. */
static const char *where_is(size_t index, char where[WHERE]) {
    snprintf(where, WHERE, "request %zu: ", index);
    return where;
}

/* Checks a row's settings against their ranges and what the program takes. */
static gumbel_status check_settings(const gumbel_engine *engine, const gumbel_request *request,
                                    const gumbel_sampling *settings, const char *where, gumbel_error *error) {
    GB_TRY(gb_check_logprobs(engine->program, request->wants_logprob, request->top_logprobs, where, error));
    if (request->mask || request->session->mask.make)
        GB_TRY(gb_check_mask(engine->program, where, error));
    if (!engine->program->metadata.use_sampling)
        return GUMBEL_OK;
    GB_TRY(gb_check_sampling(settings, where, error));
    return gb_check_inputs(engine->program, settings, where, error);
}

/* Appends a row for the request's last token and one for each of its draft, with its settings and seeds. */
static gumbel_status add_rows(gumbel_engine *engine, size_t index, gumbel_error *error) {
    const gumbel_request *request = &engine->requests.list[index];
    const uint32_t first_token = engine->batch.token_count - 1 - (uint32_t)request->draft_count;
    gumbel_sampling *settings = &engine->requests.settings[index];
    char where[WHERE];
    GB_TRY(gb_settle_sampling(engine->program, request->sampling, where_is(index, where), settings, error));
    GB_TRY(check_settings(engine, request, settings, where, error));
    uint64_t seed = 0;
    if (engine->program->metadata.use_sampling && settings->temperature > 0)
        GB_TRY(gumbel_session_get_seed(request->session, &seed, error));
    engine->requests.first_row[index] = engine->batch.row_count;
    for (uint32_t r = 0; r <= request->draft_count; r++) {
        const uint32_t row = engine->batch.row_count++;
        engine->arrays.rows[row] = (int32_t)(first_token + r);
        set_row(&engine->arrays, request, settings, settings->temperature > 0 ? seed + r : seed, row);
    }
    set_masks(engine, request, engine->requests.first_row[index]);
    return GUMBEL_OK;
}

/* Appends the requests that only generate, or the others. */
static gumbel_status add_requests(gumbel_engine *engine, bool generating, gumbel_error *error) {
    for (size_t i = 0; i < engine->requests.count; i++) {
        const gumbel_request *request = &engine->requests.list[i];
        if (only_generates(request) != generating)
            continue;
        add_tokens(engine, request);
        if (request->result)
            GB_TRY(add_rows(engine, i, error));
    }
    return GUMBEL_OK;
}

static gumbel_status fill_batch(gumbel_engine *engine, gumbel_error *error) {
    engine->batch.token_count = engine->batch.row_count = 0;
    engine->batch.logits = NULL;
    engine->batch.late_masks = NULL;
    engine->batch.has_prepared = false;
    gb_late_masks_clear(engine->late_masks);
    GB_TRY(gb_check_step(engine, error));
    GB_TRY(add_requests(engine, true, error));
    return add_requests(engine, false, error);
}

/* ---- What follows -------------------------------------------------------------------------------------- */

/* How many steps of the session follow on this one. Nobody reads their logits. */
static uint32_t steps_to_come(const gumbel_request *request) {
    const gumbel_session *session = request->session;
    const gb_lookahead *lookahead = &session->lookahead;
    if (!request->result || request->draft_count > 0 || request->mask || request->session->mask.make ||
        !lookahead->sampling || request->sampling != lookahead->sampling)
        return 0;
    const uint32_t end = begin_of(request) + (uint32_t)request->token_count;
    uint32_t count = session->engine->max_context - end;
    count = lookahead->steps < count ? lookahead->steps : count;
    return count < session->engine->most_following ? count : session->engine->most_following;
}

/* Says what follows a step for one session that generates: its token at the next position, with the next
 * seed. A greedy row has none. */
static void announce_following(gumbel_engine *engine) {
    const gumbel_request *request = engine->requests.list;
    engine->batch.following = NULL;
    engine->batch.following_count = engine->batch.stop_count = 0;
    if (engine->requests.count == 1 && engine->program->metadata.use_sampling)
        engine->batch.following_count = steps_to_come(request);
    if (engine->batch.following_count == 0)
        return;
    engine->batch.stop_ids = request->session->lookahead.stop_tokens.ids;
    engine->batch.stop_count = request->session->lookahead.stop_tokens.count;
    gb_batch *following = &engine->following;
    *following = engine->batch;
    following->token_count = 1;
    following->tokens = NULL;
    following->next = NULL;
    following->positions = &engine->following_position;
    following->rows = &engine->following_row;
    following->generated = &engine->following_generated;
    following->seed = &engine->following_seed;
    engine->following_position = (int32_t)(begin_of(request) + request->token_count);
    engine->following_row = 0;
    engine->following_generated = true;
    engine->following_seed = engine->arrays.seed[0] + (engine->arrays.temperature[0] > 0);
    engine->batch.following = following;
}

/* A failed step, or those that the backend began ahead, may have overwritten the oldest rows of rings;
 * rewinding must know. What has a recurrent state does not rewind, and the backend undoes what it began. */
static void note_written(const gumbel_engine *engine) {
    const uint32_t ahead = gb_has_recurrent_state(engine->program) ? 0 : engine->batch.following_count;
    for (size_t i = 0; i < engine->requests.count; i++) {
        const gumbel_request *request = &engine->requests.list[i];
        uint32_t end = begin_of(request) + (uint32_t)gb_request_tokens(request) + ahead;
        if (end > request->session->written_end)
            request->session->written_end = end;
        request->session->is_ahead = request->token_count > 0;
    }
}

/* ---- Handing out tokens -------------------------------------------------------------------------------- */

/* The session has run the request's tokens and so many of its draft, and holds the rest. */
static void advance_session(const gumbel_request *request, uint32_t rest, uint32_t accepted) {
    gumbel_session *session = request->session;
    const uint32_t begin = begin_of(request), count = (uint32_t)request->token_count;
    session->generated_from = rest > 0 ? begin + count + rest : generated_from(request);
    for (uint32_t t = 0; t < count; t++)
        session->generated[begin + t] = gb_request_generated(request, t);
    for (uint32_t t = 0; t < rest; t++)
        session->generated[begin + count + t] = false;
    for (uint32_t t = 0; t < accepted; t++)
        session->generated[begin + count + t] = true;
    session->drawn_token = -1;
    session->is_rewound = session->is_ahead = false;
    /* maybe its own, run again or held, with the rest behind them */
    memmove(session->tokens + begin, request->tokens, (count + rest) * sizeof *session->tokens);
    if (accepted > 0)
        memmove(session->tokens + begin + count, request->draft, accepted * sizeof *session->tokens);
    session->position = begin + count + rest + accepted;
    session->held = rest;
    session->pending_token = -1;
}

static void set_logprobs(const gumbel_engine *engine, uint32_t top, uint32_t row, gumbel_result *result) {
    const gb_batch *batch = &engine->batch;
    if (!batch->want_logprobs[row])
        return;
    result->logprob = batch->logprob[row];
    result->top_logprobs = top;
    if (top == 0)
        return;
    const size_t first = row * engine->program->metadata.max_top_logprobs;
    result->top_tokens = batch->top_ids + first;
    result->top_token_logprob = batch->top_logprobs + first;
}

/* Tells the session of a token that it has drawn, which comes at position end. */
static gumbel_finish note_drawn(gumbel_session *session, int32_t token, uint32_t end) {
    session->seed_counter++;
    session->drawn_token = token;
    if (gb_lists_token(&session->engine->program->metadata.stop_tokens, token))
        return GUMBEL_FINISH_STOP;
    return end == session->engine->max_context ? GUMBEL_FINISH_CONTEXT : GUMBEL_FINISH_NONE;
}

/* Whether the row gave no token, although the program has a sampler. */
static bool has_failed(const gumbel_engine *engine, uint32_t row) {
    const gb_metadata *metadata = &engine->program->metadata;
    const int32_t next = engine->batch.next[row];
    return metadata->use_sampling && (next < 0 || (uint64_t)next >= metadata->vocab_size);
}

/* How many tokens of its draft the request would have run by itself. */
static uint32_t count_accepted(const gumbel_engine *engine, size_t index) {
    const gumbel_request *request = &engine->requests.list[index];
    const int32_t *next = engine->batch.next + (request->result ? engine->requests.first_row[index] : 0);
    uint32_t count = 0;
    while (count < request->draft_count && next[count] == request->draft[count] &&
           !gb_lists_token(&engine->program->metadata.stop_tokens, next[count]))
        count++;
    return count;
}

/* Gives the request the result of its row number r of accepted + 1; end is the position behind that row. */
static void give_result(const gumbel_engine *engine, size_t index, uint32_t r, uint32_t accepted,
                        uint32_t end) {
    const gb_metadata *metadata = &engine->program->metadata;
    const gumbel_request *request = &engine->requests.list[index];
    const uint32_t row = engine->requests.first_row[index] + r;
    gumbel_result result = {.token = -1,
                            .seed = engine->batch.seed[row],
                            .used = &engine->requests.settings[index],
                            .accepted = r == 0 ? accepted : 0};
    if (engine->batch.logits)
        result.logits = engine->batch.logits + row * metadata->vocab_size;
    if (has_failed(engine, row)) {
        result.status = GUMBEL_ERROR_NUMERIC;
        result.problem = gb_token_problem(engine->batch.next[row]);
    } else if (metadata->use_sampling) {
        result.token = engine->batch.next[row];
        result.finish = note_drawn(request->session, result.token, end);
        set_logprobs(engine, request->top_logprobs, row, &result);
    } else {
        request->session->drawn_token = GB_ANY_TOKEN;
    }
    gb_write_versioned(&result, sizeof result, gb_request_result(request, r));
}

/* Moves the request's session on, lets its states forget the draft from the first token on that was not
 * accepted, and gives the results up to there. */
static gumbel_status finish_request(const gumbel_engine *engine, size_t index, gumbel_error *error) {
    const gumbel_request *request = &engine->requests.list[index];
    const uint32_t accepted = count_accepted(engine, index);
    advance_session(request, engine->requests.rest[index], accepted);
    const uint32_t end = request->session->position;
    if (accepted < request->draft_count)
        engine->backend->functions->truncate_slot(engine->backend, request->session->slot, end);
    for (uint32_t r = 0; r <= accepted && request->result; r++)
        give_result(engine, index, r, accepted, end - accepted + r);
    const uint32_t last_row = request->result ? engine->requests.first_row[index] + accepted : 0;
    if (request->result && has_failed(engine, last_row))
        return gb_fail(error, GUMBEL_ERROR_NUMERIC, "request %zu: %s", index,
                       gb_token_problem(engine->batch.next[last_row]));
    return GUMBEL_OK;
}

/* The first request's error is the step's. */
static gumbel_status finish_requests(const gumbel_engine *engine, gumbel_error *error) {
    gumbel_status status = GUMBEL_OK;
    for (size_t i = 0; i < engine->requests.count; i++) {
        const gumbel_status of_request = finish_request(engine, i, status == GUMBEL_OK ? error : NULL);
        status = status == GUMBEL_OK ? of_request : status;
    }
    return status;
}

/* Lets the masks that are still to be made be made. */
static void begin_masks(gumbel_engine *engine) {
    if (!gb_late_masks_any(engine->late_masks))
        return;
    engine->batch.late_masks = engine->late_masks;
    if (engine->mask_workers)
        gb_mask_workers_wake(engine->mask_workers);
}

/* Executes the batch, which is filled. */
static gumbel_status execute_batch(gumbel_engine *engine, gumbel_error *error) {
    announce_following(engine);
    note_written(engine);
    begin_masks(engine);
    GB_TRY(engine->backend->functions->step(engine->backend, &engine->batch, error));
    engine->step_times.has_prepared |= engine->batch.has_prepared;
    return GUMBEL_OK;
}

/* Masks are finished in any case: their makers are the callers' again. Nothing is left to execute where all
 * tokens are held. */
gumbel_status gb_run_step(gumbel_engine *engine, gumbel_error *error) {
    gumbel_status status = fill_batch(engine, error);
    if (status == GUMBEL_OK && engine->batch.token_count > 0)
        status = execute_batch(engine, error);
    gb_late_masks_finish(engine->late_masks);
    return status == GUMBEL_OK ? finish_requests(engine, error) : status;
}

/* Whether a failed step has left something that the session's next tokens do not overwrite, or has
 * overwritten what they still read. */
static bool is_ahead(const gumbel_session *session) {
    const gb_program *program = session->engine->program;
    return session->is_ahead && !gb_can_truncate(program, session->written_end, session->whole_position,
                                                 gb_session_run_position(session));
}

static gumbel_status run_requests(gumbel_engine *engine, gumbel_error *error) {
    GB_TRY(gb_check_requests(engine, error));
    GB_TRY(gb_begin_blocks(engine, error));
    for (size_t i = 0; i < engine->requests.count; i++)
        gb_cut_request(engine, i);
    return gb_run_step(engine, error);
}

gumbel_status gumbel_step(gumbel_engine *engine, const gumbel_request *requests, size_t count,
                          gumbel_error *error) {
    if (count == 0)
        return GUMBEL_OK;
    GB_TRY(gb_read_requests(engine, requests, count, error));
    gumbel_status status = run_requests(engine, error);
    for (size_t i = 0; i < engine->slots && status != GUMBEL_OK; i++)
        if (engine->sessions[i].in_use && is_ahead(&engine->sessions[i]))
            gb_bring_back(&engine->sessions[i]);
    return status;
}
