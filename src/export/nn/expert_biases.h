/* SPDX-License-Identifier: Apache-2.0
 *
 * What each expert adds to its products, in the forms that checkpoints have it.
 */
#ifndef GUMBEL_EXPORT_NN_EXPERT_BIASES_H
#define GUMBEL_EXPORT_NN_EXPERT_BIASES_H

#include "export/nn/experts.h"

typedef enum gb_expert_product { GB_GATE_PRODUCT, GB_UP_PRODUCT, GB_DOWN_PRODUCT } gb_expert_product;

/* y f32[M, choices, columns] and the chosen experts' biases of that product; y where there are none. Weights
 * of the scope: gate_proj.bias, up_proj.bias and down_proj.bias [count, columns] behind experts->mlx_stack;
 * or as transformers has them, experts.down_proj_bias, and experts.gate_up_proj_bias [count, 2 columns] with
 * gates and ups in turns. */
gb_ref gb_add_expert_bias(const gb_scope *scope, const gb_experts *experts, gb_expert_product product,
                          gb_ref y, gb_ref chosen);

#endif
