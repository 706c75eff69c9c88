/* SPDX-License-Identifier: Apache-2.0 */
#include "program/infer_rules.h"

#include "base/memory.h"
#include "program/infer.h"

static gumbel_status norm(const gb_op_info *op, const gb_node *node, gumbel_error *error) {
    double epsilon = gb_node_float(node, GB_ATTRIBUTE_EPSILON);
    if (!(epsilon >= 0))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: epsilon = %g is negative", op->name, epsilon);
    return GUMBEL_OK;
}

static gumbel_status check_rotation(const gb_op_info *op, gb_attribute_key key, int64_t rotation,
                                    int64_t columns, gumbel_error *error) {
    if (rotation < 2 || rotation > GB_MAX_ROTATION || (rotation & (rotation - 1)) != 0 ||
        columns % rotation != 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "%s: %s = %lld, expected a power of two from 2 to %d that divides rows of %lld",
                       op->name, gb_attribute_name(key), (long long)rotation, (int)GB_MAX_ROTATION,
                       (long long)columns);
    return GUMBEL_OK;
}

static gumbel_status rotation_of(const gb_op_info *op, int64_t columns, const gb_node *node,
                                 gumbel_error *error) {
    int64_t rotation = gb_node_int(node, GB_ATTRIBUTE_ROTATION);
    if (rotation == 0)
        return GUMBEL_OK;
    if (gb_node_int(node, GB_ATTRIBUTE_ACTIVATION) != GB_ACTIVATION_INT8_PER_TOKEN)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: rotation = %lld without activation = %d", op->name,
                       (long long)rotation, (int)GB_ACTIVATION_INT8_PER_TOKEN);
    return check_rotation(op, GB_ATTRIBUTE_ROTATION, rotation, columns, error);
}

/* A table that is not quantized has no reason to be stored rotated. */
static gumbel_status embedding(const gb_op_info *op, const gb_operand_type *table, const gb_node *node,
                               gumbel_error *error) {
    const int64_t rotation = gb_node_int(node, GB_ATTRIBUTE_ROTATION);
    if (rotation == 0)
        return GUMBEL_OK;
    if (!table->format)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: rotation = %lld, but its table is not quantized",
                       op->name, (long long)rotation);
    return check_rotation(op, GB_ATTRIBUTE_ROTATION, rotation, table->type.shape.dims[1], error);
}

/* A sum of 8-bit products stays an integer where each weight is one, and fits where rows are not too long. */
static gumbel_status int8_per_token(const gb_op_info *op, const gb_operand_type *weight, int64_t columns,
                                    gumbel_error *error) {
    char text[GB_FORMAT_TEXT];
    if (!gb_format_is_integer(weight->format))
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "%s: activation = %d with a weight of %s, expected a progressive one or int8 row",
                       op->name, (int)GB_ACTIVATION_INT8_PER_TOKEN, gb_format_text(weight->format, text));
    if (columns > GB_MAX_INT32_INPUTS)
        return gb_fail(
            error, GUMBEL_ERROR_FORMAT,
            "%s: activation = %d with rows of %lld, expected at most %d: sums of int32 could overflow",
            op->name, (int)GB_ACTIVATION_INT8_PER_TOKEN, (long long)columns, (int)GB_MAX_INT32_INPUTS);
    return GUMBEL_OK;
}

/* 8-bit activations go with the scales that only quantized weights have: by group with those of floats. */
static gumbel_status activation_of(const gb_op_info *op, const gb_operand_type *weight, const gb_node *node,
                                   gumbel_error *error) {
    const int64_t activation = gb_node_int(node, GB_ATTRIBUTE_ACTIVATION);
    const int64_t columns = weight->type.shape.dims[weight->type.shape.rank - 1];
    if (activation > GB_ACTIVATION_BFLOAT16)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "%s: activation = %lld is not known to this version",
                       op->name, (long long)activation);
    if (activation == GB_ACTIVATION_BFLOAT16 && weight->type.dtype != GB_BF16)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: activation = %lld, but its weight is not bfloat16",
                       op->name, (long long)activation);
    if (gb_activation_is_int8(activation) && !weight->format)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: activation = %lld, but its weight is not quantized",
                       op->name, (long long)activation);
    if (activation == GB_ACTIVATION_INT8_PER_GROUP && weight->format->kind == GB_FORMAT_PROGRESSIVE)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "%s: activation = 1 with a progressive weight, expected 0 or 2", op->name);
    if (activation == GB_ACTIVATION_INT8_PER_TOKEN)
        GB_TRY(int8_per_token(op, weight, columns, error));
    return rotation_of(op, columns, node, error);
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

static gumbel_status choice_of_two(const gb_op_info *op, const gb_node *node, gb_attribute_key key,
                                   gumbel_error *error) {
    const int64_t choice = gb_node_int(node, key);
    if (choice > 1)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: %s = %lld, expected 0 or 1", op->name,
                       gb_attribute_name(key), (long long)choice);
    return GUMBEL_OK;
}

/* A pair is (i, i + pair_offset) for i < R; pairs must lie in the head and not overlap. */
static gumbel_status rope(const gb_op_info *op, const gb_operand_type *operands, const gb_node *node,
                          gumbel_error *error) {
    int64_t length = operands[0].type.shape.dims[2];
    int64_t pairs = operands[2].type.shape.dims[0];
    int64_t offset = gb_node_int(node, GB_ATTRIBUTE_PAIR_OFFSET);
    if (operands[2].kind != GB_VALUE_CONSTANT)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "rope: operand frequencies is not a constant");
    if (offset < pairs || offset + pairs > length)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "rope: %lld pairs at pair_offset = %lld overlap or leave heads of %lld",
                       (long long)pairs, (long long)offset, (long long)length);
    return choice_of_two(op, node, GB_ATTRIBUTE_START, error);
}

/* Each key head serves as many others; kind says which. */
static gumbel_status head_groups(const gb_op_info *op, const char *kind, const gb_shape *others,
                                 const gb_shape *keys, gumbel_error *error) {
    int64_t heads = others->dims[1], key_heads = keys->dims[1];
    if (heads % key_heads != 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: %lld %s heads are not a multiple of %lld key heads",
                       op->name, (long long)heads, kind, (long long)key_heads);
    return GUMBEL_OK;
}

/* Rotation is what codes need; other caches hold keys and values as they are. */
static gumbel_status cache_rotation(const gb_op_info *op, gb_attribute_key key, const gb_node *node,
                                    const gb_type *cache, gumbel_error *error) {
    const int64_t rotation = gb_node_int(node, key);
    if (rotation == 0)
        return GUMBEL_OK;
    if (!gb_dtype_has_codes(cache->dtype))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: %s = %lld with a cache of %s, expected q8 or q4",
                       op->name, gb_attribute_name(key), (long long)rotation, gb_dtype_name(cache->dtype));
    return check_rotation(op, key, rotation, cache->shape.dims[2], error);
}

/* The caches are of keys and, behind them, of values. */
static gumbel_status attention(const gb_op_info *op, const gb_operand_type *query,
                               const gb_operand_type *caches, const gb_node *node, gumbel_error *error) {
    GB_TRY(head_groups(op, "query", &query->type.shape, &caches[0].type.shape, error));
    GB_TRY(cache_rotation(op, GB_ATTRIBUTE_ROTATION, node, &caches[0].type, error));
    return cache_rotation(op, GB_ATTRIBUTE_VALUE_ROTATION, node, &caches[1].type, error);
}

static gumbel_status gated_delta(const gb_op_info *op, const gb_operand_type *operands, const gb_node *node,
                                 gumbel_error *error) {
    GB_TRY(choice_of_two(op, node, GB_ATTRIBUTE_TILED, error));
    GB_TRY(choice_of_two(op, node, GB_ATTRIBUTE_CORRECTS, error));
    return head_groups(op, "value", &operands[2].type.shape, &operands[1].type.shape, error);
}

static gumbel_status slice(const gb_operand_type *operands, const gb_node *node, gb_type *result,
                           gumbel_error *error) {
    const gb_shape *x = &operands[0].type.shape;
    int64_t start = gb_node_int(node, GB_ATTRIBUTE_START), count = gb_node_int(node, GB_ATTRIBUTE_COUNT);
    int64_t width = x->dims[x->rank - 1];
    if (count < 1 || start > width - count)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "slice: %lld elements from %lld on leave rows of %lld",
                       (long long)count, (long long)start, (long long)width);
    *result = (gb_type){GB_F32, *x};
    result->shape.dims[x->rank - 1] = count;
    return GUMBEL_OK;
}

/* The sum may exceed a dim; the check of all results finds that. */
static void concatenate(const gb_operand_type *operands, gb_type *result) {
    const gb_shape *b = &operands[1].type.shape;
    *result = (gb_type){GB_F32, operands[0].type.shape};
    result->shape.dims[b->rank - 1] += b->dims[b->rank - 1];
}

static gumbel_status all_gather(const gb_operand_type *operands, const gb_node *node, gb_type *result,
                                gumbel_error *error) {
    const gb_shape *x = &operands[0].type.shape;
    const int64_t ranks = gb_node_int(node, GB_ATTRIBUTE_RANKS),
                  sections = gb_node_int(node, GB_ATTRIBUTE_SECTIONS), width = x->dims[x->rank - 1];
    if (ranks < 1 || sections < 1 || width % sections != 0 || width > GB_MAX_DIM / ranks)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "all_gather: %lld sections of rows of %lld, of %lld ranks",
                       (long long)sections, (long long)width, (long long)ranks);
    *result = (gb_type){GB_F32, *x};
    result->shape.dims[x->rank - 1] = width * ranks;
    return GUMBEL_OK;
}

static gumbel_status causal_conv(const gb_operand_type *operands, gumbel_error *error) {
    int64_t width = operands[1].type.shape.dims[2], rows = operands[3].type.shape.dims[0];
    if (width < 2 || width > GB_MAX_CONV_WIDTH)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "causal_conv: a width of %lld, expected 2 to %d",
                       (long long)width, (int)GB_MAX_CONV_WIDTH);
    if (rows != width - 1)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "causal_conv: a tail of %lld rows, expected %lld",
                       (long long)rows, (long long)width - 1);
    return GUMBEL_OK;
}

static gumbel_status expert_count(const gb_op_info *op, int64_t experts, gumbel_error *error) {
    if (experts > GB_MAX_EXPERTS)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: %lld experts, expected at most %d", op->name,
                       (long long)experts, (int)GB_MAX_EXPERTS);
    return GUMBEL_OK;
}

static gumbel_status route(const gb_op_info *op, const gb_operand_type *operands, const gb_node *node,
                           gb_type *results, gumbel_error *error) {
    const gb_shape *logits = &operands[0].type.shape;
    int64_t count = gb_node_int(node, GB_ATTRIBUTE_COUNT);
    GB_TRY(expert_count(op, logits->dims[1], error));
    if (count < 1 || count > logits->dims[1])
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: count = %lld, expected 1 to the %lld experts",
                       op->name, (long long)count, (long long)logits->dims[1]);
    gb_shape shape = {.rank = 2, .dims = {logits->dims[0], count}};
    results[0] = (gb_type){GB_I32, shape};
    results[1] = (gb_type){GB_F32, shape};
    return GUMBEL_OK;
}

/* x is [M,K] or [M,T,K]. */
static gumbel_status expert_linear(const gb_op_info *op, const gb_operand_type *operands, gb_type *result,
                                   gumbel_error *error) {
    const gb_shape *x = &operands[0].type.shape, *weight = &operands[1].type.shape;
    const gb_shape *experts = &operands[2].type.shape;
    char x_text[GB_TYPE_TEXT], experts_text[GB_TYPE_TEXT];
    GB_TRY(expert_count(op, weight->dims[0], error));
    bool fits =
        (x->rank == 2 || (x->rank == 3 && x->dims[1] == experts->dims[1])) && x->dims[0] == experts->dims[0];
    if (!fits)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "expert_linear: operand x is %s, expected [M,K] or [M,T,K] with experts of %s",
                       gb_type_text(&operands[0].type, x_text),
                       gb_type_text(&operands[2].type, experts_text));
    *result = (gb_type){GB_F32, {.rank = 3, .dims = {x->dims[0], experts->dims[1], weight->dims[1]}}};
    return GUMBEL_OK;
}

static gumbel_status scale_columns(const gb_operand_type *operands, gumbel_error *error) {
    const int64_t columns = operands[0].type.shape.dims[1], factors = operands[1].type.shape.dims[0];
    if (columns % factors != 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "scale_columns: %lld factors do not divide %lld columns",
                       (long long)factors, (long long)columns);
    return GUMBEL_OK;
}

static gumbel_status clamped_swiglu(const gb_node *node, gumbel_error *error) {
    const double limit = gb_node_float(node, GB_ATTRIBUTE_LIMIT);
    if (!(limit > 0))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "clamped_swiglu: limit = %g is not above 0", limit);
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

/* One id for each row, or a list of them. */
static gumbel_status log_probability(const gb_operand_type *operands, gumbel_error *error) {
    const gb_shape *x = &operands[0].type.shape, *ids = &operands[2].type.shape;
    char text[GB_TYPE_TEXT];
    if (ids->rank < 1 || ids->rank > 2 || ids->dims[0] != x->dims[0])
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "log_probability: operand ids is %s, expected ids by row",
                       gb_type_text(&operands[2].type, text));
    return GUMBEL_OK;
}

static gumbel_status top_ids(const gb_operand_type *operands, const gb_node *node, gb_type *result,
                             gumbel_error *error) {
    const gb_shape *x = &operands[0].type.shape;
    int64_t count = gb_node_int(node, GB_ATTRIBUTE_COUNT);
    if (count < 1 || count > x->dims[1])
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "top_ids: count = %lld is not within 1 .. %lld",
                       (long long)count, (long long)x->dims[1]);
    *result = (gb_type){GB_I32, {.rank = 2, .dims = {x->dims[0], count}}};
    return GUMBEL_OK;
}

gumbel_status gb_check_vocabulary(const gb_op_info *op, int64_t columns, gumbel_error *error) {
    if (columns > GB_MAX_VOCABULARY)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: rows of %lld, expected at most %d", op->name,
                       (long long)columns, (int)GB_MAX_VOCABULARY);
    return GUMBEL_OK;
}

/* Rows are of the token's own position or one beside it, as the attribute says, and rounded to bfloat16 at
 * most. */
static gumbel_status hidden(const gb_op_info *op, const gb_operand_type *rows, const gb_node *node,
                            gb_attribute_key beside, gumbel_error *error) {
    GB_TRY(choice_of_two(op, node, beside, error));
    if (!gb_dtype_has_codes(rows->type.dtype))
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: hidden states of %s, expected f32 or bf16", op->name,
                   gb_dtype_name(rows->type.dtype));
}

static gumbel_status apply_mask(const gb_operand_type *operands, gumbel_error *error) {
    const int64_t logits = operands[0].type.shape.dims[1], words = operands[2].type.shape.dims[1];
    if (words != (int64_t)gb_mask_words((uint64_t)logits))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "apply_mask: a mask of %lld words for %lld logits",
                       (long long)words, (long long)logits);
    return GUMBEL_OK;
}

static gumbel_status op_rule(const gb_op_info *op, const gb_operand_type *operands, const gb_node *node,
                             gb_type *results, gumbel_error *error) {
    switch (op->op) {
    case GB_OP_EMBEDDING:
        return embedding(op, &operands[0], node, error);
    case GB_OP_LINEAR:
        return activation_of(op, &operands[1], node, error);
    case GB_OP_RMS_NORM:
    case GB_OP_L2_NORMALIZE:
        return norm(op, node, error);
    case GB_OP_SPLIT_HEADS:
        return split_heads(operands, node, &results[0], error);
    case GB_OP_MERGE_HEADS:
        merge_heads(operands, &results[0]);
        return GUMBEL_OK;
    case GB_OP_ROPE:
        return rope(op, operands, node, error);
    case GB_OP_ATTENTION:
        return attention(op, &operands[0], &operands[5], node, error);
    case GB_OP_ATTEND:
        return attention(op, &operands[0], &operands[3], node, error);
    case GB_OP_SLICE:
        return slice(operands, node, &results[0], error);
    case GB_OP_CONCATENATE:
        concatenate(operands, &results[0]);
        return GUMBEL_OK;
    case GB_OP_ALL_GATHER:
        return all_gather(operands, node, &results[0], error);
    case GB_OP_CAUSAL_CONV:
        return causal_conv(operands, error);
    case GB_OP_GATED_DELTA:
        return gated_delta(op, operands, node, error);
    case GB_OP_ROUTE_TOP_K:
    case GB_OP_ROUTE_SIGMOID:
        return route(op, operands, node, results, error);
    case GB_OP_EXPERT_LINEAR:
        GB_TRY(activation_of(op, &operands[1], node, error));
        return expert_linear(op, operands, &results[0], error);
    case GB_OP_ADD_EXPERT_BIAS:
        return expert_count(op, operands[1].type.shape.dims[0], error);
    case GB_OP_SCALE_COLUMNS:
        return scale_columns(operands, error);
    case GB_OP_CLAMPED_SWIGLU:
        return clamped_swiglu(node, error);
    case GB_OP_SOFT_CAP:
        return soft_cap(node, error);
    case GB_OP_LOG_PROBABILITY:
        return log_probability(operands, error);
    case GB_OP_TOP_IDS:
        return top_ids(operands, node, &results[0], error);
    case GB_OP_KEEP_HIDDEN:
        return hidden(op, &operands[3], node, GB_ATTRIBUTE_START, error);
    case GB_OP_LOAD_HIDDEN:
        return hidden(op, &operands[2], node, GB_ATTRIBUTE_BEFORE, error);
    case GB_OP_APPLY_MASK:
        return apply_mask(operands, error);
    case GB_OP_RANDOM_BITS:
        GB_TRY(random_bits(operands, node, &results[0], error));
        return gb_check_vocabulary(op, results[0].shape.dims[1], error);
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
                            gb_type *results, uint32_t result_count, gumbel_error *error) {
    GB_TRY(op_rule(op, operands, node, results, error));
    char text[GB_TYPE_TEXT];
    for (uint32_t i = 0; i < result_count; i++)
        if (!row_is_bounded(&results[i]))
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: a result %s is too large", op->name,
                           gb_type_text(&results[i], text));
    return GUMBEL_OK;
}
