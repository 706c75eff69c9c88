/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench/drafted.h"

#include "base/clock.h"
#include "base/status.h"

#include <stdlib.h>

typedef struct drafted {
    cli_bench *bench;
    const cli_bench_test *test;
    gumbel_session *target, *guesser;
    int32_t *known;   /* [tokens + rows] what the target draws, one after the other */
    uint32_t at;      /* of these, the one that it runs next */
    uint32_t guessed; /* of these, the first one that the guesser has not run */
    int32_t guesses[CLI_BENCH_MOST_ROWS];
    uint64_t random;
    bool needs_snapshots; /* the guesser's states cannot forget in place */
    bool is_head;         /* it runs accepted guesses again, behind the target's hidden states */
} drafted;

static uint32_t known_count(const cli_bench_test *test) {
    return test->tokens + test->rows;
}

/* Runs tokens, and draws what follows. */
static gumbel_status draw(const drafted *d, gumbel_engine *engine, gumbel_session *session,
                          const int32_t *tokens, size_t count, int32_t *drawn, gumbel_error *error) {
    gumbel_result result = {.size = sizeof result};
    const gumbel_request request = {.size = sizeof request,
                                    .session = session,
                                    .tokens = tokens,
                                    .token_count = count,
                                    .result = &result,
                                    .sampling = &d->bench->sampling.values};
    GB_TRY(gumbel_step(engine, &request, 1, error));
    *drawn = result.token;
    return GUMBEL_OK;
}

/* ---- Beginning ----------------------------------------------------------------------------------------- */

/* A target behind its first token, which has drawn known[0]. */
static gumbel_status begin_target(drafted *d, const gumbel_session *base, gumbel_error *error) {
    gumbel_engine *engine = d->bench->model.engine;
    GB_TRY(base ? gumbel_session_fork(base, &d->target, error)
                : gumbel_session_create(engine, &d->target, error));
    gumbel_session_set_seed(d->target, d->bench->sampling.seed);
    return draw(d, engine, d->target, &d->bench->tokens.ids[1], 1, &d->known[0], error);
}

static void end_target(drafted *d) {
    gumbel_session_destroy(d->target);
    d->target = NULL;
}

/* The tokens that the target draws without drafts. */
static gumbel_status learn(drafted *d, const gumbel_session *base, gumbel_error *error) {
    GB_TRY(begin_target(d, base, error));
    for (uint32_t i = 0; i + 1 < known_count(d->test); i++)
        GB_TRY(draw(d, d->bench->model.engine, d->target, &d->known[i], 1, &d->known[i + 1], error));
    end_target(d);
    return GUMBEL_OK;
}

/* A guesser that has run as much as the target. */
static gumbel_status begin_guesser(drafted *d, gumbel_error *error) {
    gumbel_program_info info = {.size = sizeof info};
    const cli_model *model = &d->bench->model;
    d->is_head = model->draft_program == NULL;
    GB_TRY(gumbel_program_get_info(
        d->is_head ? gumbel_program_draft_head(model->program) : model->draft_program, &info, error));
    d->needs_snapshots = info.has_recurrent_states;
    GB_TRY(gumbel_session_create(model->draft_engine, &d->guesser, error));
    GB_TRY(gumbel_session_append(d->guesser, d->bench->tokens.ids, d->test->depth, error));
    return gumbel_session_append(d->guesser, &d->bench->tokens.ids[1], 1, error);
}

/* ---- Drafts -------------------------------------------------------------------------------------------- */

/* In [0, 100). */
static uint32_t next_percent(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % 100);
}

/* Decides the guesses, of which the first ones are right. Returns how many. */
static uint32_t decide(drafted *d) {
    const uint32_t count = d->test->rows - 1;
    const int32_t *right = d->known + d->at + 1;
    uint32_t accepted = 0;
    while (accepted < count && next_percent(&d->random) < d->test->acceptance)
        accepted++;
    for (uint32_t i = 0; i < count; i++)
        d->guesses[i] = i == accepted ? (right[i] == 0 ? 1 : right[i] - 1) : right[i];
    return accepted;
}

/* Of where the guesses begin, to which it goes back. */
static gumbel_status take_snapshot(drafted *d, gumbel_error *error) {
    if (d->at > d->guessed)
        GB_TRY(gumbel_session_append(d->guesser, d->known + d->guessed, d->at - d->guessed, error));
    d->guessed = d->at;
    return gumbel_session_snapshot(d->guesser, error);
}

/* Draws as many guesses as there are, each behind the ones decided before it. */
static gumbel_status guess(drafted *d, gumbel_error *error) {
    gumbel_engine *engine = d->bench->model.draft_engine;
    const uint32_t count = d->test->rows - 1;
    int32_t drawn;
    if (d->needs_snapshots)
        GB_TRY(take_snapshot(d, error));
    GB_TRY(draw(d, engine, d->guesser, &d->known[d->guessed], d->at - d->guessed + 1, &drawn, error));
    for (uint32_t i = 0; i + 1 < count; i++)
        GB_TRY(draw(d, engine, d->guesser, &d->guesses[i], 1, &drawn, error));
    return GUMBEL_OK;
}

/* Takes the guesser back behind the tokens that the target has accepted. */
static gumbel_status forget(drafted *d, uint32_t accepted, gumbel_error *error) {
    const uint32_t ran = d->test->rows - 1, most = d->is_head ? 1 : ran;
    const uint32_t right = accepted + 1 < most ? accepted + 1 : most;
    d->guessed = d->at + right;
    return gumbel_session_rewind(d->guesser, gumbel_session_position(d->guesser, NULL) - (ran - right),
                                 error);
}

static gumbel_status verify(drafted *d, uint32_t accepted, gumbel_error *error) {
    const gumbel_request request = {.size = sizeof request,
                                    .session = d->target,
                                    .tokens = &d->known[d->at],
                                    .token_count = 1,
                                    .result = d->bench->results,
                                    .sampling = &d->bench->sampling.values,
                                    .draft = d->guesses,
                                    .draft_count = d->test->rows - 1};
    GB_TRY(gumbel_step(d->bench->model.engine, &request, 1, error));
    if (d->bench->results[0].accepted != accepted)
        return gb_fail(
            error, GUMBEL_ERROR_BACKEND,
            "a draft of %u right tokens had %u accepted: the program draws other tokens with drafts",
            accepted, d->bench->results[0].accepted);
    return GUMBEL_OK;
}

static gumbel_status decode(drafted *d, uint32_t *steps, gumbel_error *error) {
    for (*steps = 0; d->at < d->test->tokens; ++*steps) {
        const uint32_t accepted = decide(d);
        GB_TRY(guess(d, error));
        GB_TRY(verify(d, accepted, error));
        GB_TRY(forget(d, accepted, error));
        d->at += accepted + 1;
    }
    return GUMBEL_OK;
}

/* ---- Measuring ----------------------------------------------------------------------------------------- */

static gumbel_status measure(drafted *d, cli_bench_test *test, const gumbel_session *base,
                             gumbel_error *error) {
    uint32_t steps;
    GB_TRY(learn(d, base, error));
    GB_TRY(begin_target(d, base, error));
    GB_TRY(begin_guesser(d, error));
    const double begun = gb_seconds();
    GB_TRY(decode(d, &steps, error));
    const double seconds = gb_seconds() - begun;
    cli_average_add(&test->seconds, seconds);
    cli_average_add(&test->step_seconds, seconds / steps);
    cli_average_add(&test->rate, d->at / seconds);
    return GUMBEL_OK;
}

gumbel_status cli_bench_measure_drafted(cli_bench *bench, cli_bench_test *test, const gumbel_session *base,
                                        gumbel_error *error) {
    drafted d = {.bench = bench, .test = test, .random = 1};
    d.known = cli_allocate(known_count(test), sizeof *d.known);
    const gumbel_status status = measure(&d, test, base, error);
    gumbel_session_destroy(d.target);
    gumbel_session_destroy(d.guesser);
    free(d.known);
    return status;
}
