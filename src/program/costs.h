/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step must read and multiply at least, told from the graph alone. With a machine's bandwidth and
 * arithmetic it says how fast the step can be.
 */
#ifndef GUMBEL_PROGRAM_COSTS_H
#define GUMBEL_PROGRAM_COSTS_H

#include "program/program.h"

/* Adds up the costs of all nodes, those of both regions of an `if` included; see gumbel.h for what counts.
 * shape is one that the caller has checked: at least one sequence and one token. */
void gb_program_costs(const gb_program *program, const gumbel_step_shape *shape, gumbel_step_costs *costs);

#endif
