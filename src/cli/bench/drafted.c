/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench/drafted.h"

#include "base/clock.h"
#include "base/status.h"

#include <stdlib.h>

/* An answer behind one token of a test's depth. */
typedef struct drafted {
    cli_bench *bench;
    const cli_bench_test *test;
    const gumbel_session *base; /* NULL: an empty session */
    int32_t *known;             /* [tokens] what is drawn without drafts */
} drafted;

static gumbel_generate_options options_of(const drafted *d, bool has_drafts) {
    gumbel_generate_options options = {.size = sizeof options,
                                       .sampling = &d->bench->sampling.values,
                                       .max_new_tokens = d->test->tokens,
                                       .ignore_stop = true,
                                       .drafting = GUMBEL_DRAFTING_OFF};
    if (!has_drafts)
        return options;
    options.drafting = GUMBEL_DRAFTING_MODEL;
    options.max_draft = d->test->rows - 1;
    options.predicted_tokens = d->known;
    options.predicted_count = d->test->tokens;
    options.has_draft_acceptance = true;
    options.draft_acceptance = d->test->acceptance;
    return options;
}

static gumbel_status begin(const drafted *d, gumbel_session **session, gumbel_error *error) {
    GB_TRY(d->base ? gumbel_session_fork(d->base, session, error)
                   : gumbel_session_create(d->bench->model.engine, session, error));
    gumbel_session_set_seed(*session, d->bench->sampling.seed);
    return GUMBEL_OK;
}

/* Draws all tokens of the answer, which are learnt or compared with what is known. */
static gumbel_status answer(const drafted *d, gumbel_session *session, bool has_drafts, gumbel_error *error) {
    const gumbel_generate_options options = options_of(d, has_drafts);
    GB_TRY(gumbel_generate(session, &d->bench->tokens.ids[1], 1, &options, error));
    for (uint32_t i = 0; i < d->test->tokens; i++) {
        gumbel_generated next = {.size = sizeof next};
        GB_TRY(gumbel_next(session, &next, error));
        if (has_drafts && next.token != d->known[i])
            return gb_fail(error, GUMBEL_ERROR_BACKEND,
                           "token %u of the answer is %d with drafts and %d without", i, next.token,
                           d->known[i]);
        d->known[i] = next.token;
    }
    return GUMBEL_OK;
}

static gumbel_status run(const drafted *d, bool has_drafts, double *seconds, gumbel_draft_stats *stats,
                         gumbel_error *error) {
    gumbel_session *session = NULL;
    gumbel_status status = begin(d, &session, error);
    const double begun = gb_seconds();
    if (status == GUMBEL_OK)
        status = answer(d, session, has_drafts, error);
    *seconds = gb_seconds() - begun;
    *stats = (gumbel_draft_stats){.size = sizeof *stats};
    if (status == GUMBEL_OK)
        status = gumbel_session_draft_stats(session, stats, error);
    gumbel_session_destroy(session);
    return status;
}

/* The first time it also learns the answer, and has what guesses warm up. */
static gumbel_status measure(const drafted *d, cli_bench_test *test, gumbel_error *error) {
    gumbel_draft_stats stats;
    double seconds;
    GB_TRY(run(d, false, &seconds, &stats, error));
    if (test->rate.count == 0)
        GB_TRY(run(d, true, &seconds, &stats, error));
    GB_TRY(run(d, true, &seconds, &stats, error));
    cli_average_add(&test->seconds, seconds);
    cli_average_add(&test->step_seconds, seconds / (double)(test->tokens - stats.accepted));
    cli_average_add(&test->rate, test->tokens / seconds);
    cli_average_add(&test->drafts, (double)stats.steps);
    cli_average_add(&test->guesses, (double)stats.proposed);
    cli_average_add(&test->accepted, (double)stats.accepted);
    return GUMBEL_OK;
}

gumbel_status cli_bench_measure_drafted(cli_bench *bench, cli_bench_test *test, const gumbel_session *base,
                                        gumbel_error *error) {
    const drafted d = {
        .bench = bench, .test = test, .base = base, .known = cli_allocate(test->tokens, sizeof *d.known)};
    const gumbel_status status = measure(&d, test, error);
    free(d.known);
    return status;
}
