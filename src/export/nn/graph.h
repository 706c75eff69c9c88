/* SPDX-License-Identifier: Apache-2.0
 *
 * What the graph-building blocks of this directory work on: a program builder, the weights that feed its
 * constants, and the place in the checkpoint's tree of names. Errors are sticky in the builder.
 */
#ifndef GUMBEL_EXPORT_NN_GRAPH_H
#define GUMBEL_EXPORT_NN_GRAPH_H

#include "export/weights.h"
#include "program/builder.h"

enum { GB_SCOPE_NAME = 256 };

/* Tensors named through a scope have its prefix before their name. Copied by value. */
typedef struct gb_scope {
    gb_builder *builder;
    gb_weights *weights;
    char prefix[GB_SCOPE_NAME]; /* "model.layers.3." */
} gb_scope;

/* The scope of prefix followed by the formatted text. */
gb_scope gb_scope_in(const gb_scope *scope, const char *format, ...) GB_PRINTF(2, 3);

/* A weight by name, of that shape; uniform is what it is drawn from when weights are random. The constant has
 * the tensor's own name and dtype. */
gb_ref gb_weight(const gb_scope *scope, const char *name, int32_t rank, const int64_t *dims,
                 gb_uniform uniform);

/* A vector of gains [size] (norm weights, scales). */
gb_ref gb_gain(const gb_scope *scope, const char *name, int64_t size);

/* A matrix [outputs, inputs]. The constant has the tensor's own name, and the format that the recipe gives
 * it.
 */
gb_ref gb_matrix(const gb_scope *scope, const char *name, int64_t outputs, int64_t inputs);

/* The same for a gate, such as a router: few results that decide over others, of inputs that are not rounded
 * to bfloat16. */
gb_ref gb_gate_matrix(const gb_scope *scope, const char *name, int64_t outputs, int64_t inputs);

/* The same for an embedding's table [rows, columns]. */
gb_ref gb_table(const gb_scope *scope, const char *name, int64_t rows, int64_t columns);

/* The same for a table that is the head, too: stored as the recipe says of the head, "lm_head.weight". */
gb_ref gb_tied_table(const gb_scope *scope, const char *name, int64_t rows, int64_t columns);

/* Rows of a table times factor, f32[N, columns]; where they are stored rotated they are turned back. */
gb_ref gb_embedding(const gb_scope *scope, gb_ref table, gb_ref tokens, double factor);

enum { GB_ROW_RUNS = 3 };

/* Where a checkpoint has several matrices in one tensor [rows, inputs]: a part's first row or, where its rows
 * do not stand together, its runs of rows in their order. */
typedef struct gb_fused_rows {
    const char *tensor; /* relative to the scope; NULL: each has one of its own */
    int64_t rows, first;
    gb_row_runs runs[GB_ROW_RUNS];
    size_t run_count; /* 0: they stand together */
} gb_fused_rows;

/* A matrix [outputs, inputs] called name that is a part of a larger tensor where the checkpoint has that. The
 * recipe goes by name. Random weights are drawn as the larger tensor, but for runs. */
gb_ref gb_matrix_of(const gb_scope *scope, const char *name, const gb_fused_rows *fused, int64_t outputs,
                    int64_t inputs);

/* Whether the checkpoint has a tensor or matrix of that name in the scope; random weights have every name. */
bool gb_scope_has(const gb_scope *scope, const char *name);

/* A matrix for each expert, dims [experts, outputs, inputs]: the constant `name` made from the tensor first
 * or, where second is given, from two tensors of half the outputs each, those of first above those of second.
 * GB_NO_VALUE, without an error in the builder, where two are stored in different formats. */
gb_ref gb_expert_matrices(const gb_scope *scope, const char *name, const char *first, const char *second,
                          const int64_t dims[3]);

/* x weight^T, or of each token with the matrices of the experts chosen for it: a linear or expert_linear node
 * whose input is rotated and rounded to 8 bits as the recipe says for that weight. */
gb_ref gb_multiply_matrix(const gb_scope *scope, gb_ref x, gb_ref weight);
gb_ref gb_multiply_experts(const gb_scope *scope, gb_ref x, gb_ref weight, gb_ref chosen);

/* A float32 constant `name` [rows, columns] of every other number of tensor [rows, 2 columns], of whose rows
 * each has the numbers of two constants in turns; is_second: from the second one on. */
gb_ref gb_weight_in_turns(const gb_scope *scope, const char *name, const char *tensor, bool is_second,
                          const int64_t dims[2]);

/* A float32 state called NAME and suffix that a sequence's tokens change in turn, such as a memory. */
gb_ref gb_recurrent_state(const gb_scope *scope, const char *name, const char *suffix, int32_t rank,
                          const int64_t *dims);

/* A float32 constant [count] of computed values; name is not prefixed. */
gb_ref gb_values(const gb_scope *scope, const char *name, const float *values, size_t count);

/* The same as rows of one number: a table [count, 1] for an embedding. */
gb_ref gb_value_rows(const gb_scope *scope, const char *name, const float *values, size_t count);

/* A node without attributes; missing operands are GB_NO_VALUE. */
gb_ref gb_node1(const gb_scope *scope, gb_op op, gb_ref a);
gb_ref gb_node2(const gb_scope *scope, gb_op op, gb_ref a, gb_ref b);
gb_ref gb_node3(const gb_scope *scope, gb_op op, gb_ref a, gb_ref b, gb_ref c);

/* A node of up to two operands with one attribute. */
gb_ref gb_node_with(const gb_scope *scope, gb_op op, gb_ref a, gb_ref b, gb_attribute attribute);

#endif
