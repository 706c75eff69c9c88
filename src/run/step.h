/* SPDX-License-Identifier: Apache-2.0
 *
 * A step of the engine's requests, behind gumbel_step.
 */
#ifndef GUMBEL_RUN_STEP_H
#define GUMBEL_RUN_STEP_H

#include "run/handles.h"

/* Runs engine->requests, which are checked and cut: tokens of a request follow on the session's run position,
 * and engine->requests.rest of its own behind them are held. On an error other than NUMERIC no session has
 * moved, but recurrent states may be ahead. */
gumbel_status gb_run_step(gumbel_engine *engine, gumbel_error *error);

#endif
