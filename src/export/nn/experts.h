/* SPDX-License-Identifier: Apache-2.0
 *
 * A mixture of experts in place of one MLP: a router chooses a few of many for each token, and one more is
 * shared by all. (Shazeer et al., "Outrageously large neural networks", 2017; the shared one: DeepSeekMoE,
 * 2024)
 */
#ifndef GUMBEL_EXPORT_NN_EXPERTS_H
#define GUMBEL_EXPORT_NN_EXPERTS_H

#include "export/nn/graph.h"

typedef struct gb_experts {
    int64_t count, choices; /* choices of a token */
    int64_t inner;          /* width between an expert's matrices */
    int64_t shared_inner;   /* and between the shared one's */
} gb_experts;

/* x f32[M, K] -> f32[M, K]: the sum of the chosen SwiGLU experts with weights that sum to 1, plus the shared
 * one times a sigmoid. Weights of the scope: gate [count, K], shared_expert.* and shared_expert_gate [1, K],
 * and the experts' experts.gate_up_proj [count, 2 inner, K] (gate above up) and experts.down_proj [count, K,
 * inner]. Checkpoints have these as transformers does, under these names, or as mlx-lm does, gate and up
 * apart in switch_mlp.gate_proj and up_proj; the graph is the same, unless those two have different formats.
 */
gb_ref gb_expert_mlp(const gb_scope *scope, const gb_experts *experts, gb_ref x);

#endif
