/* SPDX-License-Identifier: Apache-2.0
 *
 * A mixture of experts without gates, each down(relu(up(x))^2), whose router scores them by sigmoids. A
 * correction decides who is chosen, and not how much each weighs. (Wang et al., "Auxiliary-loss-free load
 * balancing", 2024)
 */
#ifndef GUMBEL_EXPORT_NN_PLAIN_EXPERTS_H
#define GUMBEL_EXPORT_NN_PLAIN_EXPERTS_H

#include "export/nn/sigmoid_router.h"

typedef struct gb_plain_experts {
    gb_sigmoid_router router;
    int64_t inner;        /* width between an expert's matrices */
    int64_t shared_inner; /* and between the shared one's; 0: there is none */
    int64_t latent;       /* width of the experts' rows, between two products for all; 0: that of x */
} gb_plain_experts;

/* x f32[M, K] -> f32[M, K]: the weighted sum of the chosen experts and the shared one. Weights of the scope:
 * gate.weight and the correction, experts.up_proj [count, inner, L] and down_proj (or expert by
 * expert, or mlx-lm's switch_mlp.fc1 and fc2), shared_experts.*, fc1_latent_proj and fc2_latent_proj. */
gb_ref gb_plain_expert_mlp(const gb_scope *scope, const gb_plain_experts *experts, gb_ref x);

/* down(relu(up(x))^2) with the scope's up_proj and down_proj. */
gb_ref gb_relu_squared_mlp(const gb_scope *scope, gb_ref x, int64_t inner);

#endif
