/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration of the plain decoders: Llama 3, Mistral, Ministral 3, Qwen2, Qwen3 with and without
 * experts, Gemma 3, SmolLM3, Granite, Phi, gpt-oss, OLMo 2 and 3 and Muse Glimmer, in every form that
 * transformers has written. They differ by defaults, a few keys, and what their layers have. Absent keys take
 * transformers' defaults.
 */
#ifndef GUMBEL_EXPORT_MODELS_DENSE_CONFIG_H
#define GUMBEL_EXPORT_MODELS_DENSE_CONFIG_H

#include "export/models/rope_config.h"
#include "export/nn/experts.h"
#include "export/nn/mamba.h"

typedef struct gb_dense_layer {
    bool is_sliding;
    bool has_rope; /* queries and keys are rotated */
    bool has_experts;
    bool is_mamba; /* a state space layer in attention's place */
} gb_dense_layer;

/* What all models of a family have. */
typedef struct gb_dense_traits {
    bool has_head_norms;       /* queries and keys are normalized, head by head */
    bool has_plain_head_norms; /* the same without a weight */
    bool has_wide_head_norms;  /* queries and keys are normalized before they are heads */
    bool has_head_biases;      /* products for queries, keys and values have biases */
    bool has_output_bias;      /* so has the one of attention's result */
    bool has_sinks;            /* each head has one more score, which no value belongs to */
    bool has_output_norms;     /* what attention and the MLP add to their input is normalized too */
    bool has_plain_inputs;     /* and their input is not */
    bool has_norms_from_one;   /* norms multiply by 1 + w */
    bool has_plain_last_norm;  /* but for the one before the head */
    bool has_embedding_norm;   /* what is looked up is normalized, without a weight */
    bool has_attention_gate;   /* attention's result is multiplied by the sigmoid of a product */
    bool has_geglu;            /* the MLP is a GEGLU; else a SwiGLU */
    bool has_sliding_rope;     /* sliding layers have a rotary embedding of their own */
    bool has_fused_matrices;   /* queries, keys and values are of one tensor, and so are gate and up */
    bool has_long_rope;        /* a part of each head may turn, and how depends on the context */
    bool has_shared_mlp;       /* there is an MLP beside experts, or, where the model has none, alone */
} gb_dense_traits;

typedef struct gb_dense_config {
    gb_dense_traits traits;
    bool is_wrapped;    /* the text model is part of a conditional-generation model */
    bool has_tied_head; /* the head is the embedding table */
    int64_t vocab_size, hidden_size, max_positions;
    int64_t intermediate_size; /* of layers without experts */
    double rms_norm_eps;
    double output_norm_eps;            /* of traits.has_output_norms */
    int64_t heads, kv_heads, head_dim; /* kv_heads divides heads; head_dim is even */
    int64_t sliding_window;            /* of the layers that slide; 0: none does */
    double embedding_scale;            /* of what is looked up */
    double attention_scale;            /* of scores, besides the rotary embedding's factors */
    double residual_scale;             /* of what attention and the MLP add to their input */
    double logit_scale;
    double logit_cap; /* 0: none */
    gb_rope_config rope;
    gb_rope_config sliding_rope; /* of traits.has_sliding_rope */
    gb_experts experts;          /* count 0: there are none */
    gb_mamba mamba;              /* of such layers; heads 0: there are none */
    gb_dense_layer *layers;
    int64_t layer_count;
} gb_dense_config;

/* Reads config.json from its root. Errors: FORMAT, MEMORY; UNSUPPORTED naming the key for what this version
 * cannot run (biases that keys ask for, other activations and rope types, layers that mix windows where
 * implementations differ, ...). Free with gb_dense_config_free, also after an error. */
gumbel_status gb_dense_config_read(const gb_config *root, gb_dense_config *config, gumbel_error *error);

void gb_dense_config_free(gb_dense_config *config);

#endif
