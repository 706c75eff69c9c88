/* SPDX-License-Identifier: Apache-2.0
 *
 * The signature and attribute texts of ops.def, taken apart. Only program/ uses this: others see the results
 * of infer.h.
 */
#ifndef GUMBEL_PROGRAM_SIGNATURE_H
#define GUMBEL_PROGRAM_SIGNATURE_H

#include "program/program.h"

typedef enum gb_pattern_kind {
    GB_PATTERN_DTYPE,  /* one dtype */
    GB_PATTERN_ANY,    /* T: any dtype, the same wherever T stands */
    GB_PATTERN_WEIGHT, /* a constant of a float dtype */
    GB_PATTERN_MATRIX, /* a constant of a float dtype or quantized */
    GB_PATTERN_CACHE,  /* a state of f32, bf16, q8 or q4 */
    GB_PATTERN_STATE,  /* a state of f32 */
    GB_PATTERN_I32_STATE,
    GB_PATTERN_RULE /* a result whose type a function of infer.c makes */
} gb_pattern_kind;

/* In a pattern a dim is a number, GB_DIM_N, GB_DIM_B, minus a capital letter, or this, which stands for any
 * dims and can only come first. */
enum { GB_DIM_ANY_DIMS = 0 };

/* One operand or result of a signature. */
typedef struct gb_type_pattern {
    const char *name; /* not terminated */
    size_t name_length;
    gb_pattern_kind kind;
    gb_dtype dtype; /* of GB_PATTERN_DTYPE */
    bool optional;
    int32_t dim_count;
    int64_t dims[GB_MAX_RANK];
} gb_type_pattern;

typedef struct gb_signature {
    gb_type_pattern operands[GB_MAX_OPERANDS], results[GB_MAX_RESULTS];
    uint32_t operand_count, result_count;
} gb_signature;

/* The op's signature. False when its text is malformed, which the tests rule out for every op. */
bool gb_signature_parse(const gb_op_info *op, gb_signature *signature);

/* One attribute of an op's line. */
typedef struct gb_attribute_pattern {
    gb_attribute_key key;
    gb_attribute_type type;
    bool has_default;
    double default_value; /* the defaults in use are small integers, which a double holds */
} gb_attribute_pattern;

/* The attributes of an op's line into patterns; returns their number. */
uint32_t gb_attribute_patterns(const gb_op_info *op, gb_attribute_pattern patterns[GB_MAX_ATTRIBUTES]);

#endif
