/* SPDX-License-Identifier: Apache-2.0
 *
 * An assistant of Gemma 4 guesses the token after the next, from the embedding of a token and the hidden
 * state before it, behind the last norm, both of the model's width:
 *
 *     x = pre_projection [embedding, hidden]
 *     y = norm(layers(x))
 *     logits = table y, hidden state = post_projection y
 *
 * Its layers are Gemma 4's without keys: they attend to those of the model's last layer of their kind that
 * has its own, and all guesses of a draft stand at the position behind the last of those keys. The
 * checkpoint's masked_embedding is a short cut to some of these logits, which are all computed here.
 */
#include "export/models/gemma4_assistant.h"

#include "export/models/gemma4_layers.h"
#include "export/nn/hidden.h"
#include "export/nn/layers.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char PREFIX[] = "assistant.";

/* ---- Whether they fit ---------------------------------------------------------------------------------- */

/* The index of the model's layer whose keys layers of that kind attend to; -1: there is none. */
static int64_t layer_with_keys(const gb_gemma4_config *target, gb_gemma4_kind kind) {
    int64_t at = target->layer_count - 1;
    while (at >= 0 && (target->layers[at].kind != kind || target->layers[at].shares_keys))
        at--;
    return at;
}

static void check_equal(const gb_config *config, const char *key, int64_t found, int64_t expected,
                        const char *of) {
    if (found != expected)
        gb_config_fail(config, key, GUMBEL_ERROR_ARGUMENT,
                       "%" PRId64 ", expected the %" PRId64 " of %s: this assistant is another model's",
                       found, expected, of);
}

static void check_kind(const gb_config *text, const gb_gemma4_config *target, const gb_gemma4_config *own,
                       gb_gemma4_kind kind) {
    const gb_gemma4_layer *layer = gb_gemma4_find_layer(own, kind);
    const int64_t at = layer_with_keys(target, kind);
    const bool is_global = kind == GB_GEMMA4_FULL && !gb_config_has(text, "per_layer_config");
    if (!layer)
        return;
    if (at < 0) {
        gb_config_fail(text, "layer_types", GUMBEL_ERROR_ARGUMENT,
                       "the assistant has layers of %s, but the model's %" PRId64
                       " layers have none with keys",
                       gb_gemma4_kind_name(kind), target->layer_count);
        return;
    }
    check_equal(text, is_global ? "global_head_dim" : "head_dim", layer->head_dim,
                target->layers[at].head_dim, "the model's layers of that kind");
    const char *global = "num_global_key_value_heads";
    check_equal(text, is_global && gb_config_has(text, global) ? global : "num_key_value_heads",
                layer->kv_heads, target->layers[at].kv_heads, "the model's layers of that kind");
}

static gumbel_status check_type(const gb_config *root, gumbel_error *error) {
    const char *type = gb_config_string(root, "model_type", "");
    if (strcmp(type, "gemma4_assistant") != 0 && strcmp(type, "gemma4_unified_assistant") != 0)
        gb_config_fail(root, "model_type", GUMBEL_ERROR_ARGUMENT,
                       "\"%s\", expected \"gemma4_assistant\" or \"gemma4_unified_assistant\"", type);
    return gb_config_status(root->file, error);
}

static gumbel_status check_assistant(const gb_config *root, const gb_gemma4_config *target,
                                     const gb_gemma4_config *own, gumbel_error *error) {
    const gb_config text = gb_config_child(root, "text_config");
    check_equal(root, "backbone_hidden_size", own->backbone_hidden_size, target->hidden_size,
                "the model's hidden_size");
    check_equal(&text, "vocab_size", own->vocab_size, target->vocab_size, "the model's vocab_size");
    check_kind(&text, target, own, GB_GEMMA4_SLIDING);
    check_kind(&text, target, own, GB_GEMMA4_FULL);
    if (gb_gemma4_find_layer(own, GB_GEMMA4_SLIDING))
        check_equal(&text, "sliding_window", own->sliding_window, target->sliding_window,
                    "the model's sliding_window");
    return gb_config_status(root->file, error);
}

/* ---- The graph ----------------------------------------------------------------------------------------- */

/* The two models that take part, and the places of their tensors. */
typedef struct pair {
    const gb_gemma4_config *target;
    gb_text_graph graph; /* its table is the model's */
    gb_scope root, text; /* of the assistant's tensors, and of its text model's */
    gb_gemma4_graph layers;
} pair;

static gb_cached_keys keys_of(const pair *both, gb_gemma4_kind kind) {
    const gb_gemma4_config *target = both->target;
    const int64_t at = layer_with_keys(target, kind);
    const gb_gemma4_layer *layer = &target->layers[at];
    char name[32];
    snprintf(name, sizeof name, "layers.%" PRId64, at);
    return gb_keys_of_program(&both->root, &both->layers.context, name, layer->kv_heads, layer->head_dim,
                              kind == GB_GEMMA4_FULL ? 0 : target->sliding_window);
}

static void begin_layers(pair *both, const gb_gemma4_config *own) {
    both->layers =
        (gb_gemma4_graph){.config = own, .context = both->graph.context, .layer_inputs = GB_NO_VALUE};
    for (int kind = 0; kind < GB_GEMMA4_KINDS; kind++) {
        both->layers.rotary[kind] = gb_gemma4_rotary(&both->root, PREFIX, own, (gb_gemma4_kind)kind);
        if (gb_gemma4_find_layer(own, (gb_gemma4_kind)kind))
            both->layers.keys[kind] = keys_of(both, (gb_gemma4_kind)kind);
    }
}

/* The embedding is the model's, as that takes it in. */
static gb_ref embed(const pair *both) {
    const gb_gemma4_config *target = both->target;
    const gb_scope *scope = &both->graph.scope;
    gb_ref tokens = gb_build_input(scope->builder, GB_ROLE_TOKENS);
    gb_ref table = gb_token_table(scope, &both->graph.head, target->vocab_size, target->hidden_size,
                                  target->has_tied_head);
    return gb_embedding(scope, table, tokens, sqrt((double)target->hidden_size));
}

static gb_ref own_logits(const pair *both, gb_ref x) {
    const gb_gemma4_config *own = both->layers.config;
    gb_ref table = own->has_tied_head
                       ? gb_token_table(&both->text, &both->root, own->vocab_size, own->hidden_size, true)
                       : GB_NO_VALUE;
    return gb_head(&both->text, &both->root, x, table, own->vocab_size, own->has_tied_head);
}

/* A token stands at its own position, and the hidden state before it at the one before. Behind its guess the
 * assistant guesses from its own hidden state, kept in the place of the model's. */
static gb_ref forward(pair *both) {
    const gb_gemma4_config *own = both->layers.config;
    const int64_t width = both->target->hidden_size;
    gb_ref hidden = gb_hidden_rows(&both->root, &both->layers.context, width);
    gb_ref before = gb_load_hidden(&both->root, hidden, 1);
    gb_ref x = gb_node2(&both->root, GB_OP_CONCATENATE, embed(both), before);
    x = gb_linear(&both->root, "pre_projection.weight", x, own->hidden_size);
    for (int64_t i = 0; i < own->layer_count; i++) {
        gb_scope layer = gb_scope_in(&both->text, "layers.%" PRId64 ".", i);
        x = gb_gemma4_decoder_layer(&both->layers, i, &layer, x, false);
    }
    x = gb_rms_norm(&both->text, "norm.weight", x, own->rms_norm_eps);
    gb_keep_hidden(&both->root, gb_linear(&both->root, "post_projection.weight", x, width), hidden, 0);
    return own_logits(both, gb_gather_rows(&both->root, x));
}

static gumbel_status build(const gb_gemma4_config *target, const gb_gemma4_config *own,
                           const gb_model_options *options, gb_builder *builder, gb_weights *weights,
                           gumbel_error *error) {
    const gb_text_model text = gb_gemma4_text_model(target);
    const gb_scope none = {.builder = builder, .weights = weights};
    pair both = {.target = target, .root = gb_scope_in(&none, "%s", PREFIX)};
    both.text = gb_scope_in(&both.root, "model.");
    GB_TRY(gb_begin_text_graph(&text, options, builder, weights, &both.graph, error));
    begin_layers(&both, own);
    return gb_end_text_graph(&both.graph, forward(&both), options, error);
}

gumbel_status gb_gemma4_build_assistant(const gb_gemma4_config *target, const gb_model_options *options,
                                        gb_builder *builder, gb_weights *weights, gumbel_error *error) {
    gb_gemma4_config own;
    GB_TRY(check_type(options->assistant, error));
    gumbel_status status = gb_gemma4_config_read(options->assistant, &own, error);
    if (status == GUMBEL_OK)
        status = check_assistant(options->assistant, target, &own, error);
    if (status == GUMBEL_OK)
        status = build(target, &own, options, builder, weights, error);
    gb_gemma4_config_free(&own);
    return status;
}
