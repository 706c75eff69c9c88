/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of model architectures. A model is one entry: the names that config.json may give it, and the
 * function that turns a configuration into a graph.
 */
#ifndef GUMBEL_EXPORT_MODELS_MODEL_H
#define GUMBEL_EXPORT_MODELS_MODEL_H

#include "export/checkpoint/config.h"
#include "export/nn/attention.h"
#include "export/nn/sampling.h"
#include "export/weights.h"
#include "program/builder.h"

typedef struct gb_model_options {
    uint32_t max_context;  /* 0: the smaller of the model's own and 8192 */
    int64_t prefill_chunk; /* tokens of a session in one step, at most; 0: 512 */
    uint32_t layers;       /* keep the first layers only; 0: all */
    bool keep_hidden;      /* for a draft head: what the head of tokens takes in is kept (keep_hidden) */
    /* Root of the configuration of the assistant that is to be the draft head, or NULL. Its tensors have
     * "assistant." before their names. */
    const gb_config *assistant;
    gb_sampler_options sampler;
} gb_model_options;

typedef struct gb_model {
    const char *name;    /* the program's architecture */
    const char *wrapper; /* config.json's model_type when the text model stands under text_config; or NULL */
    const char *text;    /* and when config.json is the text model's own */
    int32_t eos_token;   /* ids where neither configuration names one; -1: none */
    int32_t bos_token;   /* as eos_token */

    /* Builds the graph with all its weights, and sets the metadata vocab_size, max_context, prefill_chunk and
     * use_sampling. Errors: FORMAT, UNSUPPORTED (naming the key that asks for what is not here), MEMORY;
     * ARGUMENT for the options. */
    gumbel_status (*build)(const gb_config *config, const gb_model_options *options, gb_builder *builder,
                           gb_weights *weights, gumbel_error *error);

    /* Builds the graph of its draft head, likewise; one that has what build has under the same names. NULL:
     * the model has none. Errors: build's; ARGUMENT where the checkpoint lacks it, where an assistant is
     * given to a model that has none, and where it is not for this model. */
    gumbel_status (*build_head)(const gb_config *config, const gb_model_options *options, gb_builder *builder,
                                gb_weights *weights, gumbel_error *error);
} gb_model;

/* The model that config.json (its root) is of. Errors: UNSUPPORTED naming the model_type found and those that
 * are known, or a scaling of rotary embedding beside its text_config; ARGUMENT: it is an assistant. */
gumbel_status gb_model_find(const gb_config *config, const gb_model **model, gumbel_error *error);

/* Keeps the first layers only: sets *layer_count to what was asked, if anything was. Errors: ARGUMENT. */
gumbel_status gb_keep_layers(uint32_t asked, int64_t *layer_count, gumbel_error *error);

/* Where a text model's tensors and an untied head stand in the tree of names. */
typedef struct gb_tensor_place {
    const char *text, *head; /* prefixes */
} gb_tensor_place;

/* Looks for the embedding table of that name (NULL: embed_tokens.weight); is_wrapped says where it usually
 * is. */
gb_tensor_place gb_find_tensors(const gb_weights *weights, const char *table, bool is_wrapped);

/* What every text model's graph begins and ends with. */
typedef struct gb_text_model {
    int64_t vocab_size;
    int64_t max_positions; /* that the model knows */
    int64_t window;        /* of its sliding layers; 0: none */
    bool is_wrapped;       /* config.json has a text_config, which says where tensors usually are */
    const char *table;     /* what the embedding's table is called; NULL: embed_tokens.weight */
} gb_text_model;

typedef struct gb_text_graph {
    gb_scope scope; /* of the text model's tensors */
    gb_scope head;  /* of an untied head */
    gb_context context;
} gb_text_graph;

/* Chooses the context, finds where the tensors are named from, and sets vocab_size, max_context and
 * prefill_chunk in the builder's metadata. Errors: ARGUMENT for a context that is larger than the model's. */
gumbel_status gb_begin_text_graph(const gb_text_model *model, const gb_model_options *options,
                                  gb_builder *builder, gb_weights *weights, gb_text_graph *graph,
                                  gumbel_error *error);

/* Ends the graph in the logits f32[B, V], or the sampler after them. Errors: those of the builder. */
gumbel_status gb_end_text_graph(const gb_text_graph *graph, gb_ref logits, const gb_model_options *options,
                                gumbel_error *error);

extern const gb_model gb_gemma3, gb_gemma4, gb_gemma4_unified, gb_llama, gb_mistral, gb_ministral3, gb_qwen2,
    gb_qwen3, gb_qwen3_moe, gb_qwen3_5, gb_qwen3_5_moe, gb_qwen3_next, gb_smollm3, gb_granite,
    gb_granite_hybrid, gb_phi3, gb_gpt_oss, gb_muse_glimmer, gb_nemotron_h, gb_lfm2, gb_lfm2_moe, gb_olmo2,
    gb_olmo3;

#endif
