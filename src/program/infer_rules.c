/* SPDX-License-Identifier: Apache-2.0 */
#include "program/infer_rules.h"

#include "base/memory.h"

static gumbel_status rms_norm(const gb_node *node, gumbel_error *error) {
    double epsilon = gb_node_float(node, GB_ATTRIBUTE_EPSILON);
    if (!(epsilon >= 0))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "rms_norm: epsilon = %g is negative", epsilon);
    return GUMBEL_OK;
}

/* 8-bit activations go with groups, which only quantized weights have. */
static gumbel_status linear(const gb_operand_type *operands, const gb_node *node, gumbel_error *error) {
    int64_t activation = gb_node_int(node, GB_ATTRIBUTE_ACTIVATION);
    if (activation > GB_ACTIVATION_INT8_PER_GROUP)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "linear: activation = %lld is not known to this version", (long long)activation);
    if (activation != GB_ACTIVATION_NONE && operands[1].type.dtype != GB_QUANTIZED)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "linear: activation = %lld, but its weight is not quantized", (long long)activation);
    return GUMBEL_OK;
}

static gumbel_status soft_cap(const gb_node *node, gumbel_error *error) {
    double cap = gb_node_float(node, GB_ATTRIBUTE_CAP);
    if (!((float)cap > 0))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "soft_cap: cap = %g is not above 0", cap);
    return GUMBEL_OK;
}

static gumbel_status split_heads(const gb_operand_type *operands, const gb_node *node, gb_type *result,
                                 gumbel_error *error) {
    const gb_shape *x = &operands[0].type.shape;
    int64_t heads = gb_node_int(node, GB_ATTRIBUTE_HEADS);
    if (heads < 1 || x->dims[1] % heads != 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "split_heads: heads = %lld does not divide rows of %lld",
                       (long long)heads, (long long)x->dims[1]);
    *result = (gb_type){GB_F32, {.rank = 3, .dims = {x->dims[0], heads, x->dims[1] / heads}}};
    return GUMBEL_OK;
}

/* The product may exceed a dim; the check of all results finds that. */
static void merge_heads(const gb_operand_type *operands, gb_type *result) {
    const gb_shape *x = &operands[0].type.shape;
    *result = (gb_type){GB_F32, {.rank = 2, .dims = {x->dims[0], x->dims[1] * x->dims[2]}}};
}

/* A pair is (i, i + pair_offset) for i < R; pairs must lie in the head and not overlap. */
static gumbel_status rope(const gb_operand_type *operands, const gb_node *node, gumbel_error *error) {
    int64_t length = operands[0].type.shape.dims[2];
    int64_t pairs = operands[2].type.shape.dims[0];
    int64_t offset = gb_node_int(node, GB_ATTRIBUTE_PAIR_OFFSET);
    if (operands[2].kind != GB_VALUE_CONSTANT)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "rope: operand frequencies is not a constant");
    if (offset < pairs || offset + pairs > length)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "rope: %lld pairs at pair_offset = %lld overlap or leave heads of %lld",
                       (long long)pairs, (long long)offset, (long long)length);
    return GUMBEL_OK;
}

static gumbel_status attention(const gb_operand_type *operands, gumbel_error *error) {
    int64_t heads = operands[0].type.shape.dims[1];
    int64_t key_heads = operands[1].type.shape.dims[1];
    if (heads % key_heads != 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "attention: %lld query heads are not a multiple of %lld key heads", (long long)heads,
                       (long long)key_heads);
    return GUMBEL_OK;
}

static gumbel_status random_bits(const gb_operand_type *operands, const gb_node *node, gb_type *result,
                                 gumbel_error *error) {
    int64_t count = gb_node_int(node, GB_ATTRIBUTE_COUNT);
    if (count < 1)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "random_bits: count = %lld is not above 0",
                       (long long)count);
    *result = (gb_type){GB_U32, {.rank = 2, .dims = {operands[0].type.shape.dims[0], count}}};
    return GUMBEL_OK;
}

/* Rows of logits end in at most GB_MAX_VOCABULARY columns. */
static gumbel_status vocabulary(const gb_op_info *op, const gb_shape *row, gumbel_error *error) {
    if (row->dims[1] > GB_MAX_VOCABULARY)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: rows of %lld, expected at most %d", op->name,
                       (long long)row->dims[1], (int)GB_MAX_VOCABULARY);
    return GUMBEL_OK;
}

static gumbel_status op_rule(const gb_op_info *op, const gb_operand_type *operands, const gb_node *node,
                             gb_type *results, gumbel_error *error) {
    switch (op->op) {
    case GB_OP_LINEAR:
        return linear(operands, node, error);
    case GB_OP_RMS_NORM:
        return rms_norm(node, error);
    case GB_OP_SPLIT_HEADS:
        return split_heads(operands, node, &results[0], error);
    case GB_OP_MERGE_HEADS:
        merge_heads(operands, &results[0]);
        return GUMBEL_OK;
    case GB_OP_ROPE:
        return rope(operands, node, error);
    case GB_OP_ATTENTION:
        return attention(operands, error);
    case GB_OP_SOFT_CAP:
        return soft_cap(node, error);
    case GB_OP_CANDIDATES:
    case GB_OP_APPLY_TEMPERATURE:
    case GB_OP_TOP_K_MASK:
    case GB_OP_TOP_P_MASK:
    case GB_OP_GUMBEL_NOISE:
    case GB_OP_ARGMAX:
        return vocabulary(op, &operands[0].type.shape, error);
    case GB_OP_RANDOM_BITS:
        GB_TRY(random_bits(operands, node, &results[0], error));
        return vocabulary(op, &results[0].shape, error);
    default:
        return GUMBEL_OK;
    }
}

/* A row of a result (its elements per token or row of the step) must have at most GB_MAX_DIM elements, so
 * that a backend may index within it by 32 bits. */
static bool row_is_bounded(const gb_type *type) {
    uint64_t elements;
    gb_shape row = type->shape;
    if (row.rank > 0 && row.dims[0] < 0)
        row.dims[0] = 1;
    return gb_type_valid(type) && gb_shape_elements(&row, &elements) && elements <= GB_MAX_DIM;
}

gumbel_status gb_infer_rule(const gb_op_info *op, const gb_operand_type *operands, const gb_node *node,
                            gb_type *results, gumbel_error *error) {
    GB_TRY(op_rule(op, operands, node, results, error));
    char text[GB_TYPE_TEXT];
    if (!row_is_bounded(&results[0]))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: a result %s is too large", op->name,
                       gb_type_text(&results[0], text));
    return GUMBEL_OK;
}
