/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains of ops on rows in one launch: live results, and the rows prepared for the next GEMM, have the bits
 * of the ops' own kernels.
 */
#include "backends/cuda/lowering/activations.h"
#include "backends/cuda/lowering/steps.h"
#include "backends/math.h"
#include "cuda/launching.h"

enum { MOST_TENSORS = 32, MOST_CALLS = 8 };

/* Ops and the tensors that they take and make. */
typedef struct chain {
    gb_node nodes[MOST_CALLS];
    gb_cuda_call calls[MOST_CALLS];
    uint32_t live; /* bit i: the result of call i is needed later */
    uint32_t count;
    gb_fused_kind kind;
    const gb_cuda_tensor *operands[GB_MAX_STEP_OPERANDS]; /* by the numbers of the kind */
    uint32_t parts[GB_MAX_FUSED_NODES];                   /* one more than the call that is that part */
    gb_cuda_tensor tensors[MOST_TENSORS];
    uint32_t tensor_count;
    gb_cuda_prepared epilogue;
    gb_cuda_tensor as; /* the last result's bytes in the shape that it takes */
    size_t rows;
    gb_dtype weights;
    uint64_t random;
} chain;

static gb_cuda_tensor *add_tensor(chain *c, gb_cuda_tensor tensor) {
    assert_true(c->tensor_count < MOST_TENSORS);
    c->tensors[c->tensor_count] = tensor;
    return &c->tensors[c->tensor_count++];
}

static gb_cuda_tensor *random_floats(chain *c, int32_t rank, size_t a, size_t b, size_t width) {
    const size_t count = a * b * width;
    float *values = malloc(count * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = 3 * next_float(&c->random);
    gb_cuda_tensor *result = add_tensor(c, device_tensor(GB_F32, values, rank, a, b, width));
    free(values);
    return result;
}

/* [rows, width], or with parts [rows, parts, width]. */
static gb_cuda_tensor *rows_of(chain *c, size_t parts, size_t width) {
    return parts ? random_floats(c, 3, c->rows, parts, width) : random_floats(c, 2, c->rows, width, 1);
}

static gb_cuda_tensor *norm_weight(chain *c, size_t width) {
    if (c->weights == GB_F32)
        return random_floats(c, 1, width, 1, 1);
    uint16_t *values = malloc(width * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < width; i++)
        values[i] = gb_bf16_from_float(next_float(&c->random));
    gb_cuda_tensor *result = add_tensor(c, device_tensor(GB_BF16, values, 1, width, 1, 1));
    free(values);
    return result;
}

/* The op's result, of the shape [rows, a] or [rows, a, b]. */
static gb_cuda_tensor *add_op(chain *c, gb_op op, gb_cuda_tensor *x, gb_cuda_tensor *y, size_t a, size_t b) {
    assert_true(c->count < MOST_CALLS);
    gb_cuda_tensor *result = add_tensor(c, device_tensor(GB_F32, NULL, b ? 3 : 2, c->rows, a, b ? b : 1));
    c->nodes[c->count] = (gb_node){.op = op};
    c->calls[c->count] = (gb_cuda_call){.node = &c->nodes[c->count], .operands = {x, y}, .results = {result}};
    c->count++;
    return result;
}

static gb_cuda_tensor *same_shape(chain *c, gb_op op, gb_cuda_tensor *x, gb_cuda_tensor *y) {
    return add_op(c, op, x, y, x->dims[1], x->rank > 2 ? x->dims[2] : 0);
}

static gb_cuda_tensor *keep(chain *c, gb_cuda_tensor *result) {
    c->live |= 1u << (c->count - 1);
    return result;
}

/* The op that was added last is that part of the step. */
static gb_cuda_tensor *as_part(chain *c, uint32_t part, gb_cuda_tensor *result) {
    c->parts[part] = c->count;
    return result;
}

static gb_cuda_tensor *as_operand(chain *c, uint32_t operand, gb_cuda_tensor *x) {
    c->operands[operand] = x;
    return x;
}

static gb_cuda_tensor *norm(chain *c, gb_cuda_tensor *x, bool has_weight) {
    gb_cuda_tensor *weight = has_weight ? norm_weight(c, x->dims[x->rank - 1]) : NULL;
    gb_cuda_tensor *result = same_shape(c, GB_OP_RMS_NORM, x, weight);
    gb_node *node = &c->nodes[c->count - 1];
    node->attributes[node->attribute_count++] =
        (gb_attribute){GB_ATTRIBUTE_EPSILON, GB_ATTRIBUTE_FLOAT, {.f = 1e-6}};
    node->attributes[node->attribute_count++] =
        (gb_attribute){GB_ATTRIBUTE_WEIGHT_OFFSET, GB_ATTRIBUTE_FLOAT, {.f = 1}};
    node->attributes[node->attribute_count++] =
        (gb_attribute){GB_ATTRIBUTE_SCALE, GB_ATTRIBUTE_FLOAT, {.f = has_weight ? 1 : 0.375}};
    return result;
}

static gb_cuda_tensor *slice(chain *c, gb_cuda_tensor *x, size_t start, size_t width) {
    gb_cuda_tensor *result = x->rank > 2 ? add_op(c, GB_OP_SLICE, x, NULL, x->dims[1], width)
                                         : add_op(c, GB_OP_SLICE, x, NULL, width, 0);
    gb_node *node = &c->nodes[c->count - 1];
    node->attributes[node->attribute_count++] =
        (gb_attribute){GB_ATTRIBUTE_START, GB_ATTRIBUTE_INT, {.i = (int64_t)start}};
    return result;
}

typedef struct rotary {
    gb_cuda_tensor *positions, *frequencies;
    size_t pair_offset;
} rotary;

static rotary make_rotary(chain *c, size_t pairs, size_t pair_offset) {
    int32_t positions[64];
    assert_true(c->rows <= 64);
    for (size_t i = 0; i < c->rows; i++)
        positions[i] = (int32_t)(next_random(&c->random) % 5000);
    return (rotary){add_tensor(c, device_tensor(GB_I32, positions, 1, c->rows, 1, 1)),
                    random_floats(c, 1, pairs, 1, 1), pair_offset};
}

static gb_cuda_tensor *rotate(chain *c, const rotary *r, gb_cuda_tensor *x) {
    gb_cuda_tensor *result = same_shape(c, GB_OP_ROPE, x, r->positions);
    c->calls[c->count - 1].operands[2] = r->frequencies;
    gb_node *node = &c->nodes[c->count - 1];
    node->attributes[node->attribute_count++] =
        (gb_attribute){GB_ATTRIBUTE_PAIR_OFFSET, GB_ATTRIBUTE_INT, {.i = (int64_t)r->pair_offset}};
    node->attributes[node->attribute_count++] =
        (gb_attribute){GB_ATTRIBUTE_SCALE, GB_ATTRIBUTE_FLOAT, {.f = 1.25}};
    return result;
}

/* The result is prepared in bytes for a product of rows of that many columns, or where the group is 0 as
 * bfloat16. */
static void prepare_for(chain *c, gb_cuda_tensor *result, size_t columns, uint32_t group) {
    c->as = (gb_cuda_tensor){.data = result->data, .dtype = GB_F32, .rank = 2};
    c->as.dims[0] = gb_cuda_elements(result) / columns;
    c->as.dims[1] = columns;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->calls[i].results[0] == result) {
            c->epilogue =
                (gb_cuda_prepared){.layout = group > 0 ? GB_CUDA_BYTES_BY_GROUPS : GB_CUDA_BF16_ROWS,
                                   .group = group,
                                   .as = &c->as};
            c->calls[i].epilogue = &c->epilogue;
        }
}

/* ---- The chains ---------------------------------------------------------------------------------------- */

/* Queries, keys and values of attention: heads of that size, of which `pairs` elements are turned. */
static void attention_heads(chain *c, size_t heads, size_t kv_heads, size_t size, size_t pairs,
                            size_t offset) {
    const rotary r = make_rotary(c, pairs, offset);
    c->kind = GB_FUSED_HEADS;
    gb_cuda_tensor *x = as_operand(c, GB_HEADS_QUERY, rows_of(c, heads, size));
    x = as_part(c, GB_HEADS_QUERY_NORM, norm(c, x, true));
    keep(c, as_part(c, GB_HEADS_QUERY_TURN, rotate(c, &r, x)));
    x = as_operand(c, GB_HEADS_KEY, rows_of(c, kv_heads, size));
    x = as_part(c, GB_HEADS_KEY_NORM, norm(c, x, true));
    keep(c, as_part(c, GB_HEADS_KEY_TURN, rotate(c, &r, x)));
    x = as_operand(c, GB_HEADS_VALUE, rows_of(c, kv_heads, size));
    keep(c, as_part(c, GB_HEADS_VALUE_NORM, norm(c, x, false)));
}
static void heads_of_256(chain *c) {
    attention_heads(c, 32, 16, 256, 128, 128);
}
static void heads_of_512(chain *c) {
    attention_heads(c, 32, 4, 512, 64, 256);
}
static void heads_of_128(chain *c) {
    attention_heads(c, 3, 1, 128, 64, 64);
}
static void heads_of_64(chain *c) {
    attention_heads(c, 5, 2, 64, 32, 32);
}

/* Queries stand beside their gates. */
static void gated_heads(chain *c) {
    const rotary r = make_rotary(c, 32, 32);
    c->kind = GB_FUSED_HEADS;
    gb_cuda_tensor *x = as_operand(c, GB_HEADS_QUERY, rows_of(c, 16, 512));
    x = as_part(c, GB_HEADS_QUERY_SLICE, slice(c, x, 0, 256));
    x = as_part(c, GB_HEADS_QUERY_NORM, norm(c, x, true));
    keep(c, as_part(c, GB_HEADS_QUERY_TURN, rotate(c, &r, x)));
    x = as_operand(c, GB_HEADS_KEY, rows_of(c, 2, 256));
    x = as_part(c, GB_HEADS_KEY_NORM, norm(c, x, true));
    keep(c, as_part(c, GB_HEADS_KEY_TURN, rotate(c, &r, x)));
}

static void turned_heads(chain *c) {
    const rotary r = make_rotary(c, 64, 64);
    c->kind = GB_FUSED_HEADS;
    gb_cuda_tensor *x = as_operand(c, GB_HEADS_QUERY, rows_of(c, 7, 128));
    keep(c, as_part(c, GB_HEADS_QUERY_TURN, rotate(c, &r, x)));
    x = as_operand(c, GB_HEADS_KEY, rows_of(c, 1, 128));
    keep(c, as_part(c, GB_HEADS_KEY_TURN, rotate(c, &r, x)));
}

/* Of a tensor of heads: what is added to all of them. */
static gb_cuda_tensor *biased_tensor(chain *c, uint32_t part, gb_cuda_tensor *x) {
    return as_part(c, part, same_shape(c, GB_OP_ADD_BIAS, x, norm_weight(c, x->dims[1] * x->dims[2])));
}

/* gpt-oss', and of Qwen 2: values have a bias alone. */
static void biased_heads(chain *c) {
    const rotary r = make_rotary(c, 32, 32);
    c->kind = GB_FUSED_HEADS;
    gb_cuda_tensor *x =
        biased_tensor(c, GB_HEADS_QUERY_BIASED, as_operand(c, GB_HEADS_QUERY, rows_of(c, 9, 64)));
    keep(c, as_part(c, GB_HEADS_QUERY_TURN, rotate(c, &r, x)));
    x = biased_tensor(c, GB_HEADS_KEY_BIASED, as_operand(c, GB_HEADS_KEY, rows_of(c, 2, 64)));
    keep(c, as_part(c, GB_HEADS_KEY_TURN, rotate(c, &r, x)));
    keep(c, biased_tensor(c, GB_HEADS_VALUE_BIASED, as_operand(c, GB_HEADS_VALUE, rows_of(c, 2, 64))));
}

/* Values have no bias; nothing turns queries. */
static void biased_normalized_heads(chain *c) {
    const rotary r = make_rotary(c, 64, 64);
    c->kind = GB_FUSED_HEADS;
    gb_cuda_tensor *x =
        biased_tensor(c, GB_HEADS_QUERY_BIASED, as_operand(c, GB_HEADS_QUERY, rows_of(c, 4, 128)));
    keep(c, as_part(c, GB_HEADS_QUERY_NORM, norm(c, x, true)));
    x = biased_tensor(c, GB_HEADS_KEY_BIASED, as_operand(c, GB_HEADS_KEY, rows_of(c, 1, 128)));
    x = as_part(c, GB_HEADS_KEY_NORM, norm(c, x, true));
    keep(c, as_part(c, GB_HEADS_KEY_TURN, rotate(c, &r, x)));
    x = as_operand(c, GB_HEADS_VALUE, rows_of(c, 1, 128));
    keep(c, as_part(c, GB_HEADS_VALUE_NORM, norm(c, x, false)));
}

/* The parts of a slice are the step's operands before they are cut. */
static gb_cuda_tensor *gate(chain *c, gb_op activation, gb_cuda_tensor *x, gb_cuda_tensor *other) {
    c->kind = GB_FUSED_GATED;
    if (!c->operands[GB_GATED_X])
        as_operand(c, GB_GATED_X, x);
    if (!c->operands[GB_GATED_OTHER])
        as_operand(c, GB_GATED_OTHER, other);
    gb_cuda_tensor *result = as_part(c, GB_GATED_ACTIVATION, same_shape(c, activation, x, NULL));
    return keep(c, as_part(c, GB_GATED_RESULT, same_shape(c, GB_OP_MULTIPLY, result, other)));
}

static void gelu_gate(chain *c) {
    prepare_for(c, gate(c, GB_OP_GELU_TANH, rows_of(c, 0, 21504), rows_of(c, 0, 21504)), 21504, 64);
}
static void silu_gate(chain *c) {
    prepare_for(c, gate(c, GB_OP_SILU, rows_of(c, 0, 1408), rows_of(c, 0, 1408)), 1408, 128);
}
static void gate_of_small_groups(chain *c) {
    prepare_for(c, gate(c, GB_OP_SILU, rows_of(c, 0, 1344), rows_of(c, 0, 1344)), 1344, 32);
}
static void unprepared_gate(chain *c) {
    gate(c, GB_OP_SILU, rows_of(c, 0, 334), rows_of(c, 0, 334));
}

static gb_cuda_tensor *expert_gate(chain *c) {
    gb_cuda_tensor *both = as_operand(c, GB_GATED_OTHER, as_operand(c, GB_GATED_X, rows_of(c, 8, 1024)));
    gb_cuda_tensor *x = as_part(c, GB_GATED_X_SLICE, slice(c, both, 0, 512));
    gb_cuda_tensor *other = as_part(c, GB_GATED_OTHER_SLICE, slice(c, both, 512, 512));
    return gate(c, GB_OP_SILU, x, other);
}
static void experts_gate(chain *c) {
    prepare_for(c, expert_gate(c), 512, 64);
}
/* The shared expert's is not prepared here. */
static void two_gates(chain *c) {
    gb_cuda_tensor *experts = expert_gate(c);
    gate(c, GB_OP_SILU, rows_of(c, 0, 512), rows_of(c, 0, 512));
    prepare_for(c, experts, 512, 64);
    c->kind = GB_FUSED_ROWS;
}

static void attention_gate(chain *c) {
    gb_cuda_tensor *both = as_operand(c, GB_GATED_X, rows_of(c, 16, 512));
    gb_cuda_tensor *x = as_part(c, GB_GATED_X_SLICE, slice(c, both, 256, 256));
    prepare_for(c, gate(c, GB_OP_SIGMOID, x, rows_of(c, 16, 256)), 4096, 64);
}

/* Queries, keys and values after their products, and heads that are turned. */
static gb_cuda_tensor *biased(chain *c, size_t width) {
    return same_shape(c, GB_OP_ADD_BIAS, rows_of(c, 0, width), norm_weight(c, width));
}
static void biases(chain *c) {
    c->kind = GB_FUSED_ROWS;
    keep(c, biased(c, 896));
    keep(c, biased(c, 128));
    keep(c, biased(c, 128));
}
static void wide_bias(chain *c) {
    c->kind = GB_FUSED_ROWS;
    gb_cuda_tensor *x = keep(c, biased(c, 2560));
    keep(c, same_shape(c, GB_OP_SILU, x, NULL));
}
static void bias_before_a_norm(chain *c) {
    c->kind = GB_FUSED_ROWS;
    keep(c, norm(c, biased(c, 1536), true));
}

/* The norm of x, if there is to be one, what is added to it and perhaps a factor, and the last norm. */
static void norms(chain *c, size_t width, bool has_first, bool has_scale, uint32_t group) {
    c->kind = GB_FUSED_NORMS;
    gb_cuda_tensor *x = as_operand(c, GB_NORMS_X, rows_of(c, 0, width));
    if (has_first)
        x = as_part(c, GB_NORMS_FIRST, norm(c, x, true));
    x = same_shape(c, GB_OP_ADD, as_operand(c, GB_NORMS_ADDED, rows_of(c, 0, width)), x);
    as_part(c, GB_NORMS_ADD, x);
    if (has_scale) {
        gb_cuda_tensor *factor = as_operand(c, GB_NORMS_SCALE_FACTOR, random_floats(c, 1, 1, 1, 1));
        x = as_part(c, GB_NORMS_SCALE, same_shape(c, GB_OP_SCALE, x, factor));
    }
    keep(c, x);
    x = keep(c, as_part(c, GB_NORMS_LAST, norm(c, x, true)));
    prepare_for(c, x, width, group);
}
static void residual(chain *c) {
    norms(c, 2048, false, false, 64);
}
static void norms_around(chain *c) {
    norms(c, 5376, true, false, 64);
}
static void norms_with_scale(chain *c) {
    norms(c, 5376, true, true, 128);
}

/* The end of a layer with a shared expert: its result by the sigmoid of its logit, the experts', the
 * residual. */
static void shared_sum(chain *c, size_t width, bool has_logit, bool is_live) {
    c->kind = GB_FUSED_ROWS;
    gb_cuda_tensor *factor = rows_of(c, 0, 1);
    if (has_logit)
        factor = same_shape(c, GB_OP_SIGMOID, factor, NULL);
    gb_cuda_tensor *x = same_shape(c, GB_OP_SCALE_ROWS, rows_of(c, 0, width), factor);
    x = same_shape(c, GB_OP_ADD, rows_of(c, 0, width), x);
    keep(c, same_shape(c, GB_OP_ADD, rows_of(c, 0, width), x));
    if (is_live)
        c->live = (1u << c->count) - 1;
}
static void sum_of_2048(chain *c) {
    shared_sum(c, 2048, true, false);
}
static void live_sum(chain *c) {
    shared_sum(c, 1420, true, true);
}
static void sum_by_a_factor(chain *c) {
    shared_sum(c, 260, false, false);
}
static void uneven_sum(chain *c) {
    shared_sum(c, 1090, true, true);
}

/* The experts' result is the sum of their rows. */
static void experts_sum(chain *c, size_t width, size_t choices, bool is_live) {
    c->kind = GB_FUSED_ROWS;
    gb_cuda_tensor *factor = same_shape(c, GB_OP_SIGMOID, rows_of(c, 0, 1), NULL);
    gb_cuda_tensor *shared = same_shape(c, GB_OP_SCALE_ROWS, rows_of(c, 0, width), factor);
    gb_cuda_tensor *x =
        add_op(c, GB_OP_COMBINE_EXPERTS, rows_of(c, choices, width), rows_of(c, 0, choices), width, 0);
    x = same_shape(c, GB_OP_ADD, x, shared);
    keep(c, same_shape(c, GB_OP_ADD, rows_of(c, 0, width), x));
    if (is_live)
        c->live = (1u << c->count) - 1;
}
static void sum_of_8_experts(chain *c) {
    experts_sum(c, 2048, 8, false);
}
static void live_sum_of_3_experts(chain *c) {
    experts_sum(c, 1420, 3, true);
}
static void uneven_sum_of_experts(chain *c) {
    experts_sum(c, 1090, 3, false);
}

/* One of them is for others alone. */
static void factors(chain *c) {
    shared_sum(c, 64, true, false);
    keep(c, same_shape(c, GB_OP_SIGMOID, rows_of(c, 0, 1), NULL));
}

static void gate_of_slices(chain *c) {
    c->kind = GB_FUSED_ROWS;
    gb_cuda_tensor *both = rows_of(c, 3, 48), *scale = random_floats(c, 1, 1, 1, 1);
    gb_cuda_tensor *x = slice(c, both, 0, 20), *other = slice(c, both, 24, 20);
    x = same_shape(c, GB_OP_MULTIPLY, same_shape(c, GB_OP_GELU_TANH, x, NULL), other);
    keep(c, same_shape(c, GB_OP_SCALE, x, scale));
}
/* The slices' columns are not those that can be loaded together. */
static void gate_of_odd_slices(chain *c) {
    c->kind = GB_FUSED_ROWS;
    gb_cuda_tensor *both = rows_of(c, 0, 48);
    gb_cuda_tensor *x = slice(c, both, 2, 20);
    keep(c, same_shape(c, GB_OP_MULTIPLY, same_shape(c, GB_OP_SILU, x, NULL), rows_of(c, 0, 20)));
}
static void inner_slice(chain *c) {
    c->kind = GB_FUSED_ROWS;
    gb_cuda_tensor *x = slice(c, keep(c, biased(c, 96)), 4, 64);
    keep(c, same_shape(c, GB_OP_SILU, x, NULL));
}
static gb_cuda_tensor *expert_biased(chain *c, gb_cuda_tensor *x, gb_cuda_tensor *experts, size_t count) {
    gb_cuda_tensor *bias =
        c->weights == GB_F32 ? random_floats(c, 2, count, x->dims[2], 1) : norm_weight(c, count * x->dims[2]);
    bias->rank = 2;
    bias->dims[0] = count;
    bias->dims[1] = x->dims[2];
    gb_cuda_tensor *result = same_shape(c, GB_OP_ADD_EXPERT_BIAS, x, bias);
    c->calls[c->count - 1].operands[2] = experts;
    return result;
}

static gb_cuda_tensor *chosen_experts(chain *c, size_t choices, size_t count) {
    int32_t experts[64];
    assert_true(c->rows * choices <= 64);
    for (size_t i = 0; i < c->rows * choices; i++)
        experts[i] = (int32_t)(next_random(&c->random) % count);
    return add_tensor(c, device_tensor(GB_I32, experts, 2, c->rows, choices, 1));
}

static gb_cuda_tensor *clamped(chain *c, gb_cuda_tensor *gate, gb_cuda_tensor *up) {
    gb_cuda_tensor *result = same_shape(c, GB_OP_CLAMPED_SWIGLU, gate, up);
    gb_node *node = &c->nodes[c->count - 1];
    node->attributes[node->attribute_count++] =
        (gb_attribute){GB_ATTRIBUTE_ALPHA, GB_ATTRIBUTE_FLOAT, {.f = 1.702}};
    node->attributes[node->attribute_count++] =
        (gb_attribute){GB_ATTRIBUTE_LIMIT, GB_ATTRIBUTE_FLOAT, {.f = 2}};
    return result;
}

/* What lies between experts' products, and behind them. */
static void biased_experts_gate(chain *c, size_t width) {
    c->kind = GB_FUSED_GATED;
    gb_cuda_tensor *both = rows_of(c, 4, 2 * width), *experts = chosen_experts(c, 4, 5);
    as_operand(c, GB_GATED_X, as_operand(c, GB_GATED_OTHER, both));
    gb_cuda_tensor *gate = as_part(c, GB_GATED_X_SLICE, slice(c, both, 0, width));
    gate = as_part(c, GB_GATED_X_BIASED, expert_biased(c, gate, experts, 5));
    gb_cuda_tensor *up = as_part(c, GB_GATED_OTHER_SLICE, slice(c, both, width, width));
    up = as_part(c, GB_GATED_OTHER_BIASED, expert_biased(c, up, experts, 5));
    keep(c, as_part(c, GB_GATED_RESULT, clamped(c, gate, up)));
}
static void narrow_biased_gate(chain *c) {
    biased_experts_gate(c, 60);
}
static void wide_biased_gate(chain *c) {
    biased_experts_gate(c, 720);
}
static void clamped_rows(chain *c) {
    c->kind = GB_FUSED_ROWS;
    gb_cuda_tensor *x = same_shape(c, GB_OP_ADD, rows_of(c, 0, 64), rows_of(c, 0, 64));
    keep(c, clamped(c, x, rows_of(c, 0, 64)));
}
/* A gate that is computed last is not the other operand. */
static void clamped_by_rows(chain *c) {
    c->kind = GB_FUSED_ROWS;
    gb_cuda_tensor *x = same_shape(c, GB_OP_ADD, rows_of(c, 0, 64), rows_of(c, 0, 64));
    keep(c, clamped(c, rows_of(c, 0, 64), x));
}
static void biased_sum(chain *c, size_t width, size_t choices, bool has_residual) {
    c->kind = GB_FUSED_ROWS;
    gb_cuda_tensor *experts = chosen_experts(c, choices, 7);
    gb_cuda_tensor *x = expert_biased(c, rows_of(c, choices, width), experts, 7);
    x = add_op(c, GB_OP_COMBINE_EXPERTS, x, rows_of(c, 0, choices), width, 0);
    if (has_residual)
        x = same_shape(c, GB_OP_ADD, rows_of(c, 0, width), x);
    keep(c, x);
}
static void sum_of_biased_experts(chain *c) {
    biased_sum(c, 720, 4, false);
}
static void residual_and_biased_experts(chain *c) {
    biased_sum(c, 1420, 6, true);
}
static void uneven_sum_of_biased_experts(chain *c) {
    biased_sum(c, 90, 3, true);
}
static void biases_that_are_read(chain *c) {
    biased_sum(c, 64, 3, true);
    c->live |= 1;
}
static void sum_alone(chain *c) {
    c->kind = GB_FUSED_ROWS;
    gb_cuda_tensor *x = add_op(c, GB_OP_COMBINE_EXPERTS, rows_of(c, 3, 68), rows_of(c, 0, 3), 68, 0);
    keep(c, same_shape(c, GB_OP_RELU_SQUARED, x, NULL));
}

/* A state space model's ops: step sizes and decays, its skip, its norm. */
static void step_sizes(chain *c) {
    c->kind = GB_FUSED_ROWS;
    gb_cuda_tensor *raw = rows_of(c, 0, 24), *bias = norm_weight(c, 24);
    keep(c, same_shape(c, GB_OP_SOFTPLUS, same_shape(c, GB_OP_ADD_BIAS, raw, bias), NULL));
    keep(c, same_shape(c, GB_OP_DELTA_DECAY, raw, norm_weight(c, 24)));
    c->calls[c->count - 1].operands[2] = bias;
}
static void soft_bias(chain *c) {
    c->kind = GB_FUSED_ROWS;
    keep(c, same_shape(c, GB_OP_SOFTPLUS, biased(c, 24), NULL));
}
static void scaled_skip(chain *c) {
    c->kind = GB_FUSED_ROWS;
    gb_cuda_tensor *x =
        same_shape(c, GB_OP_SCALE_COLUMNS, slice(c, rows_of(c, 0, 320), 0, 192), norm_weight(c, 12));
    keep(c, same_shape(c, GB_OP_ADD, rows_of(c, 0, 192), x));
}
static void scaled_norm(chain *c) {
    c->kind = GB_FUSED_ROWS;
    gb_cuda_tensor *x = norm(c, rows_of(c, 0, 96), false);
    keep(c, same_shape(c, GB_OP_SCALE_COLUMNS, x, norm_weight(c, 96)));
}
static void squared(chain *c) {
    c->kind = GB_FUSED_ROWS;
    gb_cuda_tensor *x = same_shape(c, GB_OP_RELU_SQUARED, rows_of(c, 0, 64), NULL);
    keep(c, same_shape(c, GB_OP_SCALE_COLUMNS, x, norm_weight(c, 32)));
}

static void read_again(chain *c) {
    c->kind = GB_FUSED_ROWS;
    gb_cuda_tensor *x = same_shape(c, GB_OP_SILU, rows_of(c, 0, 64), NULL);
    gb_cuda_tensor *y = same_shape(c, GB_OP_MULTIPLY, x, rows_of(c, 0, 64));
    keep(c, same_shape(c, GB_OP_ADD, y, x));
}

typedef struct chain_case {
    const char *name;
    void (*make)(chain *c);
    bool in_registers; /* as rows it is an element_chain */
} chain_case;

static const chain_case cases[] = {
    {"heads of 256", heads_of_256, false},
    {"heads of 512", heads_of_512, false},
    {"heads of 128", heads_of_128, false},
    {"heads of 64", heads_of_64, false},
    {"gated heads", gated_heads, false},
    {"turned heads", turned_heads, false},
    {"biased heads", biased_heads, false},
    {"biased, normalized heads", biased_normalized_heads, false},
    {"gelu gate", gelu_gate, false},
    {"silu gate", silu_gate, false},
    {"gate of small groups", gate_of_small_groups, false},
    {"experts' gate", experts_gate, false},
    {"two gates", two_gates, false},
    {"attention's gate", attention_gate, false},
    {"unprepared gate", unprepared_gate, false},
    {"biases", biases, false},
    {"wide bias", wide_bias, true},
    {"bias before a norm", bias_before_a_norm, false},
    {"residual", residual, false},
    {"norms around", norms_around, false},
    {"norms with scale", norms_with_scale, false},
    {"sum of 2048", sum_of_2048, true},
    {"live sum", live_sum, true},
    {"sum by a factor", sum_by_a_factor, true},
    {"uneven sum", uneven_sum, false},
    {"factors", factors, false},
    {"sum of 8 experts", sum_of_8_experts, true},
    {"live sum of 3 experts", live_sum_of_3_experts, true},
    {"uneven sum of experts", uneven_sum_of_experts, false},
    {"gate of slices", gate_of_slices, true},
    {"gate of odd slices", gate_of_odd_slices, false},
    {"inner slice", inner_slice, false},
    {"read again", read_again, false},
    {"biased experts' gate", narrow_biased_gate, false},
    {"wide biased experts' gate", wide_biased_gate, false},
    {"clamped rows", clamped_rows, true},
    {"clamped by rows", clamped_by_rows, false},
    {"sum of biased experts", sum_of_biased_experts, true},
    {"residual and biased experts", residual_and_biased_experts, true},
    {"uneven sum of biased experts", uneven_sum_of_biased_experts, false},
    {"biases that are read", biases_that_are_read, false},
    {"sum alone", sum_alone, false},
    {"step sizes", step_sizes, false},
    {"soft bias", soft_bias, true},
    {"scaled skip", scaled_skip, true},
    {"scaled norm", scaled_norm, false},
    {"squared", squared, true},
};

static void make_chain(chain *c, const chain_case *result, size_t rows, gb_dtype weights) {
    *c = (chain){.rows = rows, .weights = weights, .random = 11};
    result->make(c);
}

static void free_chain(chain *c) {
    for (uint32_t i = 0; i < c->tensor_count; i++)
        free_on_device(&c->tensors[i]);
}

/* ---- Against the ops one by one ------------------------------------------------------------------------ */

typedef void (*op_launch)(const gb_cuda_call *call);

static op_launch kernel_of(gb_op op) {
    static const struct {
        gb_op op;
        op_launch kernel;
    } kernels[] = {
        {GB_OP_ADD, gb_cuda_add},
        {GB_OP_MULTIPLY, gb_cuda_multiply},
        {GB_OP_SCALE, gb_cuda_scale},
        {GB_OP_GELU_TANH, gb_cuda_gelu_tanh},
        {GB_OP_SILU, gb_cuda_silu},
        {GB_OP_SIGMOID, gb_cuda_sigmoid},
        {GB_OP_SLICE, gb_cuda_slice},
        {GB_OP_RMS_NORM, gb_cuda_rms_norm},
        {GB_OP_ROPE, gb_cuda_rope},
        {GB_OP_ADD_BIAS, gb_cuda_add_bias},
        {GB_OP_SCALE_ROWS, gb_cuda_scale_rows},
        {GB_OP_COMBINE_EXPERTS, gb_cuda_combine_experts},
        {GB_OP_SOFTPLUS, gb_cuda_softplus},
        {GB_OP_RELU_SQUARED, gb_cuda_relu_squared},
        {GB_OP_DELTA_DECAY, gb_cuda_delta_decay},
        {GB_OP_SCALE_COLUMNS, gb_cuda_scale_columns},
        {GB_OP_CLAMPED_SWIGLU, gb_cuda_clamped_swiglu},
        {GB_OP_ADD_EXPERT_BIAS, gb_cuda_add_expert_bias},
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i].op == op)
            return kernels[i].kernel;
    fail_msg("op %d", (int)op);
    return NULL;
}

typedef struct outcome {
    uint8_t *bytes; /* what is kept, and what is prepared */
    size_t size;
} outcome;

static outcome fetch_outcome(const chain *c, size_t prepared_bytes) {
    outcome result = {.size = prepared_bytes};
    for (uint32_t i = 0; i < c->count; i++)
        result.size += (c->live >> i & 1u) ? gb_cuda_elements(c->calls[i].results[0]) * sizeof(float) : 0;
    result.bytes = malloc(result.size);
    assert_non_null(result.bytes);
    assert_cuda(cudaMemcpy(result.bytes, c->epilogue.data, prepared_bytes, cudaMemcpyDeviceToHost));
    size_t at = prepared_bytes;
    for (uint32_t i = 0; i < c->count; i++)
        if ((c->live >> i & 1u)) {
            fetch_tensor(c->calls[i].results[0], result.bytes + at);
            at += gb_cuda_elements(c->calls[i].results[0]) * sizeof(float);
        }
    return result;
}

/* How the calls are launched. */
typedef enum way { ONE_BY_ONE, AS_ROWS, AS_STEP } way;

/* As its own kind of step, if its kernels have it: calls by part. */
static bool launch_step(const chain *c) {
    const gb_cuda_call *parts[GB_MAX_FUSED_NODES] = {NULL};
    gb_cuda_problem problem = {.operands = c->operands, .parts = parts};
    for (uint32_t p = 0; p < GB_MAX_FUSED_NODES; p++) {
        if (c->parts[p] == 0)
            continue;
        parts[p] = &c->calls[c->parts[p] - 1];
        problem.live |= (c->live >> (c->parts[p] - 1) & 1u) << p;
        problem.count = p + 1;
    }
    return launch_fused(c->kind, &problem);
}

/* list: room for the calls. */
static gb_cuda_problem problem_of_rows(const chain *c, const gb_cuda_call **list) {
    for (uint32_t i = 0; i < c->count; i++)
        list[i] = &c->calls[i];
    return (gb_cuda_problem){.parts = list, .count = c->count, .live = c->live};
}

static void launch_chain(const chain *c, way how) {
    const gb_cuda_call *list[MOST_CALLS];
    const gb_cuda_problem rows = problem_of_rows(c, list);
    if (how == AS_STEP && c->kind != GB_FUSED_ROWS)
        assert_true(launch_step(c));
    else if (how != ONE_BY_ONE)
        assert_true(launch_fused(GB_FUSED_ROWS, &rows));
    else
        for (uint32_t i = 0; i < c->count; i++)
            run_op(kernel_of(c->nodes[i].op), list[i]);
}

static outcome run_chain(const chain_case *which, size_t rows, gb_dtype weights, way how) {
    chain c;
    make_chain(&c, which, rows, weights);
    const bool prepares = c.as.rank > 0;
    const size_t prepared_bytes =
        prepares ? gb_cuda_prepared_bytes(c.as.dims[0], c.as.dims[1], GB_QUANTIZED) : 0;
    void *zeros = calloc(1, prepared_bytes + 1);
    assert_non_null(zeros);
    gb_cuda_scratch scratch = {0};
    c.epilogue.data = device_copy(zeros, prepared_bytes + 1);
    free(zeros);
    for (uint32_t i = 0; i < c.count; i++)
        c.calls[i].scratch = &scratch;
    launch_chain(&c, how);
    const outcome result = fetch_outcome(&c, prepared_bytes);
    assert_cuda(cudaFree(c.epilogue.data));
    free_chain(&c);
    return result;
}

static void check_case(const chain_case *which, size_t rows, gb_dtype weights, way how) {
    const outcome expected = run_chain(which, rows, weights, ONE_BY_ONE);
    const outcome found = run_chain(which, rows, weights, how);
    assert_int_equal(expected.size, found.size);
    for (size_t i = 0; i < found.size; i++)
        if (expected.bytes[i] != found.bytes[i])
            fail_msg("%s, %zu rows: byte %zu of %zu is %u, expected %u", which->name, rows, i, found.size,
                     found.bytes[i], expected.bytes[i]);
    free(expected.bytes);
    free(found.bytes);
}

static void same_bits_as_alone(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int how = AS_ROWS; how <= AS_STEP; how++) {
            check_case(&cases[i], 1, GB_BF16, (way)how);
            check_case(&cases[i], 3, GB_F32, (way)how);
        }
    }
}

/* Values of another size than queries and keys have their bias by themselves. */
static void heads_have_one_size(void **unused) {
    (void)unused;
    chain c = {.rows = 2, .weights = GB_F32, .random = 12};
    const rotary r = make_rotary(&c, 64, 64);
    c.kind = GB_FUSED_HEADS;
    gb_cuda_tensor *x = as_operand(&c, GB_HEADS_QUERY, rows_of(&c, 2, 128));
    keep(&c, as_part(&c, GB_HEADS_QUERY_TURN, rotate(&c, &r, x)));
    x = as_operand(&c, GB_HEADS_KEY, rows_of(&c, 1, 128));
    keep(&c, as_part(&c, GB_HEADS_KEY_TURN, rotate(&c, &r, x)));
    keep(&c, biased_tensor(&c, GB_HEADS_VALUE_BIASED, as_operand(&c, GB_HEADS_VALUE, rows_of(&c, 1, 64))));
    assert_false(launch_step(&c));
    free_chain(&c);
}

static void elements_stay_in_registers(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        chain c;
        const gb_cuda_call *list[MOST_CALLS];
        make_chain(&c, &cases[i], 2, GB_BF16);
        const gb_cuda_problem rows = problem_of_rows(&c, list);
        test_problem *t = new_problem(&rows);
        gb_cuda_row_chain(&t->problem);
        assert_int_equal(t->launches.count, 1);
        assert_string_equal(t->launches.launches[0].name,
                            cases[i].in_registers ? "element_chain" : "row_chain");
        free_problem(t);
        free_chain(&c);
    }
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits_as_alone),
                                       cmocka_unit_test(heads_have_one_size),
                                       cmocka_unit_test(elements_stay_in_registers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
