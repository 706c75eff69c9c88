/* SPDX-License-Identifier: Apache-2.0 */
#include "export/nn/sigmoid_router.h"

#include "export/nn/layers.h"

gb_routes gb_route_by_sigmoids(const gb_scope *scope, const gb_sigmoid_router *router, gb_ref x) {
    const gb_ref operands[] = {
        gb_gate(scope, "gate.weight", x, router->count),
        gb_weight(scope, router->correction, 1, &router->count, (gb_uniform){-0.1f, 0.1f}),
    };
    const gb_attribute attributes[] = {
        gb_int(GB_ATTRIBUTE_COUNT, router->choices), gb_int(GB_ATTRIBUTE_NORMALIZE, router->is_normalized),
        gb_float(GB_ATTRIBUTE_SCALE, router->scale), gb_float(GB_ATTRIBUTE_EPSILON, router->epsilon)};
    gb_ref routes[2] = {GB_NO_VALUE, GB_NO_VALUE};
    gb_build_op_results(scope->builder, GB_OP_ROUTE_SIGMOID, operands, 2, attributes, 4, routes, 2);
    return (gb_routes){.experts = routes[0], .weights = routes[1]};
}
