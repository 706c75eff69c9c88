/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape rules: from an op's operands and attributes to its result types. The builder uses it to make values,
 * the verifier to check them, so the two cannot disagree.
 */
#ifndef GUMBEL_PROGRAM_INFER_H
#define GUMBEL_PROGRAM_INFER_H

#include "program/program.h"

/* One operand as a rule sees it. */
typedef struct gb_operand_type {
    gb_value_kind kind;
    gb_type type;
    const gb_format *format; /* of a quantized constant; else NULL */
} gb_operand_type;

static inline gb_operand_type gb_operand_type_of(const gb_value *value, const gb_constant *constants) {
    const bool is_quantized = value->kind == GB_VALUE_CONSTANT && value->type.dtype == GB_QUANTIZED;
    return (gb_operand_type){value->kind, value->type, is_quantized ? &constants[value->index].format : NULL};
}

/* Checks operands (count, kinds, dtypes, shapes) and attributes (present, known, typed, in range) against the
 * op's line in ops.def and writes the result types. `if` has no rule here: its results are its regions'
 * yields. Errors: GUMBEL_ERROR_FORMAT naming op, operand or attribute, what was found and what was expected.
 */
gumbel_status gb_infer(gb_op op, const gb_operand_type *operands, uint32_t operand_count,
                       const gb_attribute *attributes, uint32_t attribute_count, gb_type *results,
                       uint32_t *result_count, gumbel_error *error);

/* Name of an attribute key, or "?"; and the type that the op's line gives it (0 when the op lacks it). */
const char *gb_attribute_name(gb_attribute_key key);
gb_attribute_type gb_op_attribute_type(gb_op op, gb_attribute_key key);

/* The name that the op's signature gives operand number index, or NULL past the end. *length is set. */
const char *gb_op_operand_name(gb_op op, uint32_t index, size_t *length);

#endif
