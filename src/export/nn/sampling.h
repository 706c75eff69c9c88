/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of every program: from a row of logits to the next token. docs/sampling.md states what the chain of
 * nodes computes and why it has this order.
 */
#ifndef GUMBEL_EXPORT_NN_SAMPLING_H
#define GUMBEL_EXPORT_NN_SAMPLING_H

#include "export/nn/graph.h"

/* The next token of each row of logits f32[B, V]: greedy where the row's temperature is 0, otherwise drawn by
 * the Gumbel-max trick after temperature, top-k and top-p. When no row samples, only the argmax is taken.
 * Returns i32[B]. */
gb_ref gb_sample(const gb_scope *scope, gb_ref logits);

/* Declares the program's outputs: the logits, and when use_sampling the next token. Sets use_sampling in the
 * metadata. */
void gb_finish_with_logits(const gb_scope *scope, gb_ref logits, bool use_sampling);

#endif
