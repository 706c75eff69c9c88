/* SPDX-License-Identifier: Apache-2.0
 *
 * For which backend a program is made: how its weights are laid out and how long its steps are. The one place
 * that knows the names here.
 */
#ifndef GUMBEL_EXPORT_BACKEND_ORDER_H
#define GUMBEL_EXPORT_BACKEND_ORDER_H

#include "program/constant_packing.h"

/* The order that the backend of that name reads: "cpu" (NULL), "cuda", "mlx", or "none" for the formats' own
 * order. Errors: ARGUMENT naming those that there are. */
gumbel_status gb_backend_order(const char *backend, gb_packing_order *order, gumbel_error *error);

/* The most tokens of a session that a step has on the backend of that name; NULL and unknown names count as
 * "cpu". What is reserved for a step grows with them; a GPU needs many to be busy. */
int64_t gb_backend_prefill_chunk(const char *backend);

#endif
