/* SPDX-License-Identifier: Apache-2.0
 *
 * What the step of a product takes in, as the engine's caller sees it.
 */
#ifndef GUMBEL_BACKENDS_CPU_OBSERVE_H
#define GUMBEL_BACKENDS_CPU_OBSERVE_H

#include "backends/cpu/ready_steps.h"

/* Of a step that is a product; threads are left to the caller. */
gumbel_observation gb_observation_of(const gb_program *program, const gb_ready_step *step);

#endif
