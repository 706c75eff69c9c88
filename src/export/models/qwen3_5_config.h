/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration of Qwen3.5, with experts or dense, and of Qwen3-Next, in every form that transformers has
 * written: with a text_config inside a wrapper, or text-only; layers as layer_types or as
 * full_attention_interval; rotary as rope_parameters, or as rope_theta and partial_rotary_factor. Absent keys
 * take transformers' defaults. Two keys are ours, for what the makers of GGUF files do to weights:
 * norm_weights_hold_one, and linear_value_heads_tiled.
 */
#ifndef GUMBEL_EXPORT_MODELS_QWEN3_5_CONFIG_H
#define GUMBEL_EXPORT_MODELS_QWEN3_5_CONFIG_H

#include "export/checkpoint/config.h"
#include "export/nn/delta_net.h"
#include "export/nn/experts.h"

typedef enum gb_qwen3_5_kind { GB_QWEN3_5_LINEAR = 0, GB_QWEN3_5_FULL = 1, GB_QWEN3_5_KINDS } gb_qwen3_5_kind;

typedef struct gb_qwen3_5_layer {
    gb_qwen3_5_kind kind;
    bool has_experts;
} gb_qwen3_5_layer;

typedef struct gb_qwen3_5_config {
    bool is_wrapped; /* the text model is part of a conditional-generation model */
    bool has_experts;
    bool has_dense_layers; /* beside experts there may be layers without */
    bool has_tied_head;    /* the head is the embedding table */
    bool norms_hold_one;   /* a norm's weight is 1 + w, not w */
    int64_t vocab_size, hidden_size, max_positions;
    int64_t intermediate_size; /* of layers without experts */
    double rms_norm_eps;
    int64_t heads, kv_heads, head_dim; /* of full attention; kv_heads divides heads */
    int64_t rotary_dim;                /* a head's first dims, which turn; even */
    double rope_theta;
    gb_delta_net delta_net;
    gb_experts experts;
    gb_qwen3_5_layer *layers;
    int64_t layer_count;
} gb_qwen3_5_config;

/* Reads config.json from its root. Errors: FORMAT, MEMORY; UNSUPPORTED naming the key for what this version
 * cannot run (biases, other activations and rope types, layers without experts among others but for
 * Qwen3-Next, ...). Free with gb_qwen3_5_config_free, also after an error. */
gumbel_status gb_qwen3_5_config_read(const gb_config *root, gb_qwen3_5_config *config, gumbel_error *error);

/* Whether a draft head is one layer that has the model's own table, as far as config.json says. Errors:
 * FORMAT; UNSUPPORTED naming the key. */
gumbel_status gb_qwen3_5_check_head(const gb_config *root, gumbel_error *error);

void gb_qwen3_5_config_free(gb_qwen3_5_config *config);

#endif
