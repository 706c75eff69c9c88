/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bfloat16 weights with inputs rounded to bfloat16: every set beside the definition, which is two
 * additions for each pair, to the bit.
 */
#include "cpu/kernel_check.h"

#include <math.h>

static gb_node node = {.op = GB_OP_LINEAR, .attribute_count = 1};

static int set_up(void **state) {
    (void)state;
    node.attributes[0] = gb_int(GB_ATTRIBUTE_ACTIVATION, GB_ACTIVATION_BFLOAT16);
    return 0;
}

static float operand(const gb_cpu_tensor *x, size_t i) {
    return gb_float_from_bf16(gb_bf16_operand(element(x, i)));
}

/* The definition: lane l has the pairs l mod 16, of each the second product first; then the tree. */
static float defined_dot(const gb_cpu_tensor *x, size_t m, const gb_cpu_tensor *weight, size_t o,
                         size_t count) {
    float lanes[16] = {0};
    for (size_t pair = 0; 2 * pair < count; pair++) {
        for (size_t k = 2 * pair + 2; k-- > 2 * pair;) {
            const float product = k < count ? operand(x, m * count + k) * element(weight, o * count + k) : 0;
            lanes[pair % 16] += product;
        }
    }
    for (size_t width = 8; width > 0; width /= 2)
        for (size_t l = 0; l < width; l++)
            lanes[l] += lanes[l + width];
    return lanes[0];
}

static void assert_defined(const gb_cpu_tensor *x, const gb_cpu_tensor *weight, const gb_cpu_tensor *y) {
    const size_t tokens = x->dims[0], inputs = x->dims[1], outputs = weight->dims[0];
    for (size_t m = 0; m < tokens; m++)
        for (size_t o = 0; o < outputs; o++) {
            const float found = element(y, m * outputs + o), defined = defined_dot(x, m, weight, o, inputs);
            if (memcmp(&found, &defined, sizeof found) != 0)
                fail_msg("%zu x %zu x %zu at %zu, %zu: %a, defined %a", tokens, inputs, outputs, m, o,
                         (double)found, (double)defined);
        }
}

static void check_product(const gb_cpu_tensor *x, const gb_cpu_tensor *weight) {
    gb_cpu_tensor y = new_tensor(GB_F32, 2, x->dims[0], weight->dims[0], 1);
    gb_kernel_call call = {.node = &node, .operands = {x, weight}, .results = {&y}};
    check_kernel(gb_kernel_linear, &call);
    assert_defined(x, weight, &y);
    free_tensor(&y);
}

static void check_shape(uint64_t *state, size_t tokens, size_t inputs, size_t outputs) {
    gb_cpu_tensor x = random_tensor(state, GB_F32, 2, tokens, inputs, 1);
    gb_cpu_tensor weight = random_tensor(state, GB_BF16, 2, outputs, inputs, 1);
    check_product(&x, &weight);
    free_tensor(&x);
    free_tensor(&weight);
}

static void odd_shapes(void **unused) {
    (void)unused;
    static const size_t tokens[] = {1, 2, 3, 4, 5, 8, 15, 16, 17, 63, 64, 67};
    static const size_t inputs[] = {1, 2, 31, 32, 33, 63, 64, 65, 100, 1101, 2047, 2048, 2049, 4101};
    static const size_t outputs[] = {1, 2, 3, 5, 16, 17, 33, 37};
    uint64_t state = 1;
    for (size_t t = 0; t < sizeof tokens / sizeof *tokens; t++)
        for (size_t i = 0; i < 5; i++)
            check_shape(&state, tokens[t], inputs[random_below(&state, sizeof inputs / sizeof *inputs)],
                        outputs[random_below(&state, sizeof outputs / sizeof *outputs)]);
}

/* Magnitudes of 2^-56 to 2^24 and zeros: sums cancel, and some are as small as they can become. */
static void wide_exponents(void **unused) {
    (void)unused;
    enum { TOKENS = 18, INPUTS = 96, OUTPUTS = 20 };
    uint64_t state = 5;
    gb_cpu_tensor x = new_tensor(GB_F32, 2, TOKENS, INPUTS, 1);
    gb_cpu_tensor weight = new_tensor(GB_BF16, 2, OUTPUTS, INPUTS, 1);
    for (size_t i = 0; i < TOKENS * INPUTS; i++)
        set_element(&x, i, ldexpf(random_float(&state), (int)random_below(&state, 90) - 65));
    for (size_t i = 0; i < OUTPUTS * INPUTS; i++) {
        const float value = ldexpf(random_float(&state), (int)random_below(&state, 80) - 56);
        ((uint16_t *)weight.data)[i] = gb_bf16_operand(value);
    }
    check_product(&x, &weight);
    free_tensor(&x);
    free_tensor(&weight);
}

/* To nearest, ties to even; 0 below 2^-56, with its sign. */
static void operands_are_rounded(void **unused) {
    (void)unused;
    static const struct {
        float from, to;
    } cases[] = {
        {1.0f, 1.0f},
        {0x1.01p0f, 0x1.00p0f},
        {0x1.03p0f, 0x1.04p0f},
        {-0x1.0101p0f, -0x1.02p0f},
        {0x1p-56f, 0x1p-56f},
        {0x1.fffffep-57f, 0.0f},
        {-0x1p-57f, -0.0f},
        {0x1p-140f, 0.0f},
        {0.0f, 0.0f},
        {-INFINITY, -INFINITY},
        {0x1.fffffep127f, INFINITY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const float to = gb_float_from_bf16(gb_bf16_operand(cases[i].from));
        assert_memory_equal(&to, &cases[i].to, sizeof to);
    }
    assert_true(isnan(gb_float_from_bf16(gb_bf16_operand(NAN))));
}

/* A token's values do not depend on how many others are in the batch. */
static void batch_size_does_not_matter(void **unused) {
    (void)unused;
    enum { TOKENS = 70, INPUTS = 2100, OUTPUTS = 21 };
    uint64_t state = 3;
    gb_cpu_tensor x = random_tensor(&state, GB_F32, 2, TOKENS, INPUTS, 1);
    gb_cpu_tensor weight = random_tensor(&state, GB_BF16, 2, OUTPUTS, INPUTS, 1);
    for (size_t m = 0; m < TOKENS; m++) {
        gb_cpu_tensor row = {
            .data = (float *)x.data + m * INPUTS, .dtype = GB_F32, .rank = 2, .dims = {1, INPUTS}};
        check_product(&row, &weight);
    }
    check_product(&x, &weight);
    free_tensor(&x);
    free_tensor(&weight);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_shapes),
        cmocka_unit_test(wide_exponents),
        cmocka_unit_test(operands_are_rounded),
        cmocka_unit_test(batch_size_does_not_matter),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
