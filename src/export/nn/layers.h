/* SPDX-License-Identifier: Apache-2.0
 *
 * The small blocks that every decoder is made of. x is float32 [M, K] throughout; names are relative to the
 * scope.
 */
#ifndef GUMBEL_EXPORT_NN_LAYERS_H
#define GUMBEL_EXPORT_NN_LAYERS_H

#include "export/nn/graph.h"

/* x W^T with W = name [outputs, K]: f32[M, outputs]. */
gb_ref gb_linear(const gb_scope *scope, const char *name, gb_ref x, int64_t outputs);

/* The same as heads: f32[M, heads, head_dim]. */
gb_ref gb_linear_heads(const gb_scope *scope, const char *name, gb_ref x, int64_t heads, int64_t head_dim);

/* x W^T with a gate's weight (gb_gate_matrix). */
gb_ref gb_gate(const gb_scope *scope, const char *name, gb_ref x, int64_t outputs);

/* The same with a matrix that may be a part of a larger tensor. */
gb_ref gb_linear_of(const gb_scope *scope, const char *name, const gb_fused_rows *fused, gb_ref x,
                    int64_t outputs);

/* x + name [K], the same for every row. */
gb_ref gb_add_bias(const gb_scope *scope, const char *name, gb_ref x);

/* The embedding's table of the scope, "embed_tokens.weight" [vocab_size, hidden_size]; where the head is tied
 * it is stored as the recipe says of that. */
gb_ref gb_token_table(const gb_scope *scope, const gb_scope *head, int64_t vocab_size, int64_t hidden_size,
                      bool is_tied);

/* Logits [M, vocab_size] of x: with that table where the head is tied to it, else with lm_head.weight of the
 * scope head. A tied head that the checkpoint has quantized by itself is that one. */
gb_ref gb_head(const gb_scope *scope, const gb_scope *head, gb_ref x, gb_ref table, int64_t vocab_size,
               bool is_tied);

/* x / rms(x) * w with w = name [size]; size is x's last dim. (RMSNorm: Zhang and Sennrich, 2019) */
gb_ref gb_rms_norm(const gb_scope *scope, const char *name, gb_ref x, double epsilon);

/* The same times scale. */
gb_ref gb_rms_norm_times(const gb_scope *scope, const char *name, gb_ref x, double epsilon, double scale);

/* x / rms(x) * (1 + w): the weight is kept as its difference from 1. */
gb_ref gb_rms_norm_from_one(const gb_scope *scope, const char *name, gb_ref x, double epsilon);

/* x / rms(x), without a weight. */
gb_ref gb_rms_normalize(const gb_scope *scope, gb_ref x, double epsilon);

/* f32[M, K] -> f32[M, heads, K / heads]. */
gb_ref gb_split_heads(const gb_scope *scope, gb_ref x, int64_t heads);

/* Elements start .. start + count - 1 of x's last dim. */
gb_ref gb_slice(const gb_scope *scope, gb_ref x, int64_t start, int64_t count);

/* The rows of x f32[N, K] whose next token is wanted: f32[B, K]. */
gb_ref gb_gather_rows(const gb_scope *scope, gb_ref x);

/* down(gelu(gate(x)) * up(x)) with the weights gate_proj, up_proj and down_proj of the scope; the tanh form
 * of GELU. inner is the width between. (GEGLU: Shazeer, "GLU variants improve transformer", 2020) */
gb_ref gb_geglu_mlp(const gb_scope *scope, gb_ref x, int64_t inner);

/* The same with SiLU in GELU's place. (SwiGLU, ibid.) */
gb_ref gb_swiglu_mlp(const gb_scope *scope, gb_ref x, int64_t inner);

/* Tensors of the scope that hold an MLP's matrices; NULL: those of the matrix's own name. */
typedef struct gb_mlp_tensors {
    const char *gate_up; /* the gate above up */
    const char *down;
} gb_mlp_tensors;

/* A SwiGLU whose matrices are in these tensors, or, where the checkpoint lacks one, in those of their own
 * names. */
gb_ref gb_fused_swiglu_mlp(const gb_scope *scope, const gb_mlp_tensors *tensors, gb_ref x, int64_t inner);

#endif
