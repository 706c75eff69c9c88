/* SPDX-License-Identifier: Apache-2.0
 *
 * Gemma 4's configuration in every form that transformers has written: as released, with a text_config inside
 * a wrapper (gemma4, or gemma4_unified of the model without encoders), or text-only; per-layer shapes as
 * global_head_dim and num_global_key_value_heads, or as per_layer_config. Absent keys take transformers'
 * defaults. Assistants of these models (gemma4_assistant, gemma4_unified_assistant) have a wrapper like
 * theirs.
 */
#ifndef GUMBEL_EXPORT_MODELS_GEMMA4_CONFIG_H
#define GUMBEL_EXPORT_MODELS_GEMMA4_CONFIG_H

#include "export/checkpoint/config.h"
#include "export/nn/experts.h"

typedef enum gb_gemma4_kind { GB_GEMMA4_SLIDING = 0, GB_GEMMA4_FULL = 1, GB_GEMMA4_KINDS } gb_gemma4_kind;

typedef struct gb_gemma4_layer {
    gb_gemma4_kind kind;
    int64_t head_dim; /* even; the same in all layers of a kind */
    int64_t kv_heads; /* divides heads */
    bool shares_keys; /* its keys and values are those of the last layer of its kind that has its own; of an
                         assistant's layer: of the last of the model's */
    int64_t intermediate_size;
} gb_gemma4_layer;

typedef struct gb_gemma4_rope {
    double theta;
    double factor;     /* frequencies are divided by it */
    double proportion; /* of a head's dimensions that turn */
} gb_gemma4_rope;

typedef struct gb_gemma4_config {
    bool is_wrapped;   /* the text model is part of a conditional-generation model */
    bool is_unified;   /* of the model without encoders, which has defaults of its own */
    bool is_assistant; /* it guesses for such a model, with that one's keys and values in all layers */
    int64_t backbone_hidden_size; /* of an assistant: the model's */
    int64_t vocab_size, hidden_size, heads;
    int64_t sliding_window; /* a token sees itself and the sliding_window - 1 before it */
    int64_t max_positions;
    double rms_norm_eps;
    double logit_cap;     /* 0: none */
    bool keys_are_values; /* full layers have no v_proj */
    bool has_experts;     /* beside the MLP of each layer */
    gb_experts experts;
    int64_t input_size; /* of the vector that each token has for each layer; 0: it has none */
    int64_t input_rows; /* of these vectors' table */
    int64_t input_layers;
    bool has_tied_head; /* the head is the embedding table */
    gb_gemma4_rope rope[GB_GEMMA4_KINDS];
    gb_gemma4_layer *layers;
    int64_t layer_count;
} gb_gemma4_config;

/* Reads config.json from its root. Errors: FORMAT, MEMORY; UNSUPPORTED naming the key for what this version
 * cannot run (biases, other rope types, ...). Free with
 * gb_gemma4_config_free, also after an error. */
gumbel_status gb_gemma4_config_read(const gb_config *root, gb_gemma4_config *config, gumbel_error *error);

void gb_gemma4_config_free(gb_gemma4_config *config);

/* The name of a kind in config.json: "sliding_attention". */
const char *gb_gemma4_kind_name(gb_gemma4_kind kind);

#endif
