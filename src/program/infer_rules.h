/* SPDX-License-Identifier: Apache-2.0
 *
 * What the signature of an op cannot say: results computed from attributes, and limits on sizes and
 * attributes. A function for each op that needs one, beside infer.c, which has done all else by then.
 */
#ifndef GUMBEL_PROGRAM_INFER_RULES_H
#define GUMBEL_PROGRAM_INFER_RULES_H

#include "program/infer.h"

/* The widest row of logits: a float32 counts its columns exactly and 40-bit masses fit in 64 bits. */
enum { GB_MAX_VOCABULARY = (1 << 23) - 1 };

/* Rows of logits have at most GB_MAX_VOCABULARY columns. */
gumbel_status gb_check_vocabulary(const gb_op_info *op, int64_t columns, gumbel_error *error);

/* operands, node's attributes and results match the signature of op. Completes results and checks them.
 * Errors: GUMBEL_ERROR_FORMAT. */
gumbel_status gb_infer_rule(const gb_op_info *op, const gb_operand_type *operands, const gb_node *node,
                            gb_type *results, uint32_t result_count, gumbel_error *error);

#endif
