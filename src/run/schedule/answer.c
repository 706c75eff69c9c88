/* SPDX-License-Identifier: Apache-2.0 */
#include "run/schedule/answer.h"

#include "base/memory.h"
#include "text/decode/detokenizer.h"
#include "text/tokenizer/tokenizer.h"

#include <math.h>
#include <string.h>

/* ---- Checking ------------------------------------------------------------------------------------------ */

static gumbel_status check_ids(const int32_t *ids, size_t count, uint32_t vocab_size, const char *what,
                               gumbel_error *error) {
    if (count > 0 && !ids)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "submit: %s is NULL", what);
    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= vocab_size)
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                           "submit: %s: token %d: the vocabulary has ids 0 to %u", what, ids[i],
                           vocab_size - 1);
    return GUMBEL_OK;
}

static gumbel_status check_text(const gb_slots_of_engine *slots, const gumbel_submission *submission,
                                gumbel_error *error) {
    const gumbel_tokenizer *tokenizer = submission->tokenizer;
    if (!tokenizer && submission->stop_string_count > 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "submit: stop_strings need a tokenizer to find them by (field tokenizer)");
    if (tokenizer && tokenizer->id_limit < slots->vocab_size)
        return gb_fail(
            error, GUMBEL_ERROR_ARGUMENT,
            "submit: the tokenizer has %u ids and the program %u; gumbel_tokenizer_create makes the "
            "program's own",
            tokenizer->id_limit, slots->vocab_size);
    return GUMBEL_OK;
}

static gumbel_status check_submission(const gb_slots_of_engine *slots, const gumbel_submission *submission,
                                      gumbel_error *error) {
    if (!submission->callback)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "submit: callback is NULL");
    if (submission->token_count == 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "submit: the prompt has no tokens");
    if (submission->token_count > slots->max_context)
        return gb_fail(error, GUMBEL_ERROR_LIMIT, "submit: a prompt of %zu tokens: the context holds %u",
                       submission->token_count, slots->max_context);
    if (!(submission->deadline_seconds >= 0))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "submit: deadline_seconds is %g: expected 0 or more",
                       submission->deadline_seconds);
    if (submission->drafting == GUMBEL_DRAFTING_MODEL && slots->draft_context == 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "submit: drafting by a model needs an engine created with draft_engine");
    if (submission->branch_position_count > 0 && !submission->branch_positions)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "submit: branch_positions is NULL");
    GB_TRY(check_ids(submission->tokens, submission->token_count, slots->vocab_size, "tokens", error));
    GB_TRY(check_ids(submission->stop_tokens, submission->stop_token_count, slots->vocab_size, "stop_tokens",
                     error));
    GB_TRY(check_ids(submission->predicted_tokens, submission->predicted_count, slots->vocab_size,
                     "predicted_tokens", error));
    return check_text(slots, submission, error);
}

/* ---- Copying ------------------------------------------------------------------------------------------- */

/* The stop tokens of the program, unless they are ignored, and those of the request. */
static gumbel_status copy_stops(const gb_slots_of_engine *slots, const gumbel_submission *submission,
                                gb_answer *answer, gumbel_error *error) {
    const size_t own = submission->ignore_stop ? 0 : slots->stop_tokens.count;
    const size_t count = own + submission->stop_token_count;
    answer->stop_tokens = gb_allocate(count, sizeof *answer->stop_tokens);
    if (!answer->stop_tokens)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a request");
    for (size_t i = 0; i < count; i++)
        answer->stop_tokens[i] = i < own ? slots->stop_tokens.ids[i] : submission->stop_tokens[i - own];
    answer->stop_token_count = (uint32_t)count;
    return GUMBEL_OK;
}

/* The first tokens' settings have a ban of every stop token behind the request's own biases. */
static gumbel_status copy_sampling(const gb_slots_of_engine *slots, const gumbel_submission *submission,
                                   gb_answer *answer, gumbel_error *error) {
    gumbel_sampling *sampling = &answer->sampling;
    GB_TRY(slots->functions->settle(slots, submission, sampling, error));
    const size_t given = sampling->bias_count, bans = answer->min_new_tokens ? answer->stop_token_count : 0;
    if (bans > 0 && given + bans > slots->max_bias)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "submit: min_new_tokens bans %zu stop tokens by biases, beside %zu given: the program "
                       "takes at most %u",
                       bans, given, slots->max_bias);
    answer->biases = gb_allocate(given + bans, sizeof *answer->biases);
    if (!answer->biases)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a request");
    if (given > 0)
        memcpy(answer->biases, sampling->bias, given * sizeof *answer->biases);
    for (size_t i = 0; i < bans; i++)
        answer->biases[given + i] = (gumbel_bias){.token = answer->stop_tokens[i], .value = -INFINITY};
    sampling->bias = answer->biases;
    answer->first_sampling = *sampling;
    answer->first_sampling.bias_count = given + bans;
    return GUMBEL_OK;
}

static gumbel_status make_text(const gumbel_submission *submission, gb_answer *answer, gumbel_error *error) {
    if (!submission->tokenizer)
        return GUMBEL_OK;
    GB_TRY(gumbel_detokenizer_create(submission->tokenizer, submission->show_special, &answer->text, error));
    GB_TRY(gumbel_detokenizer_stop_at(answer->text, submission->stop_strings, submission->stop_string_count,
                                      submission->include_stop_string, error));
    return submission->stop_in_answer && submission->stop_string_count > 0
               ? gumbel_detokenizer_stop_in_answer(answer->text, submission->tokens, submission->token_count,
                                                   error)
               : GUMBEL_OK;
}

/* Adds a position to those of snapshots, in order, each once. The earliest ones yield. */
static void add_branch(gb_answer *answer, uint32_t position) {
    uint32_t at = answer->branch_count;
    while (at > 0 && answer->branches[at - 1] > position)
        at--;
    if (position == 0 || (at > 0 && answer->branches[at - 1] == position))
        return;
    if (answer->branch_count == GB_MOST_SNAPSHOTS) {
        if (at == 0)
            return;
        memmove(answer->branches, answer->branches + 1, --at * sizeof *answer->branches);
        answer->branch_count--;
    }
    memmove(answer->branches + at + 1, answer->branches + at,
            (answer->branch_count - at) * sizeof *answer->branches);
    answer->branches[at] = position;
    answer->branch_count++;
}

/* Before the prompt's last token, which is run in any case. Where a cut changes no bits they are taken as
 * they are, otherwise at multiples of the grain. The last multiple is one unless a later one is given. */
static void copy_branches(const gb_slots_of_engine *slots, const gumbel_submission *submission,
                          uint32_t grain, gb_answer *answer) {
    const uint32_t last = (uint32_t)submission->token_count - 1, last_multiple = last - last % grain;
    const uint32_t unit = slots->reuse == GB_REUSE_ALL ? 1 : grain;
    for (size_t i = 0; i < submission->branch_position_count; i++) {
        const uint32_t position = submission->branch_positions[i];
        if (position <= last)
            add_branch(answer, position - position % unit);
    }
    if (answer->branch_count == 0 || answer->branches[answer->branch_count - 1] < last_multiple)
        add_branch(answer, last_multiple);
}

static void copy_numbers(const gumbel_submission *submission, gb_answer *answer) {
    answer->callback = submission->callback;
    answer->user = submission->user;
    answer->priority = submission->priority;
    answer->max_new_tokens = submission->max_new_tokens;
    answer->min_new_tokens = submission->min_new_tokens;
    answer->forced_count = (uint32_t)submission->forced_count;
    answer->wants_logprob = submission->wants_logprob;
    answer->top_logprobs = submission->top_logprobs;
    answer->no_prefix_cache = submission->no_prefix_cache;
}

static gumbel_status copy_drafting(const gb_slots_of_engine *slots, const gumbel_submission *submission,
                                   gb_answer *answer, gumbel_error *error) {
    const uint32_t given = submission->max_draft, most = slots->draft_tokens;
    answer->drafting = submission->drafting;
    if (most == 0 || submission->drafting == GUMBEL_DRAFTING_OFF)
        return GUMBEL_OK;
    answer->max_draft = given > 0 && given < most ? given : most;
    if (submission->predicted_count == 0)
        return GUMBEL_OK;
    answer->predicted = gb_allocate(submission->predicted_count, sizeof *answer->predicted);
    if (!answer->predicted)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %zu predicted tokens",
                       submission->predicted_count);
    memcpy(answer->predicted, submission->predicted_tokens,
           submission->predicted_count * sizeof *answer->predicted);
    answer->predicted_count = submission->predicted_count;
    return GUMBEL_OK;
}

/* It ends at the program's stop tokens, also where the request ignores them, and at its own. */
static gumbel_status make_constraint(const gb_slots_of_engine *slots, const gumbel_submission *submission,
                                     gb_answer *answer, gumbel_error *error) {
    if (!submission->grammar && !submission->has_reasoning_budget && submission->forced_count == 0)
        return GUMBEL_OK;
    const bool ignores = submission->ignore_stop && submission->stop_token_count == 0;
    const gb_constraint_options options = {
        .grammar = submission->grammar,
        .tokenizer = submission->tokenizer,
        .vocab_size = slots->vocab_size,
        .prompt = submission->tokens,
        .prompt_count = submission->token_count,
        .reasons = submission->reasons,
        .has_reasoning_budget = submission->has_reasoning_budget,
        .reasoning_budget = submission->reasoning_budget,
        .forced = submission->forced_tokens,
        .forced_count = submission->forced_count,
        .end_tokens = ignores ? slots->stop_tokens.ids : answer->stop_tokens,
        .end_token_count = ignores ? slots->stop_tokens.count : answer->stop_token_count};
    const gumbel_status status = gb_constraint_create(&options, &answer->constraint, error);
    if (status == GUMBEL_ERROR_LIMIT && error) /* which of a submission says to try again */
        error->status = GUMBEL_ERROR_UNSUPPORTED;
    return status == GUMBEL_ERROR_LIMIT ? GUMBEL_ERROR_UNSUPPORTED : status;
}

static gumbel_status fill_answer(const gb_slots_of_engine *slots, const gumbel_submission *submission,
                                 gb_answer *answer, gumbel_error *error) {
    const uint32_t prompt_count = (uint32_t)submission->token_count, most = slots->max_context;
    copy_numbers(submission, answer);
    GB_TRY(copy_stops(slots, submission, answer, error));
    GB_TRY(copy_sampling(slots, submission, answer, error));
    GB_TRY(make_text(submission, answer, error));
    GB_TRY(make_constraint(slots, submission, answer, error));
    GB_TRY(copy_drafting(slots, submission, answer, error));
    answer->limit = most;
    if (submission->max_new_tokens > 0 && submission->max_new_tokens < most - prompt_count)
        answer->limit = prompt_count + submission->max_new_tokens;
    answer->sequence = gb_sequence_create(submission->tokens, prompt_count, answer->limit + 1);
    if (!answer->sequence)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a request of %u tokens", prompt_count);
    return GUMBEL_OK;
}

gumbel_status gb_answer_create(const gb_slots_of_engine *slots, const gumbel_submission *submission,
                               uint32_t index, uint64_t seed, uint32_t grain, gb_answer **answer,
                               gumbel_error *error) {
    *answer = NULL;
    GB_TRY(check_submission(slots, submission, error));
    gb_answer *made = gb_allocate(1, sizeof *made);
    if (!made)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a request");
    made->index = index;
    made->seed = seed;
    const gumbel_status status = fill_answer(slots, submission, made, error);
    if (status != GUMBEL_OK) {
        gb_answer_destroy(made);
        return status;
    }
    copy_branches(slots, submission, grain, made);
    *answer = made;
    return GUMBEL_OK;
}

void gb_answer_destroy(gb_answer *answer) {
    if (!answer)
        return;
    gb_sequence_destroy(answer->sequence);
    gumbel_detokenizer_destroy(answer->text);
    gb_constraint_destroy(answer->constraint);
    gb_drafter_destroy(answer->drafter);
    gb_free(answer->predicted);
    gb_free(answer->biases);
    gb_free(answer->stop_tokens);
    gb_free(answer);
}

/* ---- Drawing ------------------------------------------------------------------------------------------- */

uint32_t gb_answer_drawn(const gb_answer *answer) {
    return answer->sequence->count - answer->sequence->prompt_end;
}

const gumbel_sampling *gb_answer_sampling(const gb_answer *answer) {
    const uint32_t drawn = gb_answer_drawn(answer);
    const bool bans_stops = drawn < answer->min_new_tokens && drawn >= answer->forced_count;
    return bans_stops ? &answer->first_sampling : &answer->sampling;
}

uint32_t gb_answer_following(const gb_answer *answer) {
    const uint32_t drawn = gb_answer_drawn(answer);
    uint32_t following = answer->max_new_tokens > 0 ? answer->max_new_tokens - drawn - 1 : UINT32_MAX;
    if (drawn < answer->forced_count && answer->forced_count - drawn - 1 < following)
        following = answer->forced_count - drawn - 1;
    if (drawn < answer->min_new_tokens && answer->min_new_tokens - drawn - 1 < following)
        following = answer->min_new_tokens - drawn - 1;
    return following;
}

static gumbel_finish finish_of(const gb_slots_of_engine *slots, const gb_answer *answer, int32_t token) {
    const bool was_forced = gb_answer_drawn(answer) <= answer->forced_count;
    const bool has_ended = answer->constraint && gb_constraint_has_ended(answer->constraint);
    const gb_token_list stops = {answer->stop_tokens, answer->stop_token_count};
    if (!was_forced && (gb_lists_token(&stops, token) || has_ended))
        return GUMBEL_FINISH_STOP;
    if (answer->sequence->position == slots->max_context)
        return GUMBEL_FINISH_CONTEXT;
    return gb_answer_drawn(answer) == answer->max_new_tokens ? GUMBEL_FINISH_LENGTH : GUMBEL_FINISH_NONE;
}

/* ---- Events -------------------------------------------------------------------------------------------- */

static gumbel_event event_of(const gb_answer *answer, gumbel_event_type type) {
    return (gumbel_event){.size = sizeof(gumbel_event),
                          .type = type,
                          .answer = answer->index,
                          .request = answer->request,
                          .stop_string = -1,
                          .prompt = answer->sequence->tokens,
                          .prompt_count = answer->sequence->prompt_end};
}

gumbel_finish gb_answer_add(const gb_slots_of_engine *slots, gb_answer *answer, const gumbel_result *result) {
    gumbel_event event = event_of(answer, GUMBEL_EVENT_TOKEN);
    answer->sequence->tokens[answer->sequence->count++] = result->token;
    if (answer->drafter)
        gb_drafter_add(answer->drafter, &result->token, 1);
    gumbel_finish finish = finish_of(slots, answer, result->token);
    event.token = result->token;
    event.seed = result->seed;
    event.logprob = result->logprob;
    event.top_logprobs = result->top_logprobs;
    event.top_tokens = result->top_tokens;
    event.top_token_logprob = result->top_token_logprob;
    if (answer->text) { /* its ids have been checked: this does not fail */
        gb_detokenize(answer->text, result->token, finish != GUMBEL_FINISH_NONE, &event.text,
                      &event.text_length, NULL);
        if (gumbel_detokenizer_stopped(answer->text) >= 0)
            finish = GUMBEL_FINISH_STOP_STRING;
    }
    answer->callback(answer->user, &event);
    return finish;
}

static gumbel_usage usage_of(const gb_answer *answer, double now) {
    const double began_at = answer->began_at > 0 ? answer->began_at : now;
    gumbel_usage usage = {.size = sizeof usage,
                          .prompt_tokens = answer->sequence->prompt_end,
                          .cached_tokens = answer->cached_tokens,
                          .generated_tokens = gb_answer_drawn(answer),
                          .queue_seconds = began_at - answer->arrived_at,
                          .seed = answer->seed};
    if (answer->drafter) {
        usage.draft_tokens = answer->drafter->stats.proposed;
        usage.accepted_tokens = answer->drafter->stats.accepted;
    }
    if (answer->first_token_at > 0) {
        usage.prompt_seconds = answer->first_token_at - began_at;
        usage.answer_seconds = now - answer->first_token_at;
    }
    return usage;
}

void gb_answer_finish(gb_answer *answer, gumbel_finish finish, double now) {
    const gumbel_usage usage = usage_of(answer, now);
    gumbel_event event = event_of(answer, GUMBEL_EVENT_FINISH);
    event.finish = finish;
    event.usage = &usage;
    if (finish == GUMBEL_FINISH_STOP_STRING)
        event.stop_string = gumbel_detokenizer_stopped(answer->text);
    answer->phase = GB_ENDED;
    answer->callback(answer->user, &event);
}

void gb_answer_fail(gb_answer *answer, gumbel_status status, const char *message, double now) {
    const gumbel_usage usage = usage_of(answer, now);
    gumbel_event event = event_of(answer, GUMBEL_EVENT_ERROR);
    event.status = status;
    event.message = message;
    event.usage = &usage;
    if (answer->text)
        gumbel_detokenize_end(answer->text, &event.text, &event.text_length);
    answer->phase = GB_ENDED;
    answer->callback(answer->user, &event);
}
