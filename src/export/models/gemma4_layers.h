/* SPDX-License-Identifier: Apache-2.0
 *
 * The decoder layers of Gemma 4, which its assistants have too: theirs have no keys of their own.
 */
#ifndef GUMBEL_EXPORT_MODELS_GEMMA4_LAYERS_H
#define GUMBEL_EXPORT_MODELS_GEMMA4_LAYERS_H

#include "export/models/gemma4_config.h"
#include "export/models/model.h"
#include "export/nn/attention.h"
#include "export/nn/rotary.h"

/* What all layers of a graph have. */
typedef struct gb_gemma4_graph {
    const gb_gemma4_config *config;
    gb_context context;
    gb_rotary rotary[GB_GEMMA4_KINDS];
    gb_cached_keys keys[GB_GEMMA4_KINDS]; /* of the last layer of a kind; of an assistant: of its model's */
    gb_ref layer_inputs;                  /* f32[N, input_layers * input_size], or none */
} gb_gemma4_graph;

/* The first layer of a kind, or NULL. */
const gb_gemma4_layer *gb_gemma4_find_layer(const gb_gemma4_config *config, gb_gemma4_kind kind);

/* What the graph of a model begins with, and that of its assistant. */
gb_text_model gb_gemma4_text_model(const gb_gemma4_config *config);

/* The rotation of that kind's heads, with its frequencies in a constant called PREFIX and
 * rotary.sliding_attention; none where no layer is of that kind. */
gb_rotary gb_gemma4_rotary(const gb_scope *scope, const char *prefix, const gb_gemma4_config *config,
                           gb_gemma4_kind kind);

/* The layer of that index, whose tensors stand in the scope, on x f32[N, hidden_size]. With rows_only just
 * the rows whose next token is wanted go on after attention, and come out: f32[B, hidden_size]. */
gb_ref gb_gemma4_decoder_layer(gb_gemma4_graph *model, int64_t index, const gb_scope *scope, gb_ref x,
                               bool rows_only);

#endif
