/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of every program: from a row of logits to the next token. docs/sampling.md states what the chain of
 * nodes computes and why it has this order.
 */
#ifndef GUMBEL_EXPORT_NN_SAMPLING_H
#define GUMBEL_EXPORT_NN_SAMPLING_H

#include "export/nn/graph.h"

typedef enum gb_sampler_kind {
    GB_SAMPLER_FULL = 0,    /* every setting of docs/sampling.md */
    GB_SAMPLER_MINIMAL = 1, /* temperature, top-k and top-p */
    GB_SAMPLER_NONE = 2     /* the program ends in its logits */
} gb_sampler_kind;

typedef struct gb_sampler_options {
    gb_sampler_kind kind;
    uint32_t max_top_logprobs; /* FULL: the likeliest tokens whose log-probability can be had, at most all; 0:
                                  none */
} gb_sampler_options;

/* Entries of a row's list of biases: more than anybody bans, and a few KiB of input per row. */
enum { GB_BIAS_ENTRIES = 256 };

/* Declares the program's outputs for a row of logits f32[B, V]: the logits themselves and, unless the kind is
 * NONE, the next token: greedy where the row's temperature is 0, otherwise drawn by the Gumbel-max trick
 * after temperature, top-k, top-p and min-p, in any case after biases and penalties. When no row samples,
 * only the argmax is taken. FULL has log-probabilities too, and a state of max_context tokens. Sets
 * use_sampling, max_bias and max_top_logprobs in the metadata, where vocab_size must be set. */
void gb_finish_with_logits(const gb_scope *scope, gb_ref logits, const gb_sampler_options *options,
                           int64_t max_context);

#endif
