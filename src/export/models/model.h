/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of model architectures. A model is one entry: the names that config.json may give it, and the
 * function that turns a configuration into a graph.
 */
#ifndef GUMBEL_EXPORT_MODELS_MODEL_H
#define GUMBEL_EXPORT_MODELS_MODEL_H

#include "export/checkpoint/config.h"
#include "export/nn/sampling.h"
#include "export/weights.h"
#include "program/builder.h"

typedef struct gb_model_options {
    uint32_t max_context; /* 0: the smaller of the model's own and 8192 */
    uint32_t layers;      /* keep the first layers only; 0: all */
    gb_sampler_options sampler;
    gb_dtype cache_dtype; /* of attention's caches: f32 or bf16 */
} gb_model_options;

typedef struct gb_model {
    const char *name;    /* the program's architecture */
    const char *wrapper; /* config.json's model_type when the text model stands under text_config */
    const char *text;    /* and when config.json is the text model's own */
    int32_t eos_token;   /* ids where neither configuration names one; -1: none */
    int32_t bos_token;   /* as eos_token */

    /* Builds the graph with all its weights, and sets the metadata vocab_size, max_context, prefill_chunk and
     * use_sampling. Errors: FORMAT, UNSUPPORTED (naming the key that asks for what is not here), MEMORY;
     * ARGUMENT for the options. */
    gumbel_status (*build)(const gb_config *config, const gb_model_options *options, gb_builder *builder,
                           gb_weights *weights, gumbel_error *error);
} gb_model;

/* The model that config.json (its root) is of. Errors: UNSUPPORTED naming the model_type found and those that
 * are known. */
gumbel_status gb_model_find(const gb_config *config, const gb_model **model, gumbel_error *error);

/* The context to export for: what was asked, checked against the model's own, or the default. Errors:
 * ARGUMENT. */
gumbel_status gb_choose_context(uint32_t asked, int64_t model_context, int64_t *max_context,
                                gumbel_error *error);

/* Keeps the first layers only: sets *layer_count to what was asked, if anything was. Errors: ARGUMENT. */
gumbel_status gb_keep_layers(uint32_t asked, int64_t *layer_count, gumbel_error *error);

/* Where a text model's tensors and an untied head stand in the tree of names. */
typedef struct gb_tensor_place {
    const char *text, *head; /* prefixes */
} gb_tensor_place;

/* Looks for the embedding table; is_wrapped says where it usually is. */
gb_tensor_place gb_find_tensors(const gb_weights *weights, bool is_wrapped);

extern const gb_model gb_gemma4, gb_qwen3_5, gb_qwen3_5_moe;

#endif
