/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration of Nemotron-H and Nemotron 3, in the forms that NVIDIA and transformers have written:
 * layers as hybrid_override_pattern, a letter each, or listed by name. Absent keys take transformers'
 * defaults.
 */
#ifndef GUMBEL_EXPORT_MODELS_NEMOTRON_H_CONFIG_H
#define GUMBEL_EXPORT_MODELS_NEMOTRON_H_CONFIG_H

#include "export/checkpoint/config.h"
#include "export/nn/mamba.h"
#include "export/nn/plain_experts.h"

typedef enum gb_nemotron_h_kind {
    GB_NEMOTRON_H_MAMBA = 0,
    GB_NEMOTRON_H_ATTENTION,
    GB_NEMOTRON_H_EXPERTS,
    GB_NEMOTRON_H_MLP,
    GB_NEMOTRON_H_KINDS
} gb_nemotron_h_kind;

enum { GB_NEMOTRON_H_LAYERS = 1024 }; /* at most */

typedef struct gb_nemotron_h_config {
    bool has_tied_head; /* the head is the embedding table */
    int64_t vocab_size, hidden_size, max_positions;
    int64_t intermediate_size; /* of layers that are an MLP */
    double epsilon;
    int64_t heads, kv_heads, head_dim; /* of attention, which knows no positions; kv_heads divides heads */
    gb_mamba mamba;
    gb_plain_experts experts;
    gb_nemotron_h_kind layers[GB_NEMOTRON_H_LAYERS];
    int64_t layer_count;
} gb_nemotron_h_config;

/* Reads config.json from its root. Errors: FORMAT; UNSUPPORTED naming the key for what this version cannot
 * run (biases of products, other activations, groups of experts, step sizes that are clamped). */
gumbel_status gb_nemotron_h_config_read(const gb_config *root, gb_nemotron_h_config *config,
                                        gumbel_error *error);

#endif
