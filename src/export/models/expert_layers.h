/* SPDX-License-Identifier: Apache-2.0
 *
 * Which layers have experts, by the keys of the Qwen models.
 */
#ifndef GUMBEL_EXPORT_MODELS_EXPERT_LAYERS_H
#define GUMBEL_EXPORT_MODELS_EXPERT_LAYERS_H

#include "export/checkpoint/config.h"

/* Whether layer number index has them: layers without are listed in mlp_only_layers, or are all but each last
 * of decoder_sparse_step. Errors are the configuration's: FORMAT. */
bool gb_layer_has_experts(const gb_config *text, int64_t index);

#endif
