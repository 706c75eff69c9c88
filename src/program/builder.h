/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a graph node by node. Errors are sticky: after the first one every call returns GB_NO_VALUE (or does
 * nothing) and gb_builder_finish reports it, so that graph code reads as equations.
 */
#ifndef GUMBEL_PROGRAM_BUILDER_H
#define GUMBEL_PROGRAM_BUILDER_H

#include "program/program.h"

typedef struct gb_builder gb_builder;

/* NULL when there is no memory. */
gb_builder *gb_builder_create(void);
void gb_builder_destroy(gb_builder *builder);

/* The first error so far, GUMBEL_OK while there is none. */
gumbel_status gb_builder_status(const gb_builder *builder, gumbel_error *error);

/* Makes an error of the caller's the builder's own, if it has none yet. */
void gb_builder_fail(gb_builder *builder, gumbel_status status, const char *format, ...) GB_PRINTF(3, 4);

/* The input of that role; asking again gives the same value. The metadata that its type depends on (max_bias)
 * must be set before. */
gb_ref gb_build_input(gb_builder *builder, gb_role role);

/* A constant; name is copied and must be new. Its bytes are given to the writer. dims has rank sizes. */
gb_ref gb_build_constant(gb_builder *builder, const char *name, gb_dtype dtype, int32_t rank,
                         const int64_t *dims);

/* A constant of rank 2 or more in a format that is not dense. Errors: ARGUMENT naming the constant where the
 * format does not fit its rows. */
gb_ref gb_build_quantized(gb_builder *builder, const char *name, const gb_format *format, int32_t rank,
                          const int64_t *dims);

/* A per-slot state; name is copied and must be new. */
gb_ref gb_build_state(gb_builder *builder, const char *name, gb_state_kind kind, gb_dtype dtype, int32_t rank,
                      const int64_t *dims, uint32_t window);

/* A node in the current region; returns its (first) result. operands are copied; trailing GB_NO_VALUE
 * operands are left out when optional. */
gb_ref gb_build_op(gb_builder *builder, gb_op op, const gb_ref *operands, uint32_t operand_count,
                   const gb_attribute *attributes, uint32_t attribute_count);

/* The same for an op with result_count results, which are written into results. */
void gb_build_op_results(gb_builder *builder, gb_op op, const gb_ref *operands, uint32_t operand_count,
                         const gb_attribute *attributes, uint32_t attribute_count, gb_ref *results,
                         uint32_t result_count);

/* The type of a value of this builder. */
gb_type gb_build_type(const gb_builder *builder, gb_ref value);

/* The number of the constant that a value is; false where it is none. */
bool gb_build_constant_index(const gb_builder *builder, gb_ref value, uint32_t *index);

/* An `if` with one result, at most GB_MAX_REGION_DEPTH within one another: begin opens the first region, else
 * the second; each yields one value of the same type. gb_build_if_end returns the result in the enclosing
 * region. */
void gb_build_if_begin(gb_builder *builder, gb_ref condition);
void gb_build_if_else(gb_builder *builder, gb_ref yield);
gb_ref gb_build_if_end(gb_builder *builder, gb_ref yield);

void gb_build_output(gb_builder *builder, gb_role role, gb_ref value);

/* Where metadata is set. String and token-list fields must outlive gb_builder_finish, which copies them.
 * Required fields count as given, strings and lists where they are not empty; an optional number is given by
 * setting its has_ field. */
gb_metadata *gb_builder_metadata(gb_builder *builder);

/* Over how many ranks the program is sharded (shard/shard.h). */
void gb_builder_set_ranks(gb_builder *builder, uint32_t ranks);

/* Ends the graph (verifying it) and gives the program, without constant data; free it with
 * gb_program_destroy. The builder can then only be destroyed. Errors: the builder's first one, or what the
 * verifier finds. */
gumbel_status gb_builder_finish(gb_builder *builder, gb_program **program, gumbel_error *error);

#endif
