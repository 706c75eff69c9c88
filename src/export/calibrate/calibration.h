/* SPDX-License-Identifier: Apache-2.0
 *
 * What gumbel_calibration holds: the correlations of each product's inputs, by the name of its weight.
 */
#ifndef GUMBEL_EXPORT_CALIBRATE_CALIBRATION_H
#define GUMBEL_EXPORT_CALIBRATE_CALIBRATION_H

#include "export/calibrate/correlations.h"
#include "gumbel.h"

/* Those of the product with the weight of that name, of rows of that many inputs; NULL: there are none. */
const gb_correlations *gb_calibration_find(const gumbel_calibration *calibration, const char *weight,
                                           uint64_t columns);

/* The feedback of such correlations, as gb_correlations_feedback makes it. The last one is kept, since
 * matrices that take in the same values follow one another; it is valid until the next call. NULL: no memory.
 * Not thread-safe. */
const gb_feedback *gb_calibration_feedback(gumbel_calibration *calibration,
                                           const gb_correlations *correlations, uint32_t rotation);

/* Errors: MEMORY, where the calibration lacked it for a first weight. */
gumbel_status gb_calibration_check(const gumbel_calibration *calibration, gumbel_error *error);

#endif
