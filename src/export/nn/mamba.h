/* SPDX-License-Identifier: Apache-2.0
 *
 * A state space layer with a memory of fixed size: a causal convolution mixes each channel with the last few
 * tokens; a memory fades, takes in what the token writes and is read. (Dao and Gu, "Transformers are SSMs",
 * 2024)
 */
#ifndef GUMBEL_EXPORT_NN_MAMBA_H
#define GUMBEL_EXPORT_NN_MAMBA_H

#include "export/nn/graph.h"

typedef struct gb_mamba {
    int64_t heads, head_dim;
    int64_t groups;     /* of heads, which share what is written to and read from; divides heads */
    int64_t state_size; /* of the memory's rows */
    int64_t conv_width; /* tokens, the current one included */
    bool has_conv_bias;
    double epsilon; /* of the norm, which is of each group's values by themselves */
} gb_mamba;

/* x f32[N, hidden] -> f32[N, hidden], or f32[B, hidden] with rows_only: only the rows whose next token is
 * wanted go on once the memory has seen all. Weights of the scope: in_proj, conv1d, A_log, D, dt_bias, norm
 * and out_proj. The states NAME.conv and NAME.memory are float32. */
gb_ref gb_mamba_mixer(const gb_scope *scope, const gb_mamba *mamba, const char *name, gb_ref x,
                      bool rows_only);

#endif
