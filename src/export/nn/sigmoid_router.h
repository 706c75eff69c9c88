/* SPDX-License-Identifier: Apache-2.0
 *
 * A router that scores each expert by a sigmoid of its own. A correction decides who is chosen, and not how
 * much each weighs. (Wang et al., "Auxiliary-loss-free load balancing", 2024)
 */
#ifndef GUMBEL_EXPORT_NN_SIGMOID_ROUTER_H
#define GUMBEL_EXPORT_NN_SIGMOID_ROUTER_H

#include "export/nn/experts.h"

typedef struct gb_sigmoid_router {
    int64_t count, choices; /* experts, and choices of a token */
    bool is_normalized;     /* weights of a token are divided by their sum + epsilon before they are scaled */
    double scale, epsilon;
    const char *correction; /* its name in the scope */
} gb_sigmoid_router;

/* The choice for x f32[M, K], with gate.weight [count, K] of the scope. */
gb_routes gb_route_by_sigmoids(const gb_scope *scope, const gb_sigmoid_router *router, gb_ref x);

#endif
