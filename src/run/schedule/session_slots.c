/* SPDX-License-Identifier: Apache-2.0
 *
 * The sessions of an engine as the scheduler's slots.
 */
#include "base/memory.h"
#include "base/versioned.h"
#include "run/draft/guess.h"
#include "run/draft/model.h"
#include "run/host_states.h"
#include "run/schedule/slots.h"

#include <stdio.h>
#include <string.h>

/* States that grow by rows up to the same number of them. */
typedef struct growth {
    uint64_t rows, row_bytes;
} growth;

typedef struct session_slots {
    gb_slots_of_engine base;
    gumbel_engine *engine;
    gumbel_session **sessions; /* [count] */
    gumbel_request *requests;  /* [count] of a step */
    uint64_t fixed_bytes;      /* of recurrent states */
    growth *growths;           /* [growth_count] */
    size_t growth_count;
} session_slots;

static session_slots *own(gb_slots_of_engine *slots) {
    return (session_slots *)slots;
}

static const session_slots *own_const(const gb_slots_of_engine *slots) {
    return (const session_slots *)slots;
}

/* ---- Steps --------------------------------------------------------------------------------------------- */

static gumbel_request request_of(const session_slots *s, gb_step_part *part) {
    gumbel_request request = {.size = sizeof request,
                              .session = s->sessions[part->slot],
                              .tokens = part->tokens,
                              .token_count = part->count};
    if (!part->draws)
        return request;
    for (uint32_t r = 0; r <= part->draft_count; r++)
        part->results[r] = (gumbel_result){.size = sizeof *part->results};
    request.session->lookahead = (gb_lookahead){
        .sampling = part->sampling, .steps = part->following, .stop_tokens = part->stop_tokens};
    gumbel_session_set_seed(request.session, part->seed);
    request.result = part->results;
    request.draft = part->draft;
    request.draft_count = part->draft_count;
    request.sampling = part->sampling;
    request.wants_logprob = part->wants_logprob;
    request.top_logprobs = part->top_logprobs;
    request.session->mask = part->mask;
    return request;
}

static gumbel_status step(gb_slots_of_engine *slots, gb_step_part *parts, size_t count, gumbel_error *error) {
    session_slots *s = own(slots);
    for (size_t i = 0; i < count; i++)
        s->requests[i] = request_of(s, &parts[i]);
    const gumbel_status status = gumbel_step(s->engine, s->requests, count, error);
    for (size_t i = 0; i < count; i++)
        s->requests[i].session->mask = (gb_mask_source){0};
    return status;
}

/* ---- States -------------------------------------------------------------------------------------------- */

static uint32_t position(const gb_slots_of_engine *slots, uint32_t slot) {
    return own_const(slots)->sessions[slot]->position;
}

static void truncate_draft(gb_slots_of_engine *slots, uint32_t slot, uint32_t end) {
    gumbel_session_rewind(own(slots)->sessions[slot], end, NULL); /* within a draft it cannot fail */
}

static void clear(gb_slots_of_engine *slots, uint32_t slot) {
    gb_session_clear(own(slots)->sessions[slot]);
}

static uint32_t cut(const gb_slots_of_engine *slots, uint32_t slot, uint32_t end, uint32_t wanted) {
    const session_slots *s = own_const(slots);
    uint32_t written_end = end, whole_position = end;
    if (slot != GB_NO_SLOT) {
        written_end = s->sessions[slot]->written_end;
        whole_position = s->sessions[slot]->whole_position;
    }
    if (wanted >= end && gb_block_begin(s->engine, end) == end)
        return end;
    return gb_can_truncate(s->engine->program, written_end, whole_position, wanted) ? wanted : 0;
}

/* Makes the session one that has run the prefix. */
static void set_prefix(gumbel_session *session, const gb_token_prefix *prefix) {
    const bool answers = prefix->position >= prefix->prompt_end;
    memmove(session->tokens, prefix->tokens, prefix->position * sizeof *session->tokens);
    for (uint32_t i = 0; i < prefix->position; i++)
        session->generated[i] = i >= prefix->prompt_end;
    session->position = prefix->position;
    session->held = 0;
    session->generated_from = answers ? prefix->prompt_end : prefix->position;
    session->drawn_token = answers ? prefix->tokens[prefix->position] : -1;
    session->pending_token = -1;
    session->is_rewound = false;
}

static gumbel_status take(gb_slots_of_engine *slots, uint32_t from, uint32_t to,
                          const gb_token_prefix *prefix, gumbel_error *error) {
    const session_slots *s = own(slots);
    gb_backend *backend = s->engine->backend;
    if (from != to) {
        GB_TRY(backend->functions->copy_slot(backend, from, to, prefix->position, error));
        s->sessions[to]->written_end = s->sessions[from]->written_end;
        s->sessions[to]->whole_position = s->sessions[from]->whole_position;
    }
    set_prefix(s->sessions[to], prefix);
    return GUMBEL_OK;
}

static gumbel_status save(gb_slots_of_engine *slots, uint32_t slot, gb_saved_states saved,
                          gb_host_states **states, gumbel_error *error) {
    const session_slots *s = own(slots);
    return gb_copy_to_host(s->engine->backend, slot, s->sessions[slot]->position, saved, states, error);
}

static gumbel_status load(gb_slots_of_engine *slots, uint32_t slot, const gb_token_prefix *prefix,
                          gb_saved_states saved, const gb_host_states *states, gumbel_error *error) {
    const session_slots *s = own(slots);
    GB_TRY(gb_copy_from_host(s->engine->backend, slot, prefix->position, saved, states, error));
    set_prefix(s->sessions[slot], prefix);
    s->sessions[slot]->written_end = s->sessions[slot]->whole_position = prefix->position;
    return GUMBEL_OK;
}

/* Counts a state's bytes into those of its kind. */
static void add_state(session_slots *s, const gb_state *state) {
    const uint64_t bytes = gb_state_bytes(state), rows = (uint64_t)state->type.shape.dims[0];
    if (state->kind == GB_STATE_RECURRENT) {
        s->fixed_bytes += bytes;
        return;
    }
    size_t i = 0;
    while (i < s->growth_count && s->growths[i].rows != rows)
        i++;
    if (i == s->growth_count)
        s->growths[s->growth_count++].rows = rows;
    s->growths[i].row_bytes += bytes / rows;
}

static uint64_t bytes_at(const gb_slots_of_engine *slots, uint32_t end) {
    const session_slots *s = own_const(slots);
    uint64_t sum = s->fixed_bytes;
    for (size_t i = 0; i < s->growth_count; i++)
        sum += s->growths[i].row_bytes * (end < s->growths[i].rows ? end : s->growths[i].rows);
    return sum;
}

/* ---- Guesses ------------------------------------------------------------------------------------------- */

/* Its guesses are a help that answers can do without. */
static void give_up_models(session_slots *s, const gumbel_error *why) {
    char notice[GUMBEL_MESSAGE_BYTES + 64];
    snprintf(notice, sizeof notice, "no more drafts of the draft model: %s", why->message);
    if (s->engine->log)
        s->engine->log(s->engine->log_user, GUMBEL_LOG_INFO, notice);
    for (uint32_t i = 0; i < s->base.count; i++)
        gb_draft_model_end(&s->engine->draft_models[i]);
    s->base.draft_models = NULL;
}

/* Its prompts take as long a step as a prompt of the engine's beside answers. */
static gumbel_status guess(gb_slots_of_engine *slots, gb_guess *guesses, size_t count) {
    session_slots *s = own(slots);
    gumbel_error error;
    const gumbel_status status =
        gb_draft_models_guess(s->engine, guesses, count, s->engine->draft_engine->short_chunk, &error);
    if (status != GUMBEL_OK)
        give_up_models(s, &error);
    return status;
}

static double guess_cost(const gb_slots_of_engine *slots, uint32_t answers) {
    return gb_draft_model_cost(own_const(slots)->engine, answers);
}

/* ---- Requests ------------------------------------------------------------------------------------------ */

static gumbel_status settle(const gb_slots_of_engine *slots, const gumbel_submission *submission,
                            gumbel_sampling *settled, gumbel_error *error) {
    const gb_program *program = own_const(slots)->engine->program;
    GB_TRY(gb_settle_sampling(program, submission->sampling, "submit: ", settled, error));
    GB_TRY(gb_check_sampling(settled, "submit: ", error));
    GB_TRY(gb_check_inputs(program, settled, "submit: ", error));
    if (submission->grammar || submission->has_reasoning_budget || submission->forced_count > 0)
        GB_TRY(gb_check_mask(program, "submit: ", error));
    return gb_check_logprobs(program, submission->wants_logprob, submission->top_logprobs, "submit: ", error);
}

/* ---- Making -------------------------------------------------------------------------------------------- */

static void destroy(gb_slots_of_engine *slots) {
    session_slots *s = own(slots);
    for (uint32_t i = 0; s->sessions && i < slots->count; i++)
        gumbel_session_destroy(s->sessions[i]);
    gb_free(s->sessions);
    gb_free(s->requests);
    gb_free(s->growths);
    gb_free(s);
}

static const gb_slots_functions functions = {
    .step = step,
    .position = position,
    .truncate = truncate_draft,
    .clear = clear,
    .cut = cut,
    .take = take,
    .save = save,
    .load = load,
    .bytes = bytes_at,
    .guess = guess,
    .guess_cost = guess_cost,
    .settle = settle,
    .destroy = destroy,
};

/* At multiples of it begins a block. */
static uint32_t grain_of(const gumbel_engine *engine) {
    const uint32_t grain = engine->backend->grain, chunk = engine->prefill_chunk;
    return grain > 1 && chunk < grain ? chunk : grain;
}

static gb_slots_of_engine describe(gumbel_engine *engine) {
    const gb_metadata *metadata = &engine->program->metadata;
    gb_slots_of_engine slots = {.functions = &functions,
                                .count = engine->slots,
                                .max_context = engine->max_context,
                                .step_tokens = engine->step_tokens,
                                .prefill_chunk = engine->prefill_chunk,
                                .draft_tokens = engine->draft_tokens,
                                .most_rows = engine->most_rows,
                                .most_following = engine->most_following,
                                .short_step_tokens = engine->short_step_tokens,
                                .short_chunk = engine->short_chunk,
                                .vocab_size = (uint32_t)metadata->vocab_size,
                                .max_bias = (uint32_t)metadata->max_bias,
                                .stop_tokens = metadata->stop_tokens,
                                .step_times = &engine->step_times,
                                .draft_context = engine->draft_engine ? engine->draft_engine->max_context : 0,
                                .draft_models = engine->draft_models,
                                .reuse = engine->backend->reuse,
                                .grain = grain_of(engine)};
    for (uint32_t i = 0; i < engine->program->state_count; i++)
        slots.needs_snapshots |= engine->program->states[i].kind != GB_STATE_CACHE;
    return slots;
}

static gumbel_status take_slots(session_slots *s, gumbel_error *error) {
    s->sessions = gb_allocate(s->base.count, sizeof *s->sessions);
    s->requests = gb_allocate(s->base.count, sizeof *s->requests);
    s->growths = gb_allocate(s->engine->program->state_count, sizeof *s->growths);
    if (!s->sessions || !s->requests || !s->growths)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a scheduler's slots");
    for (uint32_t i = 0; i < s->engine->program->state_count; i++)
        add_state(s, &s->engine->program->states[i]);
    for (uint32_t i = 0; i < s->base.count; i++)
        if (gumbel_session_create(s->engine, &s->sessions[i], error) != GUMBEL_OK)
            return gb_prefix(error, GUMBEL_ERROR_LIMIT, "a scheduler needs an engine without sessions");
    return GUMBEL_OK;
}

gumbel_status gb_session_slots_create(gumbel_engine *engine, gb_slots_of_engine **slots,
                                      gumbel_error *error) {
    *slots = NULL;
    if (!engine->program->metadata.use_sampling)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "a scheduler needs a program that samples; this one was exported with --logits");
    session_slots *made = gb_allocate(1, sizeof *made);
    if (!made)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a scheduler's slots");
    made->base = describe(engine);
    made->engine = engine;
    const gumbel_status status = take_slots(made, error);
    if (status != GUMBEL_OK) {
        destroy(&made->base);
        return status;
    }
    *slots = &made->base;
    return GUMBEL_OK;
}
