/* SPDX-License-Identifier: Apache-2.0
 *
 * The generation loop as a pull iterator: gumbel_generate keeps the prompt, each gumbel_next runs what is due
 * and draws one token. The token drawn last waits in pending_token until the next call runs it.
 */
#include "run/handles.h"

#include <string.h>

static gumbel_status check_generate(const gumbel_session *session, const int32_t *tokens, size_t count,
                                    const gumbel_generate_options *options, gumbel_error *error) {
    const gumbel_engine *engine = session->engine;
    if (!engine->program->metadata.use_sampling)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "generate: the program was exported with --logits and has no sampler; use gumbel_step "
                       "and gumbel_sample");
    if (count > 0 && !tokens)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "generate: tokens is NULL");
    size_t pending = session->pending_token >= 0 ? 1 : 0;
    if (count + pending == 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "generate: the prompt has no tokens");
    if (count > engine->max_context || count + pending > engine->max_context - session->position)
        return gb_fail(error, GUMBEL_ERROR_LIMIT,
                       "a prompt of %zu tokens after position %u: the context holds %u", count + pending,
                       session->position, engine->max_context);
    if (options->snapshot && !engine->snapshots)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "generate: option snapshot needs an engine created with snapshots");
    gumbel_sampling sampling;
    gb_settle_sampling(engine->program, options->sampling, &sampling);
    return gb_check_sampling(&sampling, "", error);
}

gumbel_status gumbel_generate(gumbel_session *session, const int32_t *tokens, size_t count,
                              const gumbel_generate_options *given, gumbel_error *error) {
    gumbel_generate_options options = {0};
    if (given)
        memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    GB_TRY(check_generate(session, tokens, count, &options, error));
    gb_generation *generation = &session->generation;
    *generation = (gb_generation){
        .active = true,
        .ignore_stop = options.ignore_stop,
        .snapshot = options.snapshot,
        .max_new_tokens = options.max_new_tokens,
    };
    gb_settle_sampling(session->engine->program, options.sampling, &generation->sampling);
    if (session->pending_token >= 0)
        session->prompt[generation->prompt_count++] = session->pending_token;
    if (count > 0)
        memcpy(session->prompt + generation->prompt_count, tokens, count * sizeof *tokens);
    generation->prompt_count += (uint32_t)count;
    return GUMBEL_OK;
}

/* Runs a stretch of the prompt; a cancel in its middle keeps what was run, so that the rest stays due. */
static gumbel_status run_prompt(gumbel_session *session, uint32_t count, gumbel_request *next,
                                gumbel_error *error) {
    gb_generation *generation = &session->generation;
    uint32_t before = session->position;
    gumbel_status status = gb_session_run(session, session->prompt + generation->prompt_done, count,
                                          &generation->sampling, next, error);
    generation->prompt_done += session->position - before;
    return status;
}

static gumbel_status run_due_tokens(gumbel_session *session, gumbel_request *next, gumbel_error *error) {
    gb_generation *generation = &session->generation;
    uint32_t due = generation->prompt_count - generation->prompt_done;
    if (due == 0) {
        int32_t token = session->pending_token;
        return gb_session_run(session, &token, 1, &generation->sampling, next, error);
    }
    if (generation->snapshot) {
        GB_TRY(run_prompt(session, due - 1, NULL, error));
        GB_TRY(gumbel_session_snapshot(session, error));
        due = 1;
    }
    return run_prompt(session, due, next, error);
}

gumbel_status gumbel_next(gumbel_session *session, gumbel_generated *generated, gumbel_error *error) {
    gb_generation *generation = &session->generation;
    if (!generation->active)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "gumbel_next: nothing was begun with gumbel_generate");
    gumbel_request request;
    gumbel_status status = run_due_tokens(session, &request, error);
    if (status != GUMBEL_OK) {
        generation->active = false;
        return status;
    }
    session->pending_token = request.token;
    generation->generated++;
    gumbel_finish finish = request.finish;
    if (finish == GUMBEL_FINISH_STOP && generation->ignore_stop)
        finish =
            session->position == session->engine->max_context ? GUMBEL_FINISH_CONTEXT : GUMBEL_FINISH_NONE;
    if (finish == GUMBEL_FINISH_NONE && generation->generated == generation->max_new_tokens)
        finish = GUMBEL_FINISH_LENGTH;
    generation->active = finish == GUMBEL_FINISH_NONE;
    generated->token = request.token;
    generated->finish = finish;
    generated->seed = request.seed;
    return GUMBEL_OK;
}
