/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries that grow with their position, so that attention over a long context stays sharp ("attention
 * temperature tuning" of Llama 4).
 */
#ifndef GUMBEL_EXPORT_NN_QUERY_SCALE_H
#define GUMBEL_EXPORT_NN_QUERY_SCALE_H

#include "export/nn/graph.h"

/* For each token 1 + beta log(1 + floor(position / positions)), f32[N, 1] for scale_rows; GB_NO_VALUE where
 * that is 1 at each position of the context. The constant is called name. */
gb_ref gb_query_scale(const gb_scope *scope, const char *name, double beta, double positions,
                      int64_t max_context);

#endif
