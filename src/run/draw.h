/* SPDX-License-Identifier: Apache-2.0
 *
 * The next token of a session's generation: what is due is run, with a draft where one pays, under the mask
 * of its grammar.
 */
#ifndef GUMBEL_RUN_DRAW_H
#define GUMBEL_RUN_DRAW_H

#include "run/handles.h"

/* Gives the result of the next row, whose pointers are valid until the session's next call. Errors:
 * CANCELLED, NUMERIC, LIMIT, and those of the step and of the grammar; whether a row that has failed had
 * candidates, *result says. */
gumbel_status gb_draw_next(gumbel_session *session, gumbel_result *result, gumbel_error *error);

#endif
