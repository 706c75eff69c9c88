/* SPDX-License-Identifier: Apache-2.0
 *
 * Biases and penalties, which change a few logits of a row: written in place, with what was there before
 * kept, so that the row can be restored. Nothing here allocates; thread-safe on different rows.
 */
#ifndef GUMBEL_BACKENDS_SAMPLER_ADJUST_H
#define GUMBEL_BACKENDS_SAMPLER_ADJUST_H

#include "backends/sampler/sampler.h"

/* Changes the logits of the list. saved receives the earlier values, one for each entry of the list that is
 * in the row, in the list's order; NULL: they are not kept. Returns how many there are. */
uint32_t gb_add_biases(float *logits, uint32_t count, const gb_bias_list *bias, float *saved);
uint32_t gb_add_penalties(float *logits, uint32_t count, const gb_penalties *penalties, float *saved);

/* Undo them; what was done last must be undone first. */
void gb_restore_biases(float *logits, uint32_t count, const gb_bias_list *bias, const float *saved);
void gb_restore_penalties(float *logits, uint32_t count, const gb_penalties *penalties, const float *saved);

#endif
