/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration of LFM2, dense and with experts: layers as layer_types or as full_attn_idxs, the MLP's
 * width as it is or as the width from which it is computed. Absent keys take transformers' defaults.
 */
#ifndef GUMBEL_EXPORT_MODELS_LFM2_CONFIG_H
#define GUMBEL_EXPORT_MODELS_LFM2_CONFIG_H

#include "export/models/rope_config.h"
#include "export/nn/sigmoid_router.h"

enum { GB_LFM2_LAYERS = 1024 }; /* at most */

typedef struct gb_lfm2_config {
    bool has_tied_head; /* the head is the embedding table */
    int64_t vocab_size, hidden_size, max_positions;
    int64_t intermediate_size; /* of layers without experts */
    double norm_eps;
    int64_t heads, kv_heads, head_dim; /* kv_heads divides heads */
    int64_t conv_width;
    int64_t dense_layers; /* the first ones, which have no experts */
    gb_rope_config rope;
    gb_experts experts;
    gb_sigmoid_router router;
    bool attends[GB_LFM2_LAYERS]; /* else the layer has a convolution */
    int64_t layer_count;
} gb_lfm2_config;

/* Reads config.json from its root. Errors: FORMAT, MEMORY; UNSUPPORTED naming the key for what this version
 * cannot run (biases, routers without a correction). Free with gb_lfm2_config_free, also after an error. */
gumbel_status gb_lfm2_config_read(const gb_config *root, gb_lfm2_config *config, gumbel_error *error);

void gb_lfm2_config_free(gb_lfm2_config *config);

#endif
