/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear attention with a memory of fixed size: a causal convolution mixes each channel of query, key and
 * value with the last few tokens; the gated delta rule forgets, corrects what the key recalls, and reads with
 * the query; a gated norm follows. (Yang, Kautz and Hatamizadeh, "Gated delta networks", 2024)
 */
#ifndef GUMBEL_EXPORT_NN_DELTA_NET_H
#define GUMBEL_EXPORT_NN_DELTA_NET_H

#include "export/nn/graph.h"

typedef struct gb_delta_net {
    int64_t key_heads, key_dim;
    int64_t value_heads, value_dim; /* value_heads is a multiple of key_heads */
    int64_t conv_width;             /* tokens, the current one included */
    double epsilon;                 /* of the norm */
    bool is_tiled;                  /* value head h has key head h mod key_heads, not one for each few */
    bool is_interleaved; /* the checkpoint may have one tensor for qkv and z, and one for b and a */
} gb_delta_net;

/* x f32[N, hidden] -> f32[N, hidden], or f32[B, hidden] with rows_only: only the rows whose next token is
 * wanted go on once the memory has seen all. Weights of the scope: in_proj_qkv, in_proj_z, in_proj_a,
 * in_proj_b, conv1d, A_log, dt_bias, norm and out_proj; interleaved are in_proj_qkvz and in_proj_ba, in which
 * the rows of a key head and of its value heads stand together. The states NAME.conv and NAME.memory are
 * float32. */
gb_ref gb_delta_net_mixer(const gb_scope *scope, const gb_delta_net *net, const char *name, gb_ref x,
                          bool rows_only);

#endif
