/* SPDX-License-Identifier: Apache-2.0
 *
 * The families of plain decoders: one entry for each model_type.
 */
#ifndef GUMBEL_EXPORT_MODELS_DENSE_FAMILY_H
#define GUMBEL_EXPORT_MODELS_DENSE_FAMILY_H

#include "export/models/dense_config.h"

/* How a family says which layers have windows. */
typedef enum gb_window_rule {
    GB_NO_WINDOWS,
    GB_WINDOWS_IN_ALL,
    GB_WINDOWS_FROM_A_LAYER,
    GB_WINDOWS_BY_PATTERN,
    GB_LISTED_MIXERS /* no windows: layers are listed, as attention or mamba */
} gb_window_rule;

/* transformers' defaults of a model_type, and what all of its models have. */
typedef struct gb_dense_family {
    const char *text, *wrapper; /* model_type of the text model, and around it; NULL: none */
    int64_t vocab_size, hidden_size, intermediate_size, layers, heads;
    int64_t kv_heads; /* 0: as heads */
    int64_t head_dim; /* 0: hidden_size / heads */
    int64_t max_positions;
    int64_t sliding_window; /* 0: not unless it is given */
    int64_t window_pattern; /* of GB_WINDOWS_BY_PATTERN: each last of so many layers is full */
    int64_t query_scalar;   /* query_pre_attn_scalar; 0: the head's size */
    int64_t rope_interval;  /* each last of so many layers does not rotate; 0: all do, whatever keys say */
    double rope_theta;      /* 0: 10000 */
    double rms_norm_eps;    /* 0: 1e-6 */
    gb_window_rule windows;
    bool has_experts, has_tied_head, has_logit_cap;
    bool may_be_flat;         /* mlx-lm writes the wrapper's name with the text model's keys beside it */
    bool has_one_theta;       /* rope_theta's default is of layers that slide as well */
    bool has_rope_in_windows; /* layers that do not slide do not rotate */
    double logit_cap;         /* of has_logit_cap, where no key says it */
    double query_factor;      /* qk_scale_factor, of scores; 0: none */
    double logit_scale;       /* output_multiplier; 0: none */
    double output_norm_eps;   /* post_norm_eps; 0: rms_norm_eps */
    bool has_gpt_oss_experts; /* with biases, and a clamped SwiGLU */
    bool scales_queries;      /* as rope_parameters say */
    bool scales_embeddings;   /* by the root of their size */
    bool has_multipliers;     /* of embeddings, scores, what layers add, and logits */
    gb_dense_traits traits;
} gb_dense_family;

/* The family whose text model, or whose wrapper, is called type, or NULL. It lives as long as the program. */
const gb_dense_family *gb_dense_family_find(const char *type);

#endif
