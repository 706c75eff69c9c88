/* SPDX-License-Identifier: Apache-2.0
 *
 * The generation loop as a pull iterator: gumbel_generate keeps the prompt, each gumbel_next runs what is due
 * and draws one token. The token drawn last waits in pending_token until the next call runs it.
 */
#include "base/versioned.h"
#include "run/constraint.h"
#include "run/draft/drafter.h"
#include "run/draft/model.h"
#include "run/draw.h"
#include "run/drawn_ahead.h"
#include "text/decode/detokenizer.h"
#include "text/tokenizer/tokenizer.h"

#include <string.h>

static gumbel_status check_text(const gumbel_engine *engine, const gumbel_generate_options *options,
                                gumbel_error *error) {
    const gumbel_tokenizer *tokenizer = options->tokenizer;
    const uint64_t vocab_size = engine->program->metadata.vocab_size;
    if (!tokenizer && options->stop_string_count > 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "generate: stop_strings need a tokenizer to find them by (option tokenizer)");
    if (tokenizer && tokenizer->id_limit < vocab_size)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "generate: the tokenizer has %u ids and the program %llu; gumbel_tokenizer_create "
                       "makes the program's own",
                       tokenizer->id_limit, (unsigned long long)vocab_size);
    return GUMBEL_OK;
}

static gumbel_status check_predicted(const gumbel_engine *engine, const gumbel_generate_options *options,
                                     gumbel_error *error) {
    const uint64_t vocab_size = engine->program->metadata.vocab_size;
    if (options->predicted_count > 0 && !options->predicted_tokens)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "generate: predicted_tokens is NULL");
    for (size_t i = 0; i < options->predicted_count; i++)
        if (options->predicted_tokens[i] < 0 || (uint64_t)options->predicted_tokens[i] >= vocab_size)
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                           "generate: predicted_tokens: token %d: the vocabulary has ids 0 to %llu",
                           options->predicted_tokens[i], (unsigned long long)vocab_size - 1);
    return GUMBEL_OK;
}

/* An answer of unknown tokens has no right guesses. */
static gumbel_status check_acceptance(const gumbel_generate_options *options, gumbel_error *error) {
    if (options->has_draft_acceptance && options->draft_acceptance > 100)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "generate: draft_acceptance: %u, expected 0 to 100 (of 100)",
                       options->draft_acceptance);
    if (options->has_draft_acceptance && options->predicted_count == 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "generate: draft_acceptance: predicted_tokens must be the tokens of the answer");
    if (options->has_draft_acceptance && options->drafting != GUMBEL_DRAFTING_MODEL)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "generate: draft_acceptance needs drafting by a model alone (GUMBEL_DRAFTING_MODEL)");
    return GUMBEL_OK;
}

static gumbel_status check_generate(const gumbel_session *session, const int32_t *tokens, size_t count,
                                    const gumbel_generate_options *options, gumbel_error *error) {
    const gumbel_engine *engine = session->engine;
    if (!engine->program->metadata.use_sampling)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "generate: the program was exported with --logits and has no sampler; use gumbel_step "
                       "and gumbel_sample");
    if (engine->is_draft_head)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "generate: the program is a draft head, which only guesses for another");
    if (count > 0 && !tokens)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "generate: tokens is NULL");
    size_t pending = session->pending_token >= 0 ? 1 : 0;
    if (count + pending == 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "generate: the prompt has no tokens");
    if (count > engine->max_context || count + pending > engine->max_context - session->position)
        return gb_fail(error, GUMBEL_ERROR_LIMIT,
                       "a prompt of %zu tokens after position %u: the context holds %u", count + pending,
                       session->position, engine->max_context);
    GB_TRY(check_predicted(engine, options, error));
    GB_TRY(check_acceptance(options, error));
    if (options->drafting == GUMBEL_DRAFTING_MODEL && !engine->draft_engine)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "generate: drafting by a model needs an engine created with draft_engine");
    if (options->snapshot && !engine->snapshots)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "generate: option snapshot needs an engine created with snapshots");
    gumbel_sampling sampling;
    GB_TRY(gb_settle_sampling(engine->program, options->sampling, "", &sampling, error));
    GB_TRY(gb_check_sampling(&sampling, "", error));
    GB_TRY(gb_check_inputs(engine->program, &sampling, "", error));
    GB_TRY(check_text(engine, options, error));
    return gb_check_logprobs(engine->program, options->wants_logprob, options->top_logprobs, "", error);
}

/* The settings, which have been checked, with biases of the session's own. */
static void keep_sampling(gumbel_session *session, const gumbel_sampling *given) {
    gumbel_sampling *kept = &session->generation.sampling;
    gb_settle_sampling(session->engine->program, given, "", kept, NULL);
    if (kept->bias_count > 0)
        memmove(session->bias, kept->bias, kept->bias_count * sizeof *session->bias);
    kept->bias = session->bias;
}

/* Makes what spells the generation's tokens out; NULL: nothing does. */
static gumbel_status make_text(const gumbel_generate_options *options, const int32_t *prompt, size_t count,
                               gumbel_detokenizer **text, gumbel_error *error) {
    *text = NULL;
    if (!options->tokenizer)
        return GUMBEL_OK;
    GB_TRY(gumbel_detokenizer_create(options->tokenizer, options->show_special, text, error));
    gumbel_status status = gumbel_detokenizer_stop_at(
        *text, options->stop_strings, options->stop_string_count, options->include_stop_string, error);
    if (status == GUMBEL_OK && options->stop_in_answer && options->stop_string_count > 0)
        status = gumbel_detokenizer_stop_in_answer(*text, prompt, count, error);
    return status;
}

/* Makes what holds the generation to its grammar; NULL: nothing does. */
static gumbel_status make_constraint(const gumbel_session *session, const gumbel_generate_options *options,
                                     const int32_t *prompt, size_t count, gb_constraint **constraint,
                                     gumbel_error *error) {
    const gb_metadata *metadata = &session->engine->program->metadata;
    *constraint = NULL;
    if (!options->grammar && !options->has_reasoning_budget && options->forced_count == 0)
        return GUMBEL_OK;
    const gb_constraint_options of_answer = {.grammar = options->grammar,
                                             .tokenizer = options->tokenizer,
                                             .vocab_size = metadata->vocab_size,
                                             .prompt = prompt,
                                             .prompt_count = count,
                                             .reasons = options->reasons,
                                             .has_reasoning_budget = options->has_reasoning_budget,
                                             .reasoning_budget = options->reasoning_budget,
                                             .forced = options->forced_tokens,
                                             .forced_count = options->forced_count,
                                             .end_tokens = metadata->stop_tokens.ids,
                                             .end_token_count = metadata->stop_tokens.count};
    GB_TRY(gb_check_mask(session->engine->program, "generate: ", error));
    return gb_constraint_create(&of_answer, constraint, error);
}

/* Makes who guesses the generation's tokens, and room for what a step then draws; NULL: nobody. */
static gumbel_status make_drafter(const gumbel_session *session, const gumbel_generate_options *options,
                                  const int32_t *prompt, size_t count, gb_drafter **drafter,
                                  gb_drawn_ahead *ahead, gumbel_error *error) {
    const gumbel_engine *engine = session->engine;
    const uint32_t given = options->max_draft;
    *drafter = NULL;
    *ahead = (gb_drawn_ahead){0};
    if (engine->draft_tokens == 0 || options->drafting == GUMBEL_DRAFTING_OFF)
        return GUMBEL_OK;
    GB_TRY(gb_drawn_ahead_reserve(engine, ahead, error));
    *drafter = gb_drafter_create(given > 0 && given < engine->draft_tokens ? given : engine->draft_tokens,
                                 options->predicted_tokens, options->predicted_count);
    if (!*drafter || (options->has_draft_acceptance &&
                      !gb_drafter_simulate(*drafter, options->predicted_tokens, options->predicted_count,
                                           options->draft_acceptance))) {
        gb_drafter_destroy(*drafter);
        *drafter = NULL;
        gb_drawn_ahead_free(ahead);
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for drafts");
    }
    if (session->draft_model && options->drafting != GUMBEL_DRAFTING_LOOKUP)
        gb_drafter_use_model(*drafter, session->draft_model, options->drafting == GUMBEL_DRAFTING_MODEL);
    gb_drafter_add(*drafter, session->tokens, session->position);
    if (session->pending_token >= 0)
        gb_drafter_add(*drafter, &session->pending_token, 1);
    gb_drafter_add(*drafter, prompt, count);
    return GUMBEL_OK;
}

/* What a generation has of its own. */
typedef struct gb_generation_parts {
    gumbel_detokenizer *text;
    gb_constraint *constraint;
    gb_drafter *drafter;
    gb_drawn_ahead ahead;
} gb_generation_parts;

static gumbel_status make_parts(const gumbel_session *session, const gumbel_generate_options *options,
                                const int32_t *prompt, size_t count, gb_generation_parts *parts,
                                gumbel_error *error) {
    GB_TRY(make_constraint(session, options, prompt, count, &parts->constraint, error));
    GB_TRY(make_text(options, prompt, count, &parts->text, error));
    return make_drafter(session, options, prompt, count, &parts->drafter, &parts->ahead, error);
}

/* Makes all of it, in place of the last generation's. */
static gumbel_status prepare(gumbel_session *session, const gumbel_generate_options *options,
                             const int32_t *prompt, size_t count, gumbel_error *error) {
    gb_generation_parts parts = {0};
    const gumbel_status status = make_parts(session, options, prompt, count, &parts, error);
    if (status != GUMBEL_OK) {
        gumbel_detokenizer_destroy(parts.text);
        gb_constraint_destroy(parts.constraint);
        return status;
    }
    gb_session_forget_generation(session);
    session->text = parts.text;
    session->constraint = parts.constraint;
    session->drafter = parts.drafter;
    session->ahead = parts.ahead;
    return GUMBEL_OK;
}

void gb_session_forget_generation(gumbel_session *session) {
    gumbel_detokenizer_destroy(session->text);
    gb_constraint_destroy(session->constraint);
    gb_drafter_destroy(session->drafter);
    gb_drawn_ahead_free(&session->ahead);
    session->text = NULL;
    session->constraint = NULL;
    session->drafter = NULL;
}

gumbel_status gumbel_generate(gumbel_session *session, const int32_t *tokens, size_t count,
                              const gumbel_generate_options *given, gumbel_error *error) {
    gumbel_generate_options options;
    GB_TRY(gb_read_versioned(given, "generate options", &options, sizeof options, error));
    gb_session_settle(session);
    GB_TRY(check_generate(session, tokens, count, &options, error));
    GB_TRY(prepare(session, &options, tokens, count, error));
    gb_generation *generation = &session->generation;
    *generation = (gb_generation){
        .active = true,
        .ignore_stop = options.ignore_stop,
        .forced_count = options.forced_count,
        .snapshot = options.snapshot,
        .max_new_tokens = options.max_new_tokens,
        .wants_logprob = options.wants_logprob,
        .top_logprobs = options.top_logprobs,
    };
    keep_sampling(session, options.sampling);
    if (session->pending_token >= 0)
        session->prompt[generation->prompt_count++] = session->pending_token;
    if (count > 0)
        memcpy(session->prompt + generation->prompt_count, tokens, count * sizeof *tokens);
    generation->prompt_count += (uint32_t)count;
    return GUMBEL_OK;
}

/* Why the token ends the generation, its text aside. */
static gumbel_finish finish_of(const gumbel_session *session, const gumbel_result *result) {
    const gb_generation *generation = &session->generation;
    gumbel_finish finish = result->finish;
    const bool has_ended = session->constraint && gb_constraint_has_ended(session->constraint);
    const bool goes_on = generation->ignore_stop || generation->generated <= generation->forced_count;
    if (finish == GUMBEL_FINISH_STOP && goes_on && !has_ended)
        finish = gumbel_session_position(session, NULL) == session->engine->max_context
                     ? GUMBEL_FINISH_CONTEXT
                     : GUMBEL_FINISH_NONE;
    if (finish == GUMBEL_FINISH_NONE && generation->generated == generation->max_new_tokens)
        finish = GUMBEL_FINISH_LENGTH;
    return finish;
}

/* Spells the token out. One that completes a stop string finishes the generation for that reason. */
static gumbel_status add_text(gumbel_session *session, gumbel_generated *generated, gumbel_error *error) {
    const bool is_last = generated->finish != GUMBEL_FINISH_NONE;
    GB_TRY(gb_detokenize(session->text, generated->token, is_last, &generated->text, &generated->text_length,
                         error));
    generated->stop_string = gumbel_detokenizer_stopped(session->text);
    if (generated->stop_string >= 0)
        generated->finish = GUMBEL_FINISH_STOP_STRING;
    return GUMBEL_OK;
}

/* Ends a generation that failed with the text that was held back. */
static void give_up(gumbel_session *session, gumbel_generated *generated) {
    session->generation.active = false;
    if (session->text)
        gumbel_detokenize_end(session->text, &generated->text, &generated->text_length);
}

static gumbel_status compute_next(gumbel_session *session, gumbel_generated *generated, gumbel_error *error) {
    gb_generation *generation = &session->generation;
    gumbel_result result = {.size = sizeof result};
    const gumbel_status status = gb_draw_next(session, &result, error);
    if (status != GUMBEL_OK) {
        give_up(session, generated);
        return status;
    }
    if (session->drafter)
        gb_drafter_add(session->drafter, &result.token, 1);
    session->pending_token = result.token;
    generation->generated++;
    *generated = (gumbel_generated){
        .token = result.token,
        .finish = finish_of(session, &result),
        .seed = result.seed,
        .logprob = result.logprob,
        .top_logprobs = result.top_logprobs,
        .top_tokens = result.top_tokens,
        .top_token_logprob = result.top_token_logprob,
        .stop_string = -1,
    };
    if (session->text)
        GB_TRY(add_text(session, generated, error));
    generation->active = generated->finish == GUMBEL_FINISH_NONE;
    return GUMBEL_OK;
}

gumbel_status gumbel_next(gumbel_session *session, gumbel_generated *generated, gumbel_error *error) {
    GB_TRY(gb_check_versioned(generated, "generated", error));
    if (!session->generation.active)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "gumbel_next: nothing was begun with gumbel_generate");
    gumbel_generated full = {0}; /* what a failure leaves unchanged is copied back */
    memcpy(&full, generated, generated->size < sizeof full ? generated->size : sizeof full);
    gumbel_status status = compute_next(session, &full, error);
    gb_write_versioned(&full, sizeof full, generated);
    return status;
}

gumbel_status gumbel_session_draft_stats(const gumbel_session *session, gumbel_draft_stats *stats,
                                         gumbel_error *error) {
    GB_TRY(gb_check_versioned(stats, "draft stats", error));
    const gumbel_draft_stats full =
        session->drafter ? session->drafter->stats : (gumbel_draft_stats){.size = sizeof full};
    gb_write_versioned(&full, sizeof full, stats);
    return GUMBEL_OK;
}
