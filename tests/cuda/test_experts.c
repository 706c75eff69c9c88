/* SPDX-License-Identifier: Apache-2.0
 *
 * The experts of a decode step: routing beside its definition, and all steps in two launches with the bits of
 * one launch each, whatever other tokens there are.
 */
#include "backends/cuda/lowering/activations.h"
#include "backends/math.h"
#include "cuda/launching.h"
#include "cuda/random_matrix.h"
#include "support/test_arguments.h"
#include "tensor/convert.h"
#include "tensor/packing.h"

#include <math.h>

enum { MOST_TOKENS = 5, MOST_EXPERTS = 300, MOST_CHOSEN = 40, MOST_HIDDEN = 4096 };

/* ---- Choosing ------------------------------------------------------------------------------------------ */

/* Rows of logits to choose from. */
enum row_kind {
    SPREAD,     /* all different */
    FEW_VALUES, /* so that many are equal */
    ALL_EQUAL,
    NEIGHBORS,   /* so near that quotients are equal where exponentials are not */
    UNDERFLOW,   /* one is far above, so that all others' probabilities are zero */
    ONE_WARPS,   /* of few values, and -inf but for some 32 */
    MANY_ABSENT, /* most are -inf */
    NO_NUMBER,   /* NaN, of either sign, among few values */
    INFINITE,    /* likewise +inf */
    ALL_ABSENT,  /* all are -inf */
    ROW_KINDS
};

static const gb_node route_nodes[] = {
    {.op = GB_OP_ROUTE_TOP_K,
     .attribute_count = 1,
     .attributes = {{GB_ATTRIBUTE_NORMALIZE, GB_ATTRIBUTE_INT, {.i = 0}}}},
    {.op = GB_OP_ROUTE_TOP_K,
     .attribute_count = 1,
     .attributes = {{GB_ATTRIBUTE_NORMALIZE, GB_ATTRIBUTE_INT, {.i = 1}}}},
};

/* The sum over a row of exponentials in the device's order: each lane's of 32, then those by halves. */
static float sum_of_lanes(const float *values, size_t count) {
    float sums[32] = {0};
    for (size_t i = 0; i < count; i++)
        sums[i % 32] += values[i];
    for (size_t half = 16; half > 0; half /= 2)
        for (size_t lane = 0; lane < half; lane++)
            sums[lane] += sums[lane + half];
    return sums[0];
}

static void make_probabilities(const float *logits, size_t count, float *p) {
    float largest = logits[0];
    for (size_t i = 1; i < count; i++)
        largest = logits[i] > largest ? logits[i] : largest;
    for (size_t i = 0; i < count; i++)
        p[i] = gb_exp(logits[i] - largest);
    const float sum = sum_of_lanes(p, count);
    for (size_t i = 0; i < count; i++)
        p[i] /= sum;
}

/* The largest of p, the first among equals, that is not taken; NaNs in their order. */
static size_t best_left(const float *p, const bool *is_supported, size_t count) {
    size_t best = count;
    for (size_t i = 0; i < count; i++)
        if (!is_supported[i] && (best == count || p[i] > p[best]))
            best = i;
    return best;
}

static void compare_choice(const float *logits, size_t experts, size_t count, bool normalize,
                           const int32_t *found, const float *weights) {
    float p[MOST_EXPERTS], sum = 0;
    bool is_supported[MOST_EXPERTS] = {false};
    make_probabilities(logits, experts, p);
    for (size_t t = 0; t < count; t++) {
        size_t best = best_left(p, is_supported, experts);
        assert_int_equal(found[t], best);
        is_supported[best] = true;
        sum += p[best];
    }
    for (size_t t = 0; t < count; t++) {
        float expected = p[found[t]] / (normalize ? sum : 1);
        if (isnan(expected))
            assert_true(isnan(weights[t]));
        else
            assert_memory_equal(&weights[t], &expected, sizeof expected);
    }
}

static void check_route(const float *logits, size_t tokens, size_t experts, size_t count, bool normalize) {
    gb_cuda_tensor from = device_tensor(GB_F32, logits, 2, tokens, experts, 1);
    gb_cuda_tensor chosen = device_tensor(GB_I32, NULL, 2, tokens, count, 1),
                   weights = device_tensor(GB_F32, NULL, 2, tokens, count, 1);
    run_op(gb_cuda_route_top_k, &(gb_cuda_call){.node = &route_nodes[normalize],
                                                .operands = {&from},
                                                .results = {&chosen, &weights}});
    int32_t found[ROW_KINDS * MOST_CHOSEN];
    float found_weights[ROW_KINDS * MOST_CHOSEN];
    fetch_tensor(&chosen, found);
    fetch_tensor(&weights, found_weights);
    for (size_t m = 0; m < tokens; m++)
        compare_choice(logits + m * experts, experts, count, normalize, found + m * count,
                       found_weights + m * count);
    free_on_device(&from);
    free_on_device(&chosen);
    free_on_device(&weights);
}

static float logit_of_kind(enum row_kind kind, size_t expert, size_t odd, uint64_t *random) {
    const float few = (float)(next_random(random) % 3), other = 4 * next_float(random);
    switch (kind) {
    case SPREAD:
        return other;
    case ALL_EQUAL:
        return 0.5f;
    case NEIGHBORS:
        return 1 + few * 0x1p-23f;
    case UNDERFLOW:
        return expert == odd ? 150 : few;
    case ONE_WARPS:
        return expert / 32 == odd / 32 ? few : -INFINITY;
    case MANY_ABSENT:
        return expert == odd || next_random(random) % 16 == 0 ? few : -INFINITY;
    case NO_NUMBER:
        return expert == odd ? copysignf(NAN, other) : few;
    case INFINITE:
        return expert == odd ? INFINITY : few;
    case ALL_ABSENT:
        return -INFINITY;
    default:
        return few;
    }
}

/* A row of each kind. */
static void check_all_kinds(size_t experts, size_t count, bool normalize, uint64_t *random) {
    static float logits[ROW_KINDS * MOST_EXPERTS];
    for (int kind = 0; kind < ROW_KINDS; kind++) {
        const size_t odd = next_random(random) % experts;
        for (size_t e = 0; e < experts; e++)
            logits[(size_t)kind * experts + e] = logit_of_kind((enum row_kind)kind, e, odd, random);
    }
    check_route(logits, ROW_KINDS, experts, count, normalize);
}

/* A block of threads chooses up to 8 of up to 256, a warp does in other cases. */
static void chooses_the_largest(void **state) {
    (void)state;
    static const struct { size_t experts, count; } others[] = {{31, 31}, {256, 9}, {257, 8}, {300, 40}};
    uint64_t random = 21;
    for (size_t experts = 1; experts <= 256; experts += is_short_run()                  ? 17
                                                        : experts < 40 || experts > 250 ? 1
                                                                                        : 7)
        for (size_t count = 1; count <= 8 && count <= experts; count++)
            check_all_kinds(experts, count, (experts + count) % 2, &random);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        check_all_kinds(others[i].experts, others[i].count, i % 2, &random);
}

/* ---- All steps ----------------------------------------------------------------------------------------- */

/* What differs from Qwen3.5's: a shared expert or the residual that a model lacks, and what others have. */
enum {
    NOT_SHARED = 1,
    NO_RESIDUAL = 2,
    SCALED = 4,
    GELU = 8,
    NOT_ROTATED = 16,
    CLAMPED = 32,
    BIASED_INNER = 64,
    BIASED_DOWN = 128,
    BIASED = BIASED_INNER | BIASED_DOWN
};

/* An expert of more inner values has several warps in the second launch, of one token. */
enum { MOST_NARROW = 1024 };

typedef struct mixture {
    const gb_format *format, *of_down;
    size_t experts, choices, hidden, size;
    unsigned traits;
} mixture;

/* Those of MLX and of gumbel's quantizer, and GGUF's Q4_0 and Q4_1. */
static const gb_format bf16_64 = {GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_BF16, 64, 0},
                       f16_64 = {GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_F16, 64, 0},
                       centered_64 = {GB_FORMAT_ONE_LEVEL, 4, false, 0, GB_F16, 64, 0},
                       bf16_32 = {GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_BF16, 32, 0},
                       q4_0 = {GB_FORMAT_ONE_LEVEL, 4, false, 0, GB_F16, 32, 0},
                       q4_1 = {GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_F16, 32, 0};

/* Those with exact sums. */
static const gb_format exact_32 = {GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0},
                       exact_64 = {GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 64, 0},
                       exact_128 = {GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 128, 0};

/* Of rows in groups of 32 a warp has one, two or four groups, and the last part fewer than others. Rows of
 * more than 2048 columns are two rounds. */
static const mixture mixtures[] = {
    {&bf16_64, &bf16_64, 10, 3, 64, 64, 0},
    {&centered_64, &centered_64, 256, 8, 192, 128, 0},
    {&f16_64, &f16_64, 7, 1, 640, 576, 0},
    {&f16_64, &f16_64, 9, 8, 2048, 512, 0},
    {&bf16_64, &bf16_64, 300, 4, 128, 64, 0},
    {&bf16_32, &bf16_32, 10, 3, 64, 64, 0},
    {&q4_0, &q4_0, 4, 3, 2048, 512, 0},
    {&q4_1, &q4_1, 7, 1, 640, 576, 0},
    {&q4_0, &q4_0, 9, 3, 448, 320, 0},
    {&q4_0, &q4_1, 5, 2, 1088, 192, 0},
    {&bf16_64, &q4_0, 4, 2, 128, 1024, 0},
    {&f16_64, &f16_64, 16, 8, 256, 192, NOT_SHARED},
    {&q4_0, &q4_0, 9, 3, 448, 320, NOT_SHARED | NO_RESIDUAL | SCALED | GELU},
    {&bf16_64, &bf16_64, 300, 4, 128, 704, NOT_SHARED | NO_RESIDUAL | SCALED | GELU},
    {&bf16_64, &bf16_64, 10, 3, 64, 64, GELU},
    {&bf16_32, &bf16_32, 3, 2, 2112, 64, NOT_SHARED},
    {&bf16_64, &bf16_64, 3, 2, 2816, 704, NOT_SHARED | NO_RESIDUAL | SCALED | GELU},
    {&centered_64, &centered_64, 2, 1, MOST_HIDDEN, 64, 0},
    {&q4_0, &q4_1, 2, 1, MOST_HIDDEN, 64, 0},
    {&f16_64, &f16_64, 3, 2, 2112, 64, NOT_SHARED},
};

/* A fragment's warps have one block of columns or more, or none; rows of gate and up are a round or two,
 * those of down up to four. */
static const mixture exact_mixtures[] = {
    {&exact_32, &exact_32, 9, 8, 2048, 512, 0},
    {&exact_32, &exact_64, 10, 3, 128, 128, 0},
    {&exact_64, &exact_128, 256, 8, 256, 128, NOT_ROTATED},
    {&exact_128, &exact_32, 5, 2, 2176, 640, 0},
    {&exact_32, &exact_32, 2, 1, MOST_HIDDEN, 1024, 0},
    {&exact_32, &exact_32, 300, 4, 128, 384, NOT_SHARED | NO_RESIDUAL | SCALED | GELU},
    {&exact_64, &exact_64, 16, 8, 384, 128, NOT_SHARED},
    /* The last tiles of rows and of columns have zeros. */
    {&exact_32, &exact_32, 7, 3, 256, 192, NOT_SHARED | NO_RESIDUAL | SCALED | GELU},
    {&exact_64, &exact_64, 5, 2, 128, 704, NOT_SHARED},
    {&exact_32, &exact_64, 5, 2, 160, 192, NOT_SHARED | CLAMPED},
    {&exact_64, &exact_32, 9, 8, 128, 160, NOT_SHARED | CLAMPED | BIASED},
    {&exact_64, &exact_64, 3, 2, 128, 128, NOT_SHARED | CLAMPED | BIASED_INNER},
    {&exact_64, &exact_64, 3, 2, 128, 128, NOT_SHARED | CLAMPED | BIASED_DOWN},
    /* Wide experts; the last one is gpt-oss'. */
    {&exact_32, &exact_32, 5, 4, 320, 1056, NOT_SHARED | CLAMPED | BIASED},
    {&exact_128, &exact_128, 3, 2, 384, 3072, NOT_SHARED},
    {&exact_64, &exact_64, 3, 3, 128, 1152, 0},
    {&exact_32, &exact_32, 6, 4, 2880, 2880, NOT_SHARED | CLAMPED | BIASED},
};

static bool is_exact(const mixture *c) {
    return c->format->kind == GB_FORMAT_PROGRESSIVE;
}

/* Whether the mixture has that part of a step. */
static bool has_part(const mixture *c, int part) {
    if (part == GB_EXPERTS_WEIGHTS)
        return (c->traits & SCALED) != 0;
    if (part == GB_EXPERTS_RESULT)
        return !(c->traits & NO_RESIDUAL);
    if (part == GB_EXPERTS_GATE_BIASED || part == GB_EXPERTS_UP_BIASED)
        return (c->traits & BIASED_INNER) != 0;
    if (part == GB_EXPERTS_DOWN_BIASED)
        return (c->traits & BIASED_DOWN) != 0;
    if (part == GB_EXPERTS_ACTIVATION)
        return !(c->traits & CLAMPED);
    const bool is_shared = part == GB_EXPERTS_SHARED_GATE || part == GB_EXPERTS_SHARED_UP ||
                           (part >= GB_EXPERTS_SHARED_ACTIVATION && part <= GB_EXPERTS_BOTH);
    return !is_shared || !(c->traits & NOT_SHARED);
}

/* Random codes; small scales and biases. */
static gb_cuda_tensor new_weight(const gb_format *format, size_t experts, size_t rows, size_t columns,
                                 uint64_t *random) {
    gb_planes planes;
    gb_packing packing;
    size_t all = (experts ? experts : 1) * rows;
    assert_true(gb_format_planes(format, all, columns, &planes));
    uint8_t *data = malloc(planes.size);
    assert_non_null(data);
    for (uint64_t i = 0; i < planes.size; i++)
        data[i] = (uint8_t)next_random(random);
    const bool is_of_groups = format->kind == GB_FORMAT_PROGRESSIVE;
    for (uint64_t g = 0; is_of_groups && g < planes.scales.row_bytes * all; g++)
        data[planes.scales.offset + g] = random_group(format->bits, random);
    const gb_plane halves[] = {is_of_groups ? planes.super_scales : planes.scales, planes.biases};
    for (int p = 0; p < 2; p++)
        for (uint64_t i = 0; i < halves[p].row_bytes / 2 * all; i++) {
            float value = 0.02f * next_float(random);
            uint16_t half = format->scale == GB_BF16 ? gb_bf16_from_float(value) : gb_f16_from_float(value);
            memcpy(data + halves[p].offset + 2 * i, &half, sizeof half);
        }
    uint8_t *packed = is_of_groups
                          ? pack_in_tiles(format, rows, columns, experts ? experts : 1, data, &planes)
                          : malloc(planes.size);
    assert_non_null(packed);
    if (!is_of_groups) {
        assert_true(gb_packing_fragments(format, all, columns, &packing));
        gb_pack_matrix(&packing, format, all, columns, data, packed);
    }
    gb_cuda_tensor result = {.dtype = GB_QUANTIZED,
                             .rank = experts ? 3 : 2,
                             .format = *format,
                             .planes = planes,
                             .is_packed = true,
                             .int8_input = !is_of_groups,
                             .data = device_copy(packed, planes.size)};
    result.dims[0] = experts ? experts : rows;
    result.dims[1] = experts ? rows : columns;
    result.dims[2] = experts ? columns : 0;
    free(data);
    free(packed);
    return result;
}

static gb_cuda_tensor new_rows(size_t rows, size_t width, uint64_t *random) {
    float *values = malloc(rows * width * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < rows * width; i++)
        values[i] = next_float(random);
    gb_cuda_tensor result = device_tensor(GB_F32, values, 2, rows, width, 1);
    free(values);
    return result;
}

/* What the steps take. */
typedef struct inputs {
    gb_cuda_tensor scales, x, residual, router, shared_router, gate_up, down, shared_gate, shared_up,
        shared_down, gate_bias, up_bias, down_bias;
} inputs;

static inputs new_inputs(const mixture *c) {
    uint64_t random = 31;
    return (inputs){
        .scales = new_rows(c->experts, 1, &random),
        .x = new_rows(MOST_TOKENS, c->hidden, &random),
        .residual = new_rows(MOST_TOKENS, c->hidden, &random),
        .router = new_rows(c->experts, c->hidden, &random),
        .shared_router = new_rows(1, c->hidden, &random),
        .gate_up = new_weight(c->format, c->experts, 2 * c->size, c->hidden, &random),
        .down = new_weight(c->of_down, c->experts, c->hidden, c->size, &random),
        .shared_gate = new_weight(c->format, 0, c->size, c->hidden, &random),
        .shared_up = new_weight(c->format, 0, c->size, c->hidden, &random),
        .shared_down = new_weight(c->of_down, 0, c->hidden, c->size, &random),
        .gate_bias = new_rows(c->experts, c->size, &random),
        .up_bias = new_rows(c->experts, c->size, &random),
        .down_bias = new_rows(c->experts, c->hidden, &random),
    };
}

static void free_inputs(const inputs *i) {
    const gb_cuda_tensor *all[] = {&i->scales,        &i->x,           &i->residual,  &i->router,
                                   &i->shared_router, &i->gate_up,     &i->down,      &i->shared_gate,
                                   &i->shared_up,     &i->shared_down, &i->gate_bias, &i->up_bias,
                                   &i->down_bias};
    for (size_t t = 0; t < sizeof all / sizeof *all; t++)
        free_on_device(all[t]);
}

/* A tensor's rows from `first` on. */
static gb_cuda_tensor rows_from(const gb_cuda_tensor *tensor, size_t first, size_t rows) {
    gb_cuda_tensor part = *tensor;
    part.data = (float *)tensor->data + first * tensor->dims[1];
    part.dims[0] = rows;
    return part;
}

typedef void (*op_launch)(const gb_cuda_call *call);

static const op_launch alone[GB_EXPERTS_PARTS] = {
    [GB_EXPERTS_SHARED_GATE] = launch_linear,
    [GB_EXPERTS_SHARED_UP] = launch_linear,
    [GB_EXPERTS_ROUTE] = gb_cuda_route_top_k,
    [GB_EXPERTS_WEIGHTS] = launch_expert_linear,
    [GB_EXPERTS_GATE_UP] = launch_expert_linear,
    [GB_EXPERTS_GATE] = gb_cuda_slice,
    [GB_EXPERTS_UP] = gb_cuda_slice,
    [GB_EXPERTS_GATE_BIASED] = gb_cuda_add_expert_bias,
    [GB_EXPERTS_UP_BIASED] = gb_cuda_add_expert_bias,
    [GB_EXPERTS_ACTIVATION] = gb_cuda_silu,
    [GB_EXPERTS_INNER] = gb_cuda_multiply,
    [GB_EXPERTS_DOWN] = launch_expert_linear,
    [GB_EXPERTS_DOWN_BIASED] = gb_cuda_add_expert_bias,
    [GB_EXPERTS_COMBINE] = gb_cuda_combine_experts,
    [GB_EXPERTS_SHARED_ACTIVATION] = gb_cuda_silu,
    [GB_EXPERTS_SHARED_INNER] = gb_cuda_multiply,
    [GB_EXPERTS_SHARED_DOWN] = launch_linear,
    [GB_EXPERTS_SHARED_FACTOR] = gb_cuda_sigmoid,
    [GB_EXPERTS_SHARED] = gb_cuda_scale_rows,
    [GB_EXPERTS_BOTH] = gb_cuda_add,
    [GB_EXPERTS_RESULT] = gb_cuda_add,
};

static gb_cuda_tensor result_of(const mixture *c, int step, size_t tokens) {
    switch (step) {
    case GB_EXPERTS_ROUTE:
        return device_tensor(GB_I32, NULL, 2, tokens, c->choices, 1);
    case GB_EXPERTS_WEIGHTS:
        return device_tensor(GB_F32, NULL, 3, tokens, c->choices, 1);
    case GB_EXPERTS_GATE_UP:
        return device_tensor(GB_F32, NULL, 3, tokens, c->choices, 2 * c->size);
    case GB_EXPERTS_GATE:
    case GB_EXPERTS_UP:
    case GB_EXPERTS_GATE_BIASED:
    case GB_EXPERTS_UP_BIASED:
    case GB_EXPERTS_ACTIVATION:
    case GB_EXPERTS_INNER:
        return device_tensor(GB_F32, NULL, 3, tokens, c->choices, c->size);
    case GB_EXPERTS_DOWN:
    case GB_EXPERTS_DOWN_BIASED:
        return device_tensor(GB_F32, NULL, 3, tokens, c->choices, c->hidden);
    case GB_EXPERTS_SHARED_GATE:
    case GB_EXPERTS_SHARED_UP:
    case GB_EXPERTS_SHARED_ACTIVATION:
    case GB_EXPERTS_SHARED_INNER:
        return device_tensor(GB_F32, NULL, 2, tokens, c->size, 1);
    case GB_EXPERTS_SHARED_FACTOR:
        return device_tensor(GB_F32, NULL, 2, tokens, 1, 1);
    default:
        return device_tensor(GB_F32, NULL, 2, tokens, c->hidden, 1);
    }
}

static op_launch launch_alone(const gb_cuda_call *call, int part) {
    if (call->node->op == GB_OP_CLAMPED_SWIGLU)
        return gb_cuda_clamped_swiglu;
    return call->node->op == GB_OP_GELU_TANH ? gb_cuda_gelu_tanh : alone[part];
}

/* Together where that is wanted and they are taken so, which it returns. */
static bool launch_steps(const mixture *c, const gb_cuda_tensor *const *operands, gb_cuda_call *calls,
                         bool together) {
    const gb_cuda_call *list[GB_EXPERTS_PARTS] = {0};
    const int last = has_part(c, GB_EXPERTS_RESULT) ? GB_EXPERTS_RESULT : GB_EXPERTS_COMBINE;
    const gb_cuda_problem problem = {operands, list, GB_EXPERTS_PARTS, 1u << last};
    for (int i = 0; i < GB_EXPERTS_PARTS; i++)
        list[i] = has_part(c, i) ? &calls[i] : NULL;
    const bool are_fused = together && launch_fused(GB_FUSED_EXPERTS, &problem);
    for (int i = 0; i < GB_EXPERTS_PARTS && !are_fused; i++)
        if (list[i])
            run_op(launch_alone(list[i], i), list[i]);
    assert_cuda(cudaGetLastError());
    return are_fused;
}

/* Products with exact sums say so. */
static void name_products(const mixture *c, gb_node *nodes) {
    static const int products[] = {GB_EXPERTS_SHARED_GATE, GB_EXPERTS_SHARED_UP, GB_EXPERTS_GATE_UP,
                                   GB_EXPERTS_DOWN, GB_EXPERTS_SHARED_DOWN};
    for (size_t i = 0; is_exact(c) && i < sizeof products / sizeof *products; i++) {
        const bool is_down = products[i] == GB_EXPERTS_DOWN || products[i] == GB_EXPERTS_SHARED_DOWN;
        const int64_t largest = (is_down ? c->size : c->hidden) % 256 == 0 ? 256 : 128;
        nodes[products[i]] =
            (gb_node){.attribute_count = 2,
                      .attributes = {gb_int(GB_ATTRIBUTE_ACTIVATION, GB_ACTIVATION_INT8_PER_TOKEN),
                                     gb_int(GB_ATTRIBUTE_ROTATION, c->traits & NOT_ROTATED ? 0 : largest)}};
    }
}

/* Bytes that the products take one by one, and all steps together. */
static size_t scratch_bytes(const mixture *c, size_t tokens, const gb_cuda_call *calls) {
    size_t most = tokens * (c->choices + 1) * (c->size + 2) * sizeof(float);
    for (int i = 0; i < GB_EXPERTS_PARTS; i++) {
        const bool is_linear = alone[i] == launch_linear;
        if (!is_linear && alone[i] != launch_expert_linear)
            continue;
        const size_t bytes =
            scratch_from(is_linear ? &gb_cuda_linear_kernels : &gb_cuda_expert_linear_kernels, &calls[i]);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* y = the mixture of tokens first .. first + tokens - 1. Returns whether its steps were launched together. */
static bool mix(const mixture *c, const inputs *in, size_t first, size_t tokens, bool together, float *y) {
    gb_node nodes[GB_EXPERTS_PARTS] = {[GB_EXPERTS_ROUTE] = route_nodes[1]};
    const gb_attribute starts[] = {{GB_ATTRIBUTE_START, GB_ATTRIBUTE_INT, {.i = 0}},
                                   {GB_ATTRIBUTE_START, GB_ATTRIBUTE_INT, {.i = (int64_t)c->size}}};
    for (int i = 0; i < 2; i++) {
        nodes[GB_EXPERTS_GATE + i].attribute_count = 1;
        nodes[GB_EXPERTS_GATE + i].attributes[0] = starts[i];
    }
    for (int i = 0; i < 2; i++)
        nodes[i ? GB_EXPERTS_ACTIVATION : GB_EXPERTS_SHARED_ACTIVATION].op =
            c->traits & GELU ? GB_OP_GELU_TANH : GB_OP_SILU;
    if (c->traits & CLAMPED)
        nodes[GB_EXPERTS_INNER] =
            (gb_node){.op = GB_OP_CLAMPED_SWIGLU,
                      .attribute_count = 2,
                      .attributes = {gb_float(GB_ATTRIBUTE_ALPHA, 1.702), gb_float(GB_ATTRIBUTE_LIMIT, 0.5)}};
    name_products(c, nodes);
    gb_cuda_tensor x = rows_from(&in->x, first, tokens), residual = rows_from(&in->residual, first, tokens),
                   r[GB_EXPERTS_PARTS], weights = device_tensor(GB_F32, NULL, 2, tokens, c->choices, 1),
                   logits = device_tensor(GB_F32, NULL, 2, tokens, c->experts, 1),
                   shared_logit = device_tensor(GB_F32, NULL, 2, tokens, 1, 1);
    static const uint32_t zeros[GB_CUDA_ARRIVALS];
    gb_cuda_scratch scratch = {.wgmma_blocks = gb_cuda_wgmma_blocks(),
                               .arrivals = device_copy(zeros, sizeof zeros)};
    gb_cuda_call calls[GB_EXPERTS_PARTS];
    for (int i = 0; i < GB_EXPERTS_PARTS; i++) {
        r[i] = result_of(c, i, tokens);
        calls[i] = (gb_cuda_call){.node = &nodes[i], .results = {&r[i]}, .scratch = &scratch};
    }
    calls[GB_EXPERTS_ROUTE].results[1] = &weights;
    gb_cuda_tensor plain = weights, scaled = r[GB_EXPERTS_WEIGHTS], scales = in->scales;
    plain.rank = scales.rank = 3;
    plain.dims[2] = scales.dims[2] = 1;
    scaled.rank = 2;
    const bool is_biased = (c->traits & BIASED_INNER) != 0, has_down_bias = (c->traits & BIASED_DOWN) != 0;
    const int gate = is_biased             ? GB_EXPERTS_GATE_BIASED
                     : c->traits & CLAMPED ? GB_EXPERTS_GATE
                                           : GB_EXPERTS_ACTIVATION;
    const gb_cuda_tensor *operands[GB_EXPERTS_PARTS][3] = {
        [GB_EXPERTS_SHARED_GATE] = {&x, &in->shared_gate},
        [GB_EXPERTS_SHARED_UP] = {&x, &in->shared_up},
        [GB_EXPERTS_ROUTE] = {&logits},
        [GB_EXPERTS_WEIGHTS] = {&plain, &scales, &r[GB_EXPERTS_ROUTE]},
        [GB_EXPERTS_GATE_UP] = {&x, &in->gate_up, &r[GB_EXPERTS_ROUTE]},
        [GB_EXPERTS_GATE] = {&r[GB_EXPERTS_GATE_UP]},
        [GB_EXPERTS_UP] = {&r[GB_EXPERTS_GATE_UP]},
        [GB_EXPERTS_GATE_BIASED] = {&r[GB_EXPERTS_GATE], &in->gate_bias, &r[GB_EXPERTS_ROUTE]},
        [GB_EXPERTS_UP_BIASED] = {&r[GB_EXPERTS_UP], &in->up_bias, &r[GB_EXPERTS_ROUTE]},
        [GB_EXPERTS_ACTIVATION] = {&r[GB_EXPERTS_GATE]},
        [GB_EXPERTS_INNER] = {&r[gate], &r[is_biased ? GB_EXPERTS_UP_BIASED : GB_EXPERTS_UP]},
        [GB_EXPERTS_DOWN] = {&r[GB_EXPERTS_INNER], &in->down, &r[GB_EXPERTS_ROUTE]},
        [GB_EXPERTS_DOWN_BIASED] = {&r[GB_EXPERTS_DOWN], &in->down_bias, &r[GB_EXPERTS_ROUTE]},
        [GB_EXPERTS_COMBINE] = {&r[has_down_bias ? GB_EXPERTS_DOWN_BIASED : GB_EXPERTS_DOWN],
                                has_part(c, GB_EXPERTS_WEIGHTS) ? &scaled : &weights},
        [GB_EXPERTS_SHARED_ACTIVATION] = {&r[GB_EXPERTS_SHARED_GATE]},
        [GB_EXPERTS_SHARED_INNER] = {&r[GB_EXPERTS_SHARED_ACTIVATION], &r[GB_EXPERTS_SHARED_UP]},
        [GB_EXPERTS_SHARED_DOWN] = {&r[GB_EXPERTS_SHARED_INNER], &in->shared_down},
        [GB_EXPERTS_SHARED_FACTOR] = {&shared_logit},
        [GB_EXPERTS_SHARED] = {&r[GB_EXPERTS_SHARED_DOWN], &r[GB_EXPERTS_SHARED_FACTOR]},
        [GB_EXPERTS_BOTH] = {&r[GB_EXPERTS_COMBINE], &r[GB_EXPERTS_SHARED]},
        [GB_EXPERTS_RESULT] = {&residual,
                               &r[has_part(c, GB_EXPERTS_BOTH) ? GB_EXPERTS_BOTH : GB_EXPERTS_COMBINE]},
    };
    for (int i = 0; i < GB_EXPERTS_PARTS; i++)
        memcpy(calls[i].operands, operands[i], sizeof operands[i]);
    scratch.bytes = device_copy(NULL, scratch_bytes(c, tokens, calls));
    const gb_cuda_call routers[] = {
        {.operands = {&x, &in->router}, .results = {&logits}, .scratch = &scratch},
        {.operands = {&x, &in->shared_router}, .results = {&shared_logit}, .scratch = &scratch}};
    const bool is_shared = has_part(c, GB_EXPERTS_SHARED);
    const gb_cuda_tensor *const of_step[GB_EXPERTS_OPERANDS] = {
        [GB_EXPERTS_SCALES] = has_part(c, GB_EXPERTS_WEIGHTS) ? &scales : NULL,
        [GB_EXPERTS_GATE_BIAS] = is_biased ? &in->gate_bias : NULL,
        [GB_EXPERTS_UP_BIAS] = is_biased ? &in->up_bias : NULL,
        [GB_EXPERTS_DOWN_BIAS] = has_down_bias ? &in->down_bias : NULL,
        [GB_EXPERTS_X] = &x,
        [GB_EXPERTS_LOGITS] = &logits,
        [GB_EXPERTS_SHARED_LOGIT] = is_shared ? &shared_logit : NULL,
        [GB_EXPERTS_RESIDUAL] = has_part(c, GB_EXPERTS_RESULT) ? &residual : NULL,
        [GB_EXPERTS_GATE_UP_WEIGHT] = &in->gate_up,
        [GB_EXPERTS_DOWN_WEIGHT] = &in->down,
        [GB_EXPERTS_SHARED_GATE_WEIGHT] = is_shared ? &in->shared_gate : NULL,
        [GB_EXPERTS_SHARED_UP_WEIGHT] = is_shared ? &in->shared_up : NULL,
        [GB_EXPERTS_SHARED_DOWN_WEIGHT] = is_shared ? &in->shared_down : NULL,
    };
    for (int i = 0; i < 2; i++)
        launch_linear(&routers[i]);
    const bool were_together = launch_steps(c, of_step, calls, together);
    fetch_tensor(&r[has_part(c, GB_EXPERTS_RESULT) ? GB_EXPERTS_RESULT : GB_EXPERTS_COMBINE], y);
    for (int i = 0; i < GB_EXPERTS_PARTS; i++)
        free_on_device(&r[i]);
    free_on_device(&weights);
    free_on_device(&logits);
    free_on_device(&shared_logit);
    assert_cuda(cudaFree(scratch.bytes));
    assert_cuda(cudaFree(scratch.arrivals));
    return were_together;
}

static void has_the_bits_of_the_steps(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof mixtures / sizeof *mixtures; i += is_short_run() ? 2 : 1) {
        const mixture *c = &mixtures[i];
        inputs in = new_inputs(c);
        float expected[MOST_TOKENS * MOST_HIDDEN], found[MOST_TOKENS * MOST_HIDDEN];
        mix(c, &in, 0, MOST_TOKENS, false, expected);
        assert_true(mix(c, &in, 0, MOST_TOKENS, true, found));
        assert_memory_equal(found, expected, MOST_TOKENS * c->hidden * sizeof *found);
        assert_true(mix(c, &in, MOST_TOKENS - 1, 1, true, found));
        assert_memory_equal(found, expected + (MOST_TOKENS - 1) * c->hidden, c->hidden * sizeof *found);
        free_inputs(&in);
    }
}

/* Of several tokens each block of threads has some fragments, and a token has the bits that it has alone. */
static void has_the_bits_of_exact_steps(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof exact_mixtures / sizeof *exact_mixtures; i++) {
        const mixture *c = &exact_mixtures[i];
        inputs in = new_inputs(c);
        float expected[MOST_TOKENS * MOST_HIDDEN], found[MOST_TOKENS * MOST_HIDDEN];
        mix(c, &in, 0, MOST_TOKENS, false, expected);
        assert_true(mix(c, &in, 0, MOST_TOKENS, true, found) == (c->size <= MOST_NARROW));
        assert_memory_equal(found, expected, MOST_TOKENS * c->hidden * sizeof *found);
        for (size_t token = 0; token < MOST_TOKENS; token += is_short_run() ? MOST_TOKENS - 1 : 1) {
            assert_true(mix(c, &in, token, 1, true, found));
            assert_memory_equal(found, expected + token * c->hidden, c->hidden * sizeof *found);
        }
        free_inputs(&in);
    }
}

/* What the kernels have no room for they leave as it is, to be launched one by one: more choices, rows that
 * are too wide, and outputs of which two stages may not fit in the device's shared memory. */
static void leaves_what_is_too_large(void **state) {
    (void)state;
    enum { WIDEST = MOST_HIDDEN + 64 };
    static const struct {
        size_t experts, choices, hidden, size;
    } large[] = {{12, 9, 64, 64}, {4, 2, 64, 1088}, {4, 2, WIDEST, 64}, {8, 8, 1024, 1024}};
    for (size_t i = 0; i < (size_t)shortened(sizeof large / sizeof *large, 3); i++) {
        const mixture c = {&bf16_64,      &bf16_64, large[i].experts, large[i].choices, large[i].hidden,
                           large[i].size, 0};
        inputs in = new_inputs(&c);
        float expected[MOST_TOKENS * WIDEST], found[MOST_TOKENS * WIDEST];
        mix(&c, &in, 0, MOST_TOKENS, false, expected);
        const bool were_together = mix(&c, &in, 0, MOST_TOKENS, true, found);
        assert_true(!were_together || i == 3);
        assert_memory_equal(found, expected, MOST_TOKENS * c.hidden * sizeof *found);
        free_inputs(&in);
    }
}

static void leaves_large_exact_ones(void **state) {
    (void)state;
    static const mixture large[] = {{&exact_32, &exact_32, 12, 9, 128, 128, 0},
                                    {&exact_32, &exact_32, 2, 1, MOST_HIDDEN + 128, 128, 0},
                                    {&exact_32, &exact_32, 2, 1, 128, 3 * MOST_NARROW + 128, 0},
                                    {&exact_32, &exact_32, 4, 4, 128, MOST_NARROW + 128, 0}};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        inputs in = new_inputs(&large[i]);
        float y[MOST_HIDDEN + 128];
        assert_false(mix(&large[i], &in, 0, 1, true, y));
        free_inputs(&in);
    }
}

/* Codes of 8 bits, and groups of 128, are launched one by one. */
static void leaves_other_formats(void **state) {
    (void)state;
    static const gb_format q8_0 = {GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 32, 0},
                           bf16_128 = {GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_BF16, 128, 0};
    static const mixture others[] = {{&q4_0, &q8_0, 4, 2, 64, 64, 0},
                                     {&q8_0, &q4_0, 4, 2, 64, 64, 0},
                                     {&bf16_128, &bf16_128, 4, 2, 128, 128, 0}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        inputs in = new_inputs(&others[i]);
        float y[MOST_TOKENS * 128];
        assert_false(mix(&others[i], &in, 0, MOST_TOKENS, true, y));
        free_inputs(&in);
    }
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chooses_the_largest),         cmocka_unit_test(has_the_bits_of_the_steps),
        cmocka_unit_test(has_the_bits_of_exact_steps), cmocka_unit_test(leaves_what_is_too_large),
        cmocka_unit_test(leaves_large_exact_ones),     cmocka_unit_test(leaves_other_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
