/* SPDX-License-Identifier: Apache-2.0
 *
 * The bounds that a configuration sets to the step sizes of Mamba layers.
 */
#ifndef GUMBEL_EXPORT_MODELS_STEP_LIMIT_H
#define GUMBEL_EXPORT_MODELS_STEP_LIMIT_H

#include "export/checkpoint/config.h"

/* An error, UNSUPPORTED, unless time_step_limit is absent, null, or what no step size is outside of. */
void gb_refuse_clamped_steps(const gb_config *config);

#endif
