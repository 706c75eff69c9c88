/* SPDX-License-Identifier: Apache-2.0 */
#include "export/nn/plain_experts.h"

#include "export/nn/layers.h"

static int64_t width_of(const gb_scope *scope, gb_ref x) {
    return gb_build_type(scope->builder, x).shape.dims[1];
}

/* One of the two products: as transformers stacks the matrices, as mlx-lm does, or one by one. */
static gb_ref multiply(const gb_scope *scope, const char *const names[3], const int64_t dims[3], gb_ref x,
                       gb_ref chosen) {
    size_t found = 0;
    while (found < 2 && !gb_scope_has(scope, names[found]))
        found++;
    return gb_multiply_experts(scope, x, gb_expert_matrices(scope, names[0], names[found], NULL, dims),
                               chosen);
}

static gb_ref chosen_experts(const gb_scope *scope, const gb_plain_experts *experts, gb_routes routes,
                             gb_ref x) {
    static const char *const up[] = {"experts.up_proj", "switch_mlp.fc1.weight", "switch_mlp.up_proj.weight"};
    static const char *const down[] = {"experts.down_proj", "switch_mlp.fc2.weight",
                                       "switch_mlp.down_proj.weight"};
    const int64_t width = width_of(scope, x);
    const int64_t up_dims[] = {experts->router.count, experts->inner, width},
                  down_dims[] = {experts->router.count, width, experts->inner};
    gb_ref y = multiply(scope, up, up_dims, x, routes.experts);
    y = multiply(scope, down, down_dims, gb_node1(scope, GB_OP_RELU_SQUARED, y), routes.experts);
    return gb_node2(scope, GB_OP_COMBINE_EXPERTS, y, routes.weights);
}

gb_ref gb_plain_expert_mlp(const gb_scope *scope, const gb_plain_experts *experts, gb_ref x) {
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    const gb_routes routes = gb_route_by_sigmoids(scope, &experts->router, x);
    gb_ref y = experts->latent > 0 ? gb_linear(scope, "fc1_latent_proj.weight", x, experts->latent) : x;
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    y = chosen_experts(scope, experts, routes, y);
    if (experts->latent > 0)
        y = gb_linear(scope, "fc2_latent_proj.weight", y, width_of(scope, x));
    const gb_scope shared = gb_scope_in(scope, "shared_experts.");
    return experts->shared_inner == 0
               ? y
               : gb_node2(scope, GB_OP_ADD, y, gb_relu_squared_mlp(&shared, x, experts->shared_inner));
}

gb_ref gb_relu_squared_mlp(const gb_scope *scope, gb_ref x, int64_t inner) {
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    const gb_ref y = gb_node1(scope, GB_OP_RELU_SQUARED, gb_linear(scope, "up_proj.weight", x, inner));
    return gb_linear(scope, "down_proj.weight", y, width_of(scope, x));
}
