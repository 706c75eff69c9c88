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
    int64_t shared_inner;   /* and between the shared one's; 0: there is none */
    gb_op activation;       /* of the gate: SILU or GELU_TANH; or of gate and up: CLAMPED_SWIGLU */
    double alpha, limit;    /* of CLAMPED_SWIGLU */
    bool has_biases;        /* of the router and the experts (expert_biases.h) */
    bool has_plain_weights; /* an expert's weight is its share of all; otherwise those chosen sum to 1 */
    const char *mlx_stack;  /* how mlx-lm names the experts' matrices: "switch_mlp." */
    /* Tensors that may stand for experts.gate_up_proj and experts.down_proj; NULL: none do. */
    const char *gate_up_tensor, *down_tensor;
    const char *router; /* how the router is called; NULL: "gate." */
} gb_experts;

/* What a router chose: i32[M, choices], and f32[M, choices]. */
typedef struct gb_routes {
    gb_ref experts, weights;
} gb_routes;

/* The likeliest experts of logits f32[M, count]. */
gb_routes gb_route(const gb_scope *scope, const gb_experts *experts, gb_ref logits);

/* x f32[M, K] -> f32[M, K]: the weighted sum of the chosen experts, each down(activation(gate(x)) * up(x)).
 * Weights of the scope: experts.gate_up_proj [count, 2 inner, K] (gate above up) and experts.down_proj
 * [count, K, inner]. Checkpoints have these as transformers does, under these names; or gate and up apart, as
 * mlx-lm does in switch_mlp.gate_proj and up_proj; or expert by expert, as experts.0.gate_proj. The graph is
 * the same, unless gate and up have different formats. The first two may have other names
 * (gate_up_tensor). */
gb_ref gb_chosen_experts(const gb_scope *scope, const gb_experts *experts, gb_routes routes, gb_ref x);

/* The same with a router of its own, gate.weight [count, K], plus the shared expert times a sigmoid:
 * shared_expert.* and shared_expert_gate [1, K]. */
gb_ref gb_expert_mlp(const gb_scope *scope, const gb_experts *experts, gb_ref x);

#endif
