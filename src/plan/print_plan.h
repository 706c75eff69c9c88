/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of a plan as text.
 */
#ifndef GUMBEL_PLAN_PRINT_PLAN_H
#define GUMBEL_PLAN_PRINT_PLAN_H

#include "base/text_sink.h"
#include "plan/plan.h"

/* A line: the step's number and name, what the backend says of it in that many columns ("" for a branch), its
 * first matrix, and the ops that it replaces where it is fused. */
void gb_print_step(const gb_plan *plan, uint32_t step, const char *kernel, int width,
                   const gb_text_sink *sink);

/* The line above those: what the columns are, and the backend's. */
void gb_print_step_columns(const char *kernel, int width, const gb_text_sink *sink);

#endif
