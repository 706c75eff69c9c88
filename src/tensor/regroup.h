/* SPDX-License-Identifier: Apache-2.0
 *
 * A one-level matrix in smaller groups, for readers that lack its own: the codes stay, and the scale and bias
 * of a group or row are repeated for the groups that it falls into. Where the new format has a bias and the
 * old one none, the bias is what takes the center off: -scale * 2^(bits - 1). Every weight keeps its value.
 */
#ifndef GUMBEL_TENSOR_REGROUP_H
#define GUMBEL_TENSOR_REGROUP_H

#include "tensor/format.h"

/* Whether rows of that many inputs can go from one format to the other: both are one-level, with the same
 * bits and scale; the new groups divide the old ones; a bias is not lost. */
bool gb_can_regroup(const gb_format *from, const gb_format *to, uint64_t columns);

/* Makes all planes of a matrix [rows, columns] in `to`, zeroed by the caller, from those in `from`; both as
 * gb_format_planes lays them out. False, with some planes made, where a scale is too large for its bias or
 * for a product with the largest code. Thread-safe. */
bool gb_regroup(const gb_format *from, const gb_format *to, uint64_t rows, uint64_t columns,
                const uint8_t *matrix, uint8_t *regrouped);

#endif
