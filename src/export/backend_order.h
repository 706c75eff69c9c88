/* SPDX-License-Identifier: Apache-2.0
 *
 * For which backend a program's weights are laid out: by name, the one place that knows the names here.
 */
#ifndef GUMBEL_EXPORT_BACKEND_ORDER_H
#define GUMBEL_EXPORT_BACKEND_ORDER_H

#include "program/constant_packing.h"

/* The order that the backend of that name reads: "cpu" (NULL), "cuda", "mlx", or "none" for the formats' own
 * order. Errors: ARGUMENT naming those that there are. */
gumbel_status gb_backend_order(const char *backend, gb_packing_order *order, gumbel_error *error);

#endif
