/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernel_check.h"

#include <math.h>

/* ---- Routing ------------------------------------------------------------------------------------------- */

typedef struct routing {
    gb_cpu_tensor logits, experts, weights;
    gb_node node;
    gb_kernel_call call;
} routing;

static void new_routing(routing *r, uint64_t *random, size_t tokens, size_t choices, size_t count,
                        bool normalize) {
    r->logits = random_tensor(random, GB_F32, 2, tokens, choices, 1);
    r->experts = new_tensor(GB_I32, 2, tokens, count, 1);
    r->weights = new_tensor(GB_F32, 2, tokens, count, 1);
    r->node = (gb_node){.op = GB_OP_ROUTE_TOP_K,
                        .attribute_count = 1,
                        .attributes = {gb_int(GB_ATTRIBUTE_NORMALIZE, normalize)}};
    r->call = (gb_kernel_call){&r->node, {&r->logits}, {&r->experts, &r->weights}, NULL, GB_SPLIT_OWN, NULL,
                               NULL,     NULL};
}

static void free_routing(routing *r) {
    free_tensor(&r->logits);
    free_tensor(&r->experts);
    free_tensor(&r->weights);
}

static void check_row(const routing *r, size_t m, bool normalize) {
    size_t choices = r->logits.dims[1], count = r->experts.dims[1];
    const int32_t *chosen = (int32_t *)r->experts.data + m * count;
    const float *logits = (float *)r->logits.data + m * choices;
    double sum = 0, chosen_sum = 0;
    for (size_t i = 0; i < choices; i++)
        sum += exp((double)logits[i]);
    for (size_t t = 0; t < count; t++)
        chosen_sum += exp((double)logits[chosen[t]]);
    for (size_t t = 0; t < count; t++) {
        assert_near(element(&r->weights, m * count + t),
                    exp((double)logits[chosen[t]]) / (normalize ? chosen_sum : sum), 1e-6, "route_top_k");
        if (t > 0)
            assert_true(logits[chosen[t]] <= logits[chosen[t - 1]]);
        size_t larger = 0; /* how many are before it */
        for (size_t i = 0; i < choices; i++)
            larger +=
                logits[i] > logits[chosen[t]] || (logits[i] >= logits[chosen[t]] && i < (size_t)chosen[t]);
        assert_int_equal(larger, t);
    }
}

static void routes(void **unused) {
    (void)unused;
    uint64_t random = 1;
    static const size_t sizes[][2] = {{1, 1}, {8, 2}, {64, 8}, {256, 8}, {33, 33}, {GB_MAX_EXPERTS, 5}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        routing r;
        new_routing(&r, &random, 7, sizes[s][0], sizes[s][1], s % 2);
        for (size_t i = 0; i < gb_elements(&r.logits); i++) /* steps make ties */
            set_element(&r.logits, i,
                        sizes[s][0] > 100 ? element(&r.logits, i) * 9 : rintf(element(&r.logits, i) * 4));
        check_kernel(gb_kernel_route_top_k, &r.call);
        for (size_t m = 0; m < 7; m++)
            check_row(&r, m, s % 2);
        free_routing(&r);
    }
}

/* Whatever the logits are, experts are distinct and in range, and a NaN does not get lost. */
static void routes_numbers_that_are_none(void **unused) {
    (void)unused;
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 0};
    uint64_t random = 2;
    for (size_t round = 0; round < 60; round++) {
        enum { CHOICES = 9, COUNT = 4 };
        routing r;
        new_routing(&r, &random, 1, CHOICES, COUNT, true);
        bool is_normal = true;
        for (size_t i = 0; i < CHOICES; i++) {
            float value = odd[round < 6 ? round : random_below(&random, 6)];
            is_normal = is_normal && fabsf(value) < INFINITY;
            set_element(&r.logits, i, value);
        }
        check_kernel(gb_kernel_route_top_k, &r.call);
        unsigned seen = 0;
        for (size_t t = 0; t < COUNT; t++) {
            int32_t expert = ((int32_t *)r.experts.data)[t];
            assert_in_range(expert, 0, CHOICES - 1);
            assert_int_equal(seen >> expert & 1, 0);
            seen |= 1u << expert;
            if (is_normal)
                assert_true(isfinite(element(&r.weights, t)));
        }
        free_routing(&r);
    }
}

/* By sigmoids, of which a correction decides who is chosen, and not the weights. */
static void check_sigmoid_row(const routing *r, const gb_cpu_tensor *correction, size_t m, bool normalize) {
    const size_t choices = r->logits.dims[1], count = r->experts.dims[1];
    const int32_t *chosen = (int32_t *)r->experts.data + m * count;
    double sum = 0, before = INFINITY;
    for (size_t t = 0; t < count; t++)
        sum += 1 / (1 + exp(-(double)element(&r->logits, m * choices + (size_t)chosen[t])));
    bool is_chosen[64] = {false};
    for (size_t t = 0; t < count; t++) {
        const size_t i = (size_t)chosen[t];
        const double p = 1 / (1 + exp(-(double)element(&r->logits, m * choices + i)));
        assert_near(element(&r->weights, m * count + t), 2.5 * (normalize ? p / sum : p), 1e-6,
                    "route_sigmoid");
        assert_true(p + (double)element(correction, i) <= before + 1e-6);
        before = p + (double)element(correction, i);
        assert_false(is_chosen[i]);
        is_chosen[i] = true;
    }
    for (size_t i = 0; i < choices; i++)
        if (!is_chosen[i])
            assert_true(1 / (1 + exp(-(double)element(&r->logits, m * choices + i))) +
                            (double)element(correction, i) <=
                        before + 1e-6);
}

static void routes_by_sigmoids(void **unused) {
    (void)unused;
    uint64_t random = 3;
    static const size_t sizes[][2] = {{1, 1}, {8, 2}, {64, 8}, {33, 33}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        routing r;
        new_routing(&r, &random, 7, sizes[s][0], sizes[s][1], s % 2);
        gb_cpu_tensor correction = random_tensor(&random, GB_F32, 1, sizes[s][0], 1, 1);
        r.node.op = GB_OP_ROUTE_SIGMOID;
        r.node.attributes[r.node.attribute_count++] = gb_float(GB_ATTRIBUTE_SCALE, 2.5);
        r.call.operands[1] = &correction;
        check_kernel(gb_kernel_route_sigmoid, &r.call);
        for (size_t m = 0; m < 7; m++)
            check_sigmoid_row(&r, &correction, m, s % 2);
        free_tensor(&correction);
        free_routing(&r);
    }
}

/* A file may hold any correction: experts are distinct and in range all the same. */
static void corrections_may_be_infinite(void **unused) {
    (void)unused;
    enum { EXPERTS = 5, COUNT = 4 };
    uint64_t random = 4;
    for (uint32_t mask = 0; mask < 1u << EXPERTS; mask++) {
        routing r;
        new_routing(&r, &random, 1, EXPERTS, COUNT, true);
        gb_cpu_tensor correction = random_tensor(&random, GB_F32, 1, EXPERTS, 1, 1);
        for (size_t i = 0; i < EXPERTS; i++)
            if (mask >> i & 1)
                set_element(&correction, i, mask % 3 == 0 ? NAN : -INFINITY);
        r.node.op = GB_OP_ROUTE_SIGMOID;
        r.call.operands[1] = &correction;
        check_kernel(gb_kernel_route_sigmoid, &r.call);
        unsigned seen = 0;
        for (size_t t = 0; t < COUNT; t++) {
            const int32_t expert = ((int32_t *)r.experts.data)[t];
            assert_in_range(expert, 0, EXPERTS - 1);
            assert_int_equal(seen >> expert & 1, 0);
            seen |= 1u << expert;
        }
        free_tensor(&correction);
        free_routing(&r);
    }
}

/* ---- Their products ------------------------------------------------------------------------------------ */

static void choose_experts(uint64_t *random, const gb_cpu_tensor *experts, size_t among) {
    for (size_t i = 0; i < gb_elements(experts); i++)
        ((int32_t *)experts->data)[i] = (int32_t)random_below(random, among);
}

/* Each output is the linear kernel's for that token and expert alone. */
static void assert_is_linear(const gb_kernel_call *call, size_t m, size_t t) {
    const gb_cpu_tensor *x = call->operands[0], *weight = call->operands[1], *experts = call->operands[2];
    size_t choices = experts->dims[1], inputs = weight->dims[2], outputs = weight->dims[1];
    size_t x_row = x->rank == 3 ? m * choices + t : m;
    size_t expert = (size_t)((int32_t *)experts->data)[m * choices + t];
    gb_cpu_tensor one_x = {
        .data = (float *)x->data + x_row * inputs, .dtype = GB_F32, .rank = 2, .dims = {1, inputs}};
    gb_cpu_tensor one_weight = {.data = (uint8_t *)weight->data +
                                        expert * outputs * inputs * gb_dtype_size(weight->dtype),
                                .dtype = weight->dtype,
                                .rank = 2,
                                .dims = {outputs, inputs}};
    gb_cpu_tensor y = new_tensor(GB_F32, 2, 1, outputs, 1);
    gb_kernel_call linear = {
        .operands = {&one_x, &one_weight}, .results = {&y}, .vector = gb_available_vector_kernels(0)};
    run_as_team(gb_kernel_linear, &linear, 1);
    assert_memory_equal(y.data, (float *)call->results[0]->data + (m * choices + t) * outputs,
                        outputs * sizeof(float));
    free_tensor(&y);
}

typedef struct expert_sizes {
    size_t tokens, choices, experts, inputs, outputs;
    size_t among; /* experts from here on are never chosen, their weights never read */
} expert_sizes;

static void check_experts(uint64_t *random, expert_sizes s, gb_dtype dtype, bool has_row_per_choice) {
    gb_cpu_tensor x = has_row_per_choice ? random_tensor(random, GB_F32, 3, s.tokens, s.choices, s.inputs)
                                         : random_tensor(random, GB_F32, 2, s.tokens, s.inputs, 1);
    gb_cpu_tensor weight = random_tensor(random, dtype, 3, s.among, s.outputs, s.inputs);
    gb_cpu_tensor experts = new_tensor(GB_I32, 2, s.tokens, s.choices, 1);
    gb_cpu_tensor y = new_tensor(GB_F32, 3, s.tokens, s.choices, s.outputs);
    choose_experts(random, &experts, s.among);
    gb_cpu_tensor declared = weight;
    declared.dims[0] = s.experts;
    gb_kernel_call call = {.operands = {&x, &declared, &experts}, .results = {&y}};
    check_kernel(gb_kernel_expert_linear, &call);
    for (size_t p = 0; p < s.tokens * s.choices; p += 1 + s.tokens * s.choices / 100)
        assert_is_linear(&call, p / s.choices, p % s.choices);
    free_tensor(&x);
    free_tensor(&weight);
    free_tensor(&experts);
    free_tensor(&y);
}

static void products(void **unused) {
    (void)unused;
    static const gb_dtype dtypes[] = {GB_F32, GB_F16, GB_BF16};
    uint64_t random = 3;
    for (size_t d = 0; d < 3; d++) {
        for (int rank = 2; rank <= 3; rank++) {
            check_experts(&random, (expert_sizes){1, 2, 8, 33, 17, 8}, dtypes[d], rank == 3);
            check_experts(&random, (expert_sizes){1, 8, 4, 64, 40, 2}, dtypes[d], rank == 3); /* one twice */
            check_experts(&random, (expert_sizes){5, 3, 16, 100, 5, 9}, dtypes[d], rank == 3);
            check_experts(&random, (expert_sizes){70, 2, 3, 1040, 37, 2}, dtypes[d], rank == 3);
        }
    }
    check_experts(&random, (expert_sizes){4200, 4, GB_MAX_EXPERTS, 3, 2, 50}, GB_F32, false); /* two parts */
    check_experts(&random, (expert_sizes){9, GB_MAX_EXPERTS, GB_MAX_EXPERTS, 2, 1, 7}, GB_F32, true);
}

static void sums(void **unused) {
    (void)unused;
    uint64_t random = 4;
    static const size_t sizes[][3] = {{1, 1, 1}, {1, 8, 2048}, {5, 2, 33}, {9, 3, 1025}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t tokens = sizes[s][0], choices = sizes[s][1], width = sizes[s][2];
        gb_cpu_tensor x = random_tensor(&random, GB_F32, 3, tokens, choices, width);
        gb_cpu_tensor weights = random_tensor(&random, GB_F32, 2, tokens, choices, 1);
        gb_cpu_tensor y = new_tensor(GB_F32, 2, tokens, width, 1);
        gb_kernel_call call = {.operands = {&x, &weights}, .results = {&y}};
        check_kernel(gb_kernel_combine_experts, &call);
        for (size_t at = 0; at < tokens * width; at++) {
            size_t m = at / width;
            float expected = 0;
            for (size_t t = 0; t < choices; t++) {
                float product =
                    element(&weights, m * choices + t) * element(&x, (m * choices + t) * width + at % width);
                expected = t == 0 ? product : expected + product;
            }
            assert_float_equal(element(&y, at), expected, 0);
        }
        free_tensor(&x);
        free_tensor(&weights);
        free_tensor(&y);
    }
}

static void scaled_rows(void **unused) {
    (void)unused;
    uint64_t random = 5;
    static const size_t sizes[][2] = {{1, 1}, {1, 2048}, {5, 33}, {9, 1025}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        gb_cpu_tensor x = random_tensor(&random, GB_F32, 2, sizes[s][0], sizes[s][1], 1);
        gb_cpu_tensor factor = random_tensor(&random, GB_F32, 2, sizes[s][0], 1, 1);
        gb_cpu_tensor y = new_tensor(GB_F32, 2, sizes[s][0], sizes[s][1], 1);
        gb_kernel_call call = {.operands = {&x, &factor}, .results = {&y}};
        check_kernel(gb_kernel_scale_rows, &call);
        for (size_t at = 0; at < gb_elements(&x); at++)
            assert_float_equal(element(&y, at), element(&x, at) * element(&factor, at / sizes[s][1]), 0);
        free_tensor(&x);
        free_tensor(&factor);
        free_tensor(&y);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes),
        cmocka_unit_test(routes_numbers_that_are_none),
        cmocka_unit_test(routes_by_sigmoids),
        cmocka_unit_test(corrections_may_be_infinite),
        cmocka_unit_test(products),
        cmocka_unit_test(sums),
        cmocka_unit_test(scaled_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
