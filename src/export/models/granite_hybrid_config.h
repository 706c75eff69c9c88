/* SPDX-License-Identifier: Apache-2.0
 *
 * What Granite 4 has besides a plain decoder: Mamba layers in attention's place, and experts beside the MLP.
 * Absent keys take transformers' defaults.
 */
#ifndef GUMBEL_EXPORT_MODELS_GRANITE_HYBRID_CONFIG_H
#define GUMBEL_EXPORT_MODELS_GRANITE_HYBRID_CONFIG_H

#include "export/models/dense_config.h"

/* Sets config->experts; a model may have none. Errors are the configuration's: FORMAT. */
void gb_granite_experts_read(const gb_config *text, gb_dense_config *config);

/* Says which of the config->layer_count layers are Mamba layers, which turn nothing, and sets config->mamba
 * where one is. Errors are the configuration's: FORMAT; UNSUPPORTED naming the key (other kinds of layers,
 * biases of products, step sizes that are clamped, ...). */
void gb_granite_layers_read(const gb_config *text, gb_dense_config *config);

#endif
