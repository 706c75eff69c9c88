/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers with the guesses of a draft model, of which as many are accepted as is wanted: how fast that would
 * be. They are drawn in full and then replaced, by what the target is known to draw or by another token; how
 * long a draft is, is chosen as it always is, up to the test's rows.
 */
#ifndef GUMBEL_CLI_BENCH_DRAFTED_H
#define GUMBEL_CLI_BENCH_DRAFTED_H

#include "cli/bench/measure.h"

/* Runs a test of kind DRAFTED once and adds the times to its averages; the model has a draft engine. base: a
 * session of the test's depth, NULL: of an empty one. Errors: those of steps; BACKEND where the target draws
 * other tokens than without drafts. */
gumbel_status cli_bench_measure_drafted(cli_bench *bench, cli_bench_test *test, const gumbel_session *base,
                                        gumbel_error *error);

#endif
