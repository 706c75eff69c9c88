/* SPDX-License-Identifier: Apache-2.0
 *
 * Dims of an op's operands and results by the letters of its signature: those of one letter are cut alike.
 */
#ifndef GUMBEL_PROGRAM_SHARD_LETTERS_H
#define GUMBEL_PROGRAM_SHARD_LETTERS_H

#include "program/signature.h"

/* What stands for a dim of `...`: this and its number. */
enum { GB_LETTER_NONE = 0, GB_LETTER_ANY = 1 << 8 };

/* The letter of a dim of a value of that rank; NONE for a number, N or B, and of results that a rule makes
 * other than expert_linear's O. */
int32_t gb_letter_of(gb_op op, const gb_type_pattern *pattern, int32_t rank, int32_t dim);

/* The dim with that letter, or GB_WHOLE. */
int32_t gb_dim_of_letter(gb_op op, const gb_type_pattern *pattern, int32_t rank, int32_t letter);

/* Whether the op can be cut by dims of that letter (gb_op_traits.cuts). */
bool gb_op_cuts(gb_op op, int32_t letter);

#endif
