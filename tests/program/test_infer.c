/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape rules: what each op of ops.def makes of its operands, and what it refuses.
 */
#include "program/infer.h"
#include "program/signature.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_TEXT_OPERANDS = GB_MAX_OPERANDS + 1 };

/* "f32[N,4]", after "constant " or "state ", as an operand; anything else is a result. */
static gb_operand_type parse_operand(const char *text) {
    gb_operand_type operand = {.kind = GB_VALUE_RESULT};
    if (strncmp(text, "constant ", 9) == 0)
        operand.kind = GB_VALUE_CONSTANT, text += 9;
    else if (strncmp(text, "state ", 6) == 0)
        operand.kind = GB_VALUE_STATE, text += 6;
    size_t length = strcspn(text, "[");
    for (int dtype = 1; dtype < GB_DTYPE_COUNT; dtype++) {
        if (strlen(gb_dtype_name((gb_dtype)dtype)) == length &&
            strncmp(text, gb_dtype_name((gb_dtype)dtype), length) == 0)
            operand.type.dtype = (gb_dtype)dtype;
    }
    for (text += length + 1; *text && *text != ']'; text += *text == ',') {
        char *end;
        int64_t *dim = &operand.type.shape.dims[operand.type.shape.rank++];
        if (*text == 'N' || *text == 'B')
            *dim = *text++ == 'N' ? GB_DIM_N : GB_DIM_B;
        else
            *dim = strtoll(text, &end, 10), text = end;
    }
    return operand;
}

typedef struct infer_case {
    gb_op op;
    const char *operands[MAX_TEXT_OPERANDS];
    gb_attribute attributes[GB_MAX_ATTRIBUTES];
    const char *expected; /* the result's type, or the message */
} infer_case;

#define INT(NAME, value)                                                                                     \
    { .key = GB_ATTRIBUTE_##NAME, .type = GB_ATTRIBUTE_INT, .i = value }
#define FLOAT(NAME, value)                                                                                   \
    { .key = GB_ATTRIBUTE_##NAME, .type = GB_ATTRIBUTE_FLOAT, .f = value }

static bool routes(gb_op op) {
    return op == GB_OP_ROUTE_TOP_K || op == GB_OP_ROUTE_SIGMOID;
}

static gumbel_status infer(const infer_case *test, gb_type *result, gumbel_error *error) {
    gb_operand_type operands[MAX_TEXT_OPERANDS];
    gb_type results[GB_MAX_RESULTS] = {{0}};
    uint32_t operand_count = 0, attribute_count = 0, result_count = 0;
    while (operand_count < MAX_TEXT_OPERANDS && test->operands[operand_count]) {
        operands[operand_count] = parse_operand(test->operands[operand_count]);
        operand_count++;
    }
    while (attribute_count < GB_MAX_ATTRIBUTES && test->attributes[attribute_count].type)
        attribute_count++;
    gumbel_status status = gb_infer(test->op, operands, operand_count, test->attributes, attribute_count,
                                    results, &result_count, error);
    *result = results[0];
    if (status == GUMBEL_OK)
        assert_int_equal(result_count, test->op == GB_OP_IF ? 0 : routes(test->op) ? 2 : 1);
    return status;
}

static void assert_infers(const infer_case *test) {
    gb_type result;
    gumbel_error error = {0};
    char text[GB_TYPE_TEXT];
    if (infer(test, &result, &error) != GUMBEL_OK)
        fail_msg("%s: %s", gb_op_find(test->op)->name, error.message);
    if (test->op != GB_OP_IF)
        assert_string_equal(gb_type_text(&result, text), test->expected);
}

static void assert_refuses(const infer_case *test) {
    gb_type result;
    gumbel_error error = {0};
    assert_int_equal(infer(test, &result, &error), GUMBEL_ERROR_FORMAT);
    assert_string_equal(error.message, test->expected);
}

static void every_line_of_the_table_parses(void **state) {
    (void)state;
    for (uint32_t number = 0; number < GB_OP_LIMIT; number++) {
        const gb_op_info *info = gb_op_find(number);
        gb_signature signature;
        gb_attribute_pattern patterns[GB_MAX_ATTRIBUTES];
        if (!info)
            continue;
        assert_int_equal(info->op, number);
        if (!gb_signature_parse(info, &signature))
            fail_msg("the signature of %s cannot be read", info->name);
        assert_true(signature.operand_count > 0 && signature.result_count > 0);
        uint32_t count = gb_attribute_patterns(info, patterns);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_not_equal(patterns[i].key, GB_ATTRIBUTE_NONE);
            assert_int_equal(gb_op_attribute_type(info->op, patterns[i].key), patterns[i].type);
            assert_non_null(strstr(info->attributes, gb_attribute_name(patterns[i].key)));
        }
    }
    assert_null(gb_op_find(0));
    assert_null(gb_op_find(UINT32_MAX));
}

static const infer_case good_cases[] = {
    {GB_OP_EMBEDDING, {"constant bf16[9,4]", "i32[N]"}, {{0}}, "f32[N,4]"},
    {GB_OP_EMBEDDING, {"constant f16[9,4]", "i32[N]"}, {FLOAT(SCALE, 2)}, "f32[N,4]"},
    {GB_OP_LINEAR, {"f32[B,4]", "constant f32[7,4]"}, {{0}}, "f32[B,7]"},
    {GB_OP_RMS_NORM, {"f32[N,2,4]", "constant f32[4]"}, {FLOAT(EPSILON, 1e-6)}, "f32[N,2,4]"},
    {GB_OP_RMS_NORM, {"f32[N,2,4]"}, {FLOAT(EPSILON, 0)}, "f32[N,2,4]"},
    {GB_OP_SPLIT_HEADS, {"f32[N,12]"}, {INT(HEADS, 3)}, "f32[N,3,4]"},
    {GB_OP_MERGE_HEADS, {"f32[N,3,4]"}, {{0}}, "f32[N,12]"},
    {GB_OP_ROPE, {"f32[N,2,8]", "i32[N]", "constant f32[3]"}, {INT(PAIR_OFFSET, 4)}, "f32[N,2,8]"},
    {GB_OP_ROPE,
     {"f32[N,2,8]", "i32[N]", "constant f32[3]"},
     {INT(PAIR_OFFSET, 3), FLOAT(SCALE, 1.5), INT(START, 1)},
     "f32[N,2,8]"},
    {GB_OP_ATTENTION,
     {"f32[N,4,8]", "f32[N,2,8]", "f32[N,2,6]", "i32[N]", "i32[N]", "state bf16[16,2,8]",
      "state bf16[16,2,6]"},
     {FLOAT(SCALE, 1)},
     "f32[N,4,6]"},
    {GB_OP_ATTENTION,
     {"f32[N,4,8]", "f32[N,2,8]", "f32[N,2,6]", "i32[N]", "i32[N]", "state bf16[16,2,8]",
      "state bf16[16,2,6]", "constant bf16[4]"},
     {FLOAT(SCALE, 1)},
     "f32[N,4,6]"},
    {GB_OP_ADD_EXPERT_BIAS, {"f32[N,2,6]", "constant bf16[9,6]", "i32[N,2]"}, {{0}}, "f32[N,2,6]"},
    {GB_OP_CLAMPED_SWIGLU, {"f32[N,2,6]", "f32[N,2,6]"}, {FLOAT(ALPHA, 1.5), FLOAT(LIMIT, 7)}, "f32[N,2,6]"},
    {GB_OP_ADD, {"f32[N,2,3]", "f32[N,2,3]"}, {{0}}, "f32[N,2,3]"},
    {GB_OP_ADD_BIAS, {"f32[N,4]", "constant bf16[4]"}, {{0}}, "f32[N,4]"},
    {GB_OP_SCALE, {"f32[N,4]", "constant f32[1]"}, {{0}}, "f32[N,4]"},
    {GB_OP_GATHER_ROWS, {"f32[N,4]", "i32[B]"}, {{0}}, "f32[B,4]"},
    {GB_OP_SLICE, {"f32[N,2,8]"}, {INT(START, 3), INT(COUNT, 5)}, "f32[N,2,5]"},
    {GB_OP_CONCATENATE, {"f32[N,8]", "f32[N,3]"}, {{0}}, "f32[N,11]"},
    {GB_OP_CONCATENATE, {"f32[N,2,8]", "f32[N,2,8]"}, {{0}}, "f32[N,2,16]"},
    {GB_OP_ALL_GATHER, {"f32[N,2,8]"}, {INT(RANKS, 3), INT(SECTIONS, 2)}, "f32[N,2,24]"},
    {GB_OP_L2_NORMALIZE, {"f32[N,2,4]"}, {FLOAT(EPSILON, 0)}, "f32[N,2,4]"},
    {GB_OP_CAUSAL_CONV, {"f32[N,6]", "constant bf16[6,1,4]", "i32[N]", "state f32[3,6]"}, {{0}}, "f32[N,6]"},
    {GB_OP_DELTA_DECAY, {"f32[N,3]", "constant f32[3]", "constant bf16[3]"}, {{0}}, "f32[N,3]"},
    {GB_OP_GATED_DELTA,
     {"f32[N,2,8]", "f32[N,2,8]", "f32[N,4,6]", "f32[N,4]", "f32[N,4]", "i32[N]", "state f32[4,8,6]"},
     {INT(TILED, 1)},
     "f32[N,4,6]"},
    {GB_OP_ROUTE_TOP_K, {"f32[N,8]"}, {INT(COUNT, 8)}, "i32[N,8]"},
    {GB_OP_ROUTE_SIGMOID, {"f32[N,8]", "constant f32[8]"}, {INT(COUNT, 3)}, "i32[N,3]"},
    {GB_OP_SOFTPLUS, {"f32[N,3]"}, {{0}}, "f32[N,3]"},
    {GB_OP_RELU_SQUARED, {"f32[N,2,3]"}, {{0}}, "f32[N,2,3]"},
    {GB_OP_SCALE_COLUMNS, {"f32[N,6]", "constant bf16[3]"}, {{0}}, "f32[N,6]"},
    {GB_OP_EXPERT_LINEAR, {"f32[N,4]", "constant f16[8,5,4]", "i32[N,3]"}, {{0}}, "f32[N,3,5]"},
    {GB_OP_EXPERT_LINEAR, {"f32[B,3,4]", "constant f16[8,5,4]", "i32[B,3]"}, {{0}}, "f32[B,3,5]"},
    {GB_OP_COMBINE_EXPERTS, {"f32[N,3,5]", "f32[N,3]"}, {{0}}, "f32[N,5]"},
    {GB_OP_SCALE_ROWS, {"f32[N,5]", "f32[N,1]"}, {{0}}, "f32[N,5]"},
    {GB_OP_ANY_FALSE, {"bool[B]"}, {{0}}, "bool[]"},
    {GB_OP_IF, {"bool[]"}, {{0}}, ""},
    {GB_OP_SELECT, {"bool[B]", "i32[B]", "i32[B]"}, {{0}}, "i32[B]"},
    {GB_OP_FILL_LIKE, {"f32[B]"}, {FLOAT(VALUE, 1)}, "f32[B]"},
    {GB_OP_TOP_K_MASK, {"f32[B,9]", "bool[B,9]", "i32[B]"}, {{0}}, "bool[B,9]"},
    {GB_OP_RANDOM_BITS, {"u64[B]"}, {INT(COUNT, 9)}, "u32[B,9]"},
    {GB_OP_ARGMAX, {"f32[B,9]"}, {{0}}, "i32[B]"},
    {GB_OP_ARGMAX, {"f32[B,9]", "bool[B,9]"}, {{0}}, "i32[B]"},
    {GB_OP_ARGMAX, {"f32[B,8388607]"}, {{0}}, "i32[B]"},
    {GB_OP_APPLY_BIAS, {"f32[B,9]", "i32[B,3]", "f32[B,3]"}, {{0}}, "f32[B,9]"},
    {GB_OP_COUNT_TOKENS,
     {"i32[N]", "i32[N]", "i32[N]", "i32[B]", "i32[B]", "state i32[64]"},
     {{0}},
     "i32[B,64,3]"},
    {GB_OP_PENALIZE, {"f32[B,9]", "i32[B,64,3]", "f32[B]", "f32[B]", "f32[B]", "i32[B]"}, {{0}}, "f32[B,9]"},
    {GB_OP_MIN_P_MASK, {"f32[B,9]", "bool[B,9]", "f32[B]"}, {{0}}, "bool[B,9]"},
    {GB_OP_LOG_NORMALIZER, {"f32[B,9]", "bool[B]"}, {{0}}, "f32[B,2]"},
    {GB_OP_LOG_PROBABILITY, {"f32[B,9]", "f32[B,2]", "i32[B]"}, {{0}}, "f32[B]"},
    {GB_OP_LOG_PROBABILITY, {"f32[B,9]", "f32[B,2]", "i32[B,4]"}, {{0}}, "f32[B,4]"},
    {GB_OP_TOP_IDS, {"f32[B,9]", "bool[B]"}, {INT(COUNT, 9)}, "i32[B,9]"},
    {GB_OP_APPLY_MASK, {"f32[B,33]", "bool[B]", "u32[B,2]"}, {{0}}, "f32[B,33]"},
    {GB_OP_KEEP_HIDDEN, {"f32[N,8]", "i32[N]", "i32[N]", "state bf16[64,1,8]"}, {{0}}, "f32[N,8]"},
    {GB_OP_KEEP_HIDDEN, {"f32[N,8]", "i32[N]", "i32[N]", "state f32[64,1,8]"}, {INT(START, 1)}, "f32[N,8]"},
    {GB_OP_LOAD_HIDDEN, {"i32[N]", "i32[N]", "state f32[64,1,8]"}, {{0}}, "f32[N,8]"},
    {GB_OP_LOAD_HIDDEN, {"i32[N]", "i32[N]", "state bf16[64,1,8]"}, {INT(BEFORE, 1)}, "f32[N,8]"},
    {GB_OP_ATTEND,
     {"f32[N,4,8]", "i32[N]", "i32[N]", "state bf16[16,2,8]", "state bf16[16,2,6]"},
     {FLOAT(SCALE, 1), INT(WINDOW, 4)},
     "f32[N,4,6]"},
};

static void ops_have_their_result_types(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof good_cases / sizeof *good_cases; i++)
        assert_infers(&good_cases[i]);
}

static const infer_case operand_cases[] = {
    {GB_OP_LINEAR,
     {"f32[N,4]", "constant f32[7,5]"},
     {{0}},
     "linear: operand weight is constant f32[7,5], expected a float or quantized constant [O,4]"},
    {GB_OP_LINEAR,
     {"f32[N,4]", "f32[7,4]"},
     {{0}},
     "linear: operand weight is f32[7,4], expected a float or quantized constant [O,4]"},
    {GB_OP_LINEAR,
     {"f32[N,4]", "constant i32[7,4]"},
     {{0}},
     "linear: operand weight is constant i32[7,4], expected a float or quantized constant [O,4]"},
    {GB_OP_LINEAR, {"f32[4]", "constant f32[7,4]"}, {{0}}, "linear: operand x is f32[4], expected f32[M,K]"},
    {GB_OP_LINEAR, {"f32[N,4]"}, {{0}}, "linear: operand weight is missing"},
    {GB_OP_LINEAR, {NULL}, {{0}}, "linear: operand x is missing"},
    {GB_OP_LINEAR,
     {"f32[N,4]", "constant f32[7,4]", "f32[N,4]"},
     {{0}},
     "linear: 3 operands, expected at most 2"},
    {GB_OP_ADD, {"f32[N,4]", "f32[B,4]"}, {{0}}, "add: operand b is f32[B,4], expected f32[N,4]"},
    {GB_OP_ADD, {"state f32[9,4]", "f32[9,4]"}, {{0}}, "add: operand a is state f32[9,4], expected f32[...]"},
    {GB_OP_SELECT,
     {"bool[B]", "i32[B]", "f32[B]"},
     {{0}},
     "select: operand b is f32[B], expected any dtype [B]"},
    {GB_OP_RMS_NORM, {"f32[N]"}, {FLOAT(EPSILON, 0)}, "rms_norm: operand x is f32[N], expected f32[...,D]"},
    {GB_OP_RMS_NORM,
     {"f32[N,4]", "constant f32[5]"},
     {FLOAT(EPSILON, 0)},
     "rms_norm: operand weight is constant f32[5], expected a float constant [4]"},
    {GB_OP_GATHER_ROWS,
     {"f32[N,4]", "i32[N]"},
     {{0}},
     "gather_rows: operand rows is i32[N], expected i32[B]"},
    {GB_OP_IF, {"bool[B]"}, {{0}}, "if: operand condition is bool[B], expected bool[]"},
    {GB_OP_ADD_BIAS,
     {"f32[N,4]", "constant f32[5]"},
     {{0}},
     "add_bias: operand bias is constant f32[5], expected a float constant [4]"},
    {GB_OP_SCALE,
     {"f32[N,4]", "constant f32[2]"},
     {{0}},
     "scale: operand factor is constant f32[2], expected a float constant [1]"},
    {GB_OP_ATTENTION,
     {"f32[N,4,8]", "f32[N,2,8]", "f32[N,2,8]", "i32[N]", "i32[N]", "state f16[16,2,8]"},
     {FLOAT(SCALE, 1)},
     "attention: operand key_cache is state f16[16,2,8], expected an f32, bf16, q8 or q4 state [C,2,8]"},
    {GB_OP_COUNT_TOKENS,
     {"i32[N]", "i32[N]", "i32[N]", "i32[B]", "i32[B]", "state f32[64]"},
     {{0}},
     "count_tokens: operand history is state f32[64], expected an i32 state [C]"},
    {GB_OP_KEEP_HIDDEN,
     {"f32[N,8]", "i32[N]", "i32[N]", "state bf16[64,1,16]"},
     {{0}},
     "keep_hidden: operand hidden is state bf16[64,1,16], expected an f32, bf16, q8 or q4 state [C,1,8]"},
    {GB_OP_LOAD_HIDDEN,
     {"i32[N]", "i32[N]", "state q8[64,1,32]"},
     {{0}},
     "load_hidden: hidden states of q8, expected f32 or bf16"},
    {GB_OP_APPLY_BIAS,
     {"f32[B,9]", "i32[B,3]", "f32[B,2]"},
     {{0}},
     "apply_bias: operand values is f32[B,2], expected f32[B,3]"},
    {GB_OP_PENALIZE,
     {"f32[B,9]", "i32[B,64,2]"},
     {{0}},
     "penalize: operand counts is i32[B,64,2], expected i32[B,C,3]"},
    {GB_OP_LOG_PROBABILITY,
     {"f32[B,9]", "f32[B,2]", "i32[N]"},
     {{0}},
     "log_probability: operand ids is i32[N], expected ids by row"},
};

static void wrong_operands_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof operand_cases / sizeof *operand_cases; i++)
        assert_refuses(&operand_cases[i]);
}

static const infer_case delta_net_cases[] = {
    {GB_OP_CAUSAL_CONV,
     {"f32[N,6]", "constant f32[6,1,1]", "i32[N]", "state f32[1,6]"},
     {{0}},
     "causal_conv: a width of 1, expected 2 to 64"},
    {GB_OP_CAUSAL_CONV,
     {"f32[N,6]", "constant f32[6,1,65]", "i32[N]", "state f32[64,6]"},
     {{0}},
     "causal_conv: a width of 65, expected 2 to 64"},
    {GB_OP_CAUSAL_CONV,
     {"f32[N,6]", "constant f32[6,1,4]", "i32[N]", "state f32[4,6]"},
     {{0}},
     "causal_conv: a tail of 4 rows, expected 3"},
    {GB_OP_CAUSAL_CONV,
     {"f32[N,6]", "constant f32[6,1,4]", "i32[N]", "state bf16[3,6]"},
     {{0}},
     "causal_conv: operand tail is state bf16[3,6], expected an f32 state [S,6]"},
    {GB_OP_CAUSAL_CONV,
     {"f32[N,6]", "constant f32[6,2,4]", "i32[N]", "state f32[3,6]"},
     {{0}},
     "causal_conv: operand weight is constant f32[6,2,4], expected a float constant [6,1,W]"},
    {GB_OP_GATED_DELTA,
     {"f32[N,2,8]", "f32[N,2,8]", "f32[N,3,6]", "f32[N,3]", "f32[N,3]", "i32[N]", "state f32[3,8,6]"},
     {{0}},
     "gated_delta: 3 value heads are not a multiple of 2 key heads"},
    {GB_OP_GATED_DELTA,
     {"f32[N,2,8]", "f32[N,2,8]", "f32[N,4,6]", "f32[N,4]", "f32[N,4]", "i32[N]", "state f32[4,8,6]"},
     {INT(TILED, 2)},
     "gated_delta: tiled = 2, expected 0 or 1"},
    {GB_OP_GATED_DELTA,
     {"f32[N,2,8]", "f32[N,2,8]", "f32[N,4,6]", "f32[N,4]", "f32[N,4]", "i32[N]", "state f32[4,8,6]"},
     {INT(CORRECTS, 2)},
     "gated_delta: corrects = 2, expected 0 or 1"},
    {GB_OP_GATED_DELTA,
     {"f32[N,2,8]", "f32[N,2,8]", "f32[N,4,6]", "f32[N,4]", "f32[N,4]", "i32[N]", "state f32[4,6,8]"},
     {{0}},
     "gated_delta: operand memory is state f32[4,6,8], expected an f32 state [4,8,6]"},
};

static void wrong_operands_of_delta_nets_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof delta_net_cases / sizeof *delta_net_cases; i++)
        assert_refuses(&delta_net_cases[i]);
}

static const infer_case expert_cases[] = {
    {GB_OP_ROUTE_TOP_K, {"f32[N,8]"}, {INT(COUNT, 9)}, "route_top_k: count = 9, expected 1 to the 8 experts"},
    {GB_OP_ROUTE_TOP_K, {"f32[N,8]"}, {INT(COUNT, 0)}, "route_top_k: count = 0, expected 1 to the 8 experts"},
    {GB_OP_ROUTE_SIGMOID,
     {"f32[N,8]", "constant f32[8]"},
     {INT(COUNT, 9)},
     "route_sigmoid: count = 9, expected 1 to the 8 experts"},
    {GB_OP_ROUTE_SIGMOID,
     {"f32[N,8]", "constant f32[7]"},
     {INT(COUNT, 3)},
     "route_sigmoid: operand correction is constant f32[7], expected a float constant [8]"},
    {GB_OP_SCALE_COLUMNS,
     {"f32[N,6]", "constant f32[4]"},
     {{0}},
     "scale_columns: 4 factors do not divide 6 columns"},
    {GB_OP_ROUTE_TOP_K, {"f32[N,4097]"}, {INT(COUNT, 1)}, "route_top_k: 4097 experts, expected at most 4096"},
    {GB_OP_EXPERT_LINEAR,
     {"f32[N,4]", "constant f32[4097,5,4]", "i32[N,3]"},
     {{0}},
     "expert_linear: 4097 experts, expected at most 4096"},
    {GB_OP_EXPERT_LINEAR,
     {"f32[N,2,4]", "constant f32[8,5,4]", "i32[N,3]"},
     {{0}},
     "expert_linear: operand x is f32[N,2,4], expected [M,K] or [M,T,K] with experts of i32[N,3]"},
    {GB_OP_EXPERT_LINEAR,
     {"f32[B,4]", "constant f32[8,5,4]", "i32[N,3]"},
     {{0}},
     "expert_linear: operand x is f32[B,4], expected [M,K] or [M,T,K] with experts of i32[N,3]"},
    {GB_OP_EXPERT_LINEAR,
     {"f32[N,4]", "constant f32[8,5,6]", "i32[N,3]"},
     {{0}},
     "expert_linear: operand weight is constant f32[8,5,6], expected a float or quantized constant [X,O,4]"},
    {GB_OP_EXPERT_LINEAR,
     {"f32[N,4]", "constant f32[8,5,4]", "i32[N,3]"},
     {INT(ACTIVATION, 1)},
     "expert_linear: activation = 1, but its weight is not quantized"},
    {GB_OP_EXPERT_LINEAR,
     {"f32[N,4]", "constant f16[8,5,4]", "i32[N,3]"},
     {INT(ACTIVATION, 3)},
     "expert_linear: activation = 3, but its weight is not bfloat16"},
    {GB_OP_EXPERT_LINEAR,
     {"f32[N,4]", "constant f32[8,2147483647,4]", "i32[N,3]"},
     {{0}},
     "expert_linear: a result f32[N,3,2147483647] is too large"},
    {GB_OP_SLICE,
     {"f32[N,8]"},
     {INT(START, 4), INT(COUNT, 5)},
     "slice: 5 elements from 4 on leave rows of 8"},
    {GB_OP_SLICE,
     {"f32[N,8]"},
     {INT(START, 2147483647), INT(COUNT, 2147483647)},
     "slice: 2147483647 elements from 2147483647 on leave rows of 8"},
    {GB_OP_SLICE,
     {"f32[N,8]"},
     {INT(START, 4), INT(COUNT, 0)},
     "slice: 0 elements from 4 on leave rows of 8"},
    {GB_OP_ALL_GATHER,
     {"f32[N,8]"},
     {INT(RANKS, 2), INT(SECTIONS, 3)},
     "all_gather: 3 sections of rows of 8, of 2 ranks"},
    {GB_OP_L2_NORMALIZE, {"f32[N,4]"}, {FLOAT(EPSILON, -1)}, "l2_normalize: epsilon = -1 is negative"},
    {GB_OP_SCALE_ROWS,
     {"f32[N,5]", "f32[N,2]"},
     {{0}},
     "scale_rows: operand factor is f32[N,2], expected f32[N,1]"},
};

static void wrong_experts_and_slices_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof expert_cases / sizeof *expert_cases; i++)
        assert_refuses(&expert_cases[i]);
}

static const infer_case attribute_cases[] = {
    {GB_OP_KEEP_HIDDEN,
     {"f32[N,8]", "i32[N]", "i32[N]", "state bf16[64,1,8]"},
     {INT(START, 2)},
     "keep_hidden: start = 2, expected 0 or 1"},
    {GB_OP_LOAD_HIDDEN,
     {"i32[N]", "i32[N]", "state bf16[64,1,8]"},
     {INT(BEFORE, 2)},
     "load_hidden: before = 2, expected 0 or 1"},
    {GB_OP_ROPE,
     {"f32[N,2,8]", "i32[N]", "constant f32[4]"},
     {INT(PAIR_OFFSET, 4), INT(START, 2)},
     "rope: start = 2, expected 0 or 1"},
    {GB_OP_ATTEND,
     {"f32[N,3,8]", "i32[N]", "i32[N]", "state f32[16,2,8]", "state f32[16,2,8]"},
     {FLOAT(SCALE, 1)},
     "attend: 3 query heads are not a multiple of 2 key heads"},
    {GB_OP_ATTEND,
     {"f32[N,2,8]", "i32[N]", "i32[N]", "state f32[16,2,8]", "state f32[16,2,8]"},
     {FLOAT(SCALE, 1), INT(VALUE_ROTATION, 8)},
     "attend: value_rotation = 8 with a cache of f32, expected q8 or q4"},
    {GB_OP_ATTENTION,
     {"f32[N,4,8]", "f32[N,2,8]", "f32[N,2,8]", "i32[N]", "i32[N]", "state f32[16,2,8]", "state f32[16,2,8]",
      "constant f32[2]"},
     {FLOAT(SCALE, 1)},
     "attention: operand sinks is constant f32[2], expected a float constant [4]"},
    {GB_OP_ADD_EXPERT_BIAS,
     {"f32[N,2,6]", "constant bf16[9,5]", "i32[N,2]"},
     {{0}},
     "add_expert_bias: operand bias is constant bf16[9,5], expected a float constant [X,6]"},
    {GB_OP_ADD_EXPERT_BIAS,
     {"f32[N,2,6]", "constant f32[5000,6]", "i32[N,2]"},
     {{0}},
     "add_expert_bias: 5000 experts, expected at most 4096"},
    {GB_OP_CLAMPED_SWIGLU,
     {"f32[N,6]", "f32[N,6]"},
     {FLOAT(ALPHA, 1.5), FLOAT(LIMIT, 0)},
     "clamped_swiglu: limit = 0 is not above 0"},
    {GB_OP_SOFT_CAP, {"f32[B,4]"}, {{0}}, "soft_cap: attribute cap is missing"},
    {GB_OP_SOFT_CAP, {"f32[B,4]"}, {INT(CAP, 3)}, "soft_cap: attribute cap is not a float"},
    {GB_OP_SOFT_CAP,
     {"f32[B,4]"},
     {FLOAT(CAP, 1e300)},
     "soft_cap: attribute cap = 1e+300 is not a finite float32"},
    {GB_OP_SOFT_CAP, {"f32[B,4]"}, {FLOAT(CAP, -1)}, "soft_cap: cap = -1 is not above 0"},
    {GB_OP_SOFT_CAP, {"f32[B,4]"}, {FLOAT(CAP, 3), FLOAT(CAP, 3)}, "soft_cap: attribute cap is given twice"},
    {GB_OP_SOFT_CAP,
     {"f32[B,4]"},
     {FLOAT(CAP, 3), INT(HEADS, 3)},
     "soft_cap: has no attribute heads (number 3)"},
    {GB_OP_EMBEDDING,
     {"constant bf16[9,4]", "i32[N]"},
     {INT(ROTATION, 4)},
     "embedding: rotation = 4, but its table is not quantized"},
    {GB_OP_RMS_NORM, {"f32[N,4]"}, {FLOAT(EPSILON, -1e-6)}, "rms_norm: epsilon = -1e-06 is negative"},
    {GB_OP_SPLIT_HEADS, {"f32[N,12]"}, {INT(HEADS, 5)}, "split_heads: heads = 5 does not divide rows of 12"},
    {GB_OP_SPLIT_HEADS, {"f32[N,12]"}, {INT(HEADS, 0)}, "split_heads: heads = 0 does not divide rows of 12"},
    {GB_OP_SPLIT_HEADS,
     {"f32[N,12]"},
     {INT(HEADS, -3)},
     "split_heads: attribute heads = -3 is not within 0 .. 2147483647"},
    {GB_OP_ROPE,
     {"f32[N,2,8]", "i32[N]", "constant f32[4]"},
     {INT(PAIR_OFFSET, 3)},
     "rope: 4 pairs at pair_offset = 3 overlap or leave heads of 8"},
    {GB_OP_ROPE,
     {"f32[N,2,8]", "i32[N]", "constant f32[4]"},
     {INT(PAIR_OFFSET, 5)},
     "rope: 4 pairs at pair_offset = 5 overlap or leave heads of 8"},
    {GB_OP_ROPE,
     {"f32[N,2,8]", "i32[N]", "f32[4]"},
     {INT(PAIR_OFFSET, 4)},
     "rope: operand frequencies is not a constant"},
    {GB_OP_ATTENTION,
     {"f32[N,3,8]", "f32[N,2,8]", "f32[N,2,8]", "i32[N]", "i32[N]", "state f32[16,2,8]", "state f32[16,2,8]"},
     {FLOAT(SCALE, 1)},
     "attention: 3 query heads are not a multiple of 2 key heads"},
    {GB_OP_ATTENTION,
     {"f32[N,2,8]", "f32[N,2,8]", "f32[N,2,8]", "i32[N]", "i32[N]", "state f32[16,2,8]", "state f32[16,2,8]"},
     {FLOAT(SCALE, 1), INT(ROTATION, 8)},
     "attention: rotation = 8 with a cache of f32, expected q8 or q4"},
    {GB_OP_ATTENTION,
     {"f32[N,2,96]", "f32[N,2,96]", "f32[N,2,32]", "i32[N]", "i32[N]", "state q8[16,2,96]",
      "state bf16[16,2,32]"},
     {FLOAT(SCALE, 1), INT(ROTATION, 32), INT(VALUE_ROTATION, 32)},
     "attention: value_rotation = 32 with a cache of bf16, expected q8 or q4"},
    {GB_OP_ATTENTION,
     {"f32[N,2,96]", "f32[N,2,96]", "f32[N,2,32]", "i32[N]", "i32[N]", "state q8[16,2,96]",
      "state q4[16,2,32]"},
     {FLOAT(SCALE, 1), INT(ROTATION, 64)},
     "attention: rotation = 64, expected a power of two from 2 to 256 that divides rows of 96"},
    {GB_OP_ATTENTION,
     {"f32[N,1,512]", "f32[N,1,512]", "f32[N,1,512]", "i32[N]", "i32[N]", "state q8[16,1,512]",
      "state q4[16,1,512]"},
     {FLOAT(SCALE, 1), INT(VALUE_ROTATION, 512)},
     "attention: value_rotation = 512, expected a power of two from 2 to 256 that divides rows of 512"},
    {GB_OP_RANDOM_BITS, {"u64[B]"}, {INT(COUNT, 0)}, "random_bits: count = 0 is not above 0"},
    {GB_OP_RANDOM_BITS,
     {"u64[B]"},
     {INT(COUNT, 1 << 23)},
     "random_bits: rows of 8388608, expected at most 8388607"},
    {GB_OP_APPLY_MASK,
     {"f32[B,33]", "bool[B]", "u32[B,1]"},
     {{0}},
     "apply_mask: a mask of 1 words for 33 logits"},
    {GB_OP_TOP_IDS, {"f32[B,9]", "bool[B]"}, {INT(COUNT, 10)}, "top_ids: count = 10 is not within 1 .. 9"},
    {GB_OP_TOP_IDS, {"f32[B,9]", "bool[B]"}, {INT(COUNT, 0)}, "top_ids: count = 0 is not within 1 .. 9"},
    {GB_OP_ARGMAX, {"f32[B,8388608]"}, {{0}}, "argmax: rows of 8388608, expected at most 8388607"},
    {GB_OP_MERGE_HEADS,
     {"f32[N,65536,65536]"},
     {{0}},
     "merge_heads: a result f32[N,4294967296] is too large"},
    {GB_OP_ADD,
     {"f32[N,65536,65536]", "f32[N,65536,65536]"},
     {{0}},
     "add: a result f32[N,65536,65536] is too large"},
};

static void wrong_attributes_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof attribute_cases / sizeof *attribute_cases; i++)
        assert_refuses(&attribute_cases[i]);
    infer_case nan = {GB_OP_FILL_LIKE, {"f32[B]"}, {FLOAT(VALUE, 0)}, NULL};
    nan.attributes[0].f = NAN;
    gb_type result;
    gumbel_error error;
    assert_int_equal(infer(&nan, &result, &error), GUMBEL_ERROR_FORMAT);
}

static void unknown_ops_are_unsupported(void **state) {
    (void)state;
    const infer_case test = {(gb_op)63, {"f32[N]"}, {{0}}, NULL};
    gb_type result;
    gumbel_error error;
    assert_int_equal(infer(&test, &result, &error), GUMBEL_ERROR_UNSUPPORTED);
    assert_string_equal(error.message, "op 63 is not known to this version");
}

static void operands_have_names(void **state) {
    (void)state;
    size_t length;
    const char *name = gb_op_operand_name(GB_OP_ATTENTION, 5, &length);
    assert_int_equal(length, 9);
    assert_memory_equal(name, "key_cache", 9);
    assert_null(gb_op_operand_name(GB_OP_ATTENTION, 8, &length));
}

static void types_have_a_text(void **state) {
    (void)state;
    char text[GB_TYPE_TEXT];
    gb_type scalar = {.dtype = GB_BOOL};
    assert_string_equal(gb_type_text(&scalar, text), "bool[]");
    gb_type widest = {GB_BF16, {4, {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN}}};
    assert_int_equal(strlen(gb_type_text(&widest, text)), 4 + 1 + 4 * 20 + 3 + 1);
    widest.shape.rank = 1000;
    assert_int_equal(strlen(gb_type_text(&widest, text)), 4 + 1 + 4 * 20 + 3 + 1);
    assert_false(gb_type_valid(&widest));
    uint64_t elements;
    gb_shape huge = {4, {INT32_MAX, INT32_MAX, INT32_MAX, 1}}, ragged = {2, {GB_DIM_N, 4}};
    assert_false(gb_shape_elements(&huge, &elements));
    assert_false(gb_shape_elements(&ragged, &elements));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_line_of_the_table_parses),
        cmocka_unit_test(ops_have_their_result_types),
        cmocka_unit_test(wrong_operands_are_refused),
        cmocka_unit_test(wrong_operands_of_delta_nets_are_refused),
        cmocka_unit_test(wrong_experts_and_slices_are_refused),
        cmocka_unit_test(wrong_attributes_are_refused),
        cmocka_unit_test(unknown_ops_are_unsupported),
        cmocka_unit_test(operands_have_names),
        cmocka_unit_test(types_have_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
