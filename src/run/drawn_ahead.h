/* SPDX-License-Identifier: Apache-2.0
 *
 * A step with a draft draws several tokens, which gumbel_next gives one by one. To its caller the session
 * stands where tokens have been given to, so that anything else begins with forgetting the others.
 */
#ifndef GUMBEL_RUN_DRAWN_AHEAD_H
#define GUMBEL_RUN_DRAWN_AHEAD_H

#include "run/handles.h"

/* Reserves room for the results of a step with the engine's longest draft. Errors: MEMORY. */
gumbel_status gb_drawn_ahead_reserve(const gumbel_engine *engine, gb_drawn_ahead *ahead, gumbel_error *error);

void gb_drawn_ahead_free(gb_drawn_ahead *ahead);

/* Takes over the results of a step, which the engine's next step would overwrite. */
void gb_drawn_ahead_keep(const gumbel_engine *engine, gb_drawn_ahead *ahead);

/* The next result; there is one. */
const gumbel_result *gb_drawn_ahead_take(gb_drawn_ahead *ahead);

/* Forgets the results that have not been given, and what was run for them. */
void gb_session_settle(gumbel_session *session);

#endif
