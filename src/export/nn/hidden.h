/* SPDX-License-Identifier: Apache-2.0
 *
 * The hidden states that a model keeps for its draft head, one row a position: what the head of tokens takes
 * in.
 */
#ifndef GUMBEL_EXPORT_NN_HIDDEN_H
#define GUMBEL_EXPORT_NN_HIDDEN_H

#include "export/nn/attention.h"

/* The state "hidden": rows of that width in bfloat16. */
gb_ref gb_hidden_rows(const gb_scope *scope, const gb_context *context, int64_t width);

/* x f32[N, K], kept there as the rows of the tokens' positions, or so many behind them: 0 or 1. */
gb_ref gb_keep_hidden(const gb_scope *scope, gb_ref x, gb_ref hidden, int64_t start);

/* The rows of the tokens' positions, or so many before them (0 or 1), f32[N, K]. */
gb_ref gb_load_hidden(const gb_scope *scope, gb_ref hidden, int64_t before);

#endif
