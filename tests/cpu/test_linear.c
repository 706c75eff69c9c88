/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernel_check.h"

#include <math.h>

/* The definition: 16 partial sums in order, then the tree. */
static float defined_dot(const gb_cpu_tensor *x, size_t m, const gb_cpu_tensor *weight, size_t o,
                         size_t count) {
    float lanes[16] = {0};
    for (size_t k = 0; k < (count + 15) / 16 * 16; k++) {
        float a = k < count ? element(x, m * count + k) : 0,
              b = k < count ? element(weight, o * count + k) : 0;
        float product = a * b;
        lanes[k % 16] += product;
    }
    for (size_t width = 8; width > 0; width /= 2)
        for (size_t l = 0; l < width; l++)
            lanes[l] += lanes[l + width];
    return lanes[0];
}

static void check_shape(uint64_t *state, gb_dtype dtype, size_t tokens, size_t inputs, size_t outputs) {
    gb_cpu_tensor x = random_tensor(state, GB_F32, 2, tokens, inputs, 1);
    gb_cpu_tensor weight = random_tensor(state, dtype, 2, outputs, inputs, 1);
    gb_cpu_tensor y = new_tensor(GB_F32, 2, tokens, outputs, 1);
    gb_kernel_call call = {.operands = {&x, &weight}, .results = {&y}};
    check_kernel(gb_kernel_linear, &call);
    for (size_t m = 0; m < tokens; m++) {
        for (size_t o = 0; o < outputs; o++) {
            double exact = 0;
            for (size_t k = 0; k < inputs; k++)
                exact += (double)element(&x, m * inputs + k) * (double)element(&weight, o * inputs + k);
            float found = element(&y, m * outputs + o), defined = defined_dot(&x, m, &weight, o, inputs);
            assert_near(found, exact, 1e-6 * (double)inputs, "against double");
            if (memcmp(&found, &defined, sizeof found) != 0)
                fail_msg("%zu x %zu x %zu at %zu, %zu: %a, defined %a", tokens, inputs, outputs, m, o,
                         (double)found, (double)defined);
        }
    }
    free_tensor(&x);
    free_tensor(&weight);
    free_tensor(&y);
}

static void odd_shapes(void **unused) {
    (void)unused;
    static const size_t tokens[] = {1, 2, 3, 4, 5, 7, 8, 9, 13, 65};
    static const size_t inputs[] = {1, 15, 16, 17, 31, 32, 33, 100, 1023, 1024, 1040, 1101, 2049};
    static const size_t outputs[] = {1, 2, 3, 5, 16, 17, 33, 37};
    static const gb_dtype dtypes[] = {GB_F32, GB_F16, GB_BF16};
    uint64_t state = 1;
    for (size_t d = 0; d < 3; d++)
        for (size_t t = 0; t < sizeof tokens / sizeof *tokens; t++)
            for (size_t i = 0; i < 4; i++)
                check_shape(&state, dtypes[d], tokens[t],
                            inputs[random_below(&state, sizeof inputs / sizeof *inputs)],
                            outputs[random_below(&state, sizeof outputs / sizeof *outputs)]);
}

/* Every 16-bit pattern reads as the same float on every set. */
static void all_halves(void **unused) {
    (void)unused;
    static const gb_dtype dtypes[] = {GB_F16, GB_BF16};
    uint16_t *halves = malloc(65536 * sizeof *halves);
    float *floats = malloc(65536 * sizeof *floats);
    assert_true(halves && floats);
    for (uint32_t i = 0; i < 65536; i++)
        halves[i] = (uint16_t)i;
    const gb_vector_kernels *vector;
    for (size_t set = 0; (vector = gb_available_vector_kernels(set)); set++) {
        for (size_t d = 0; d < 2; d++) {
            vector->widen(halves, dtypes[d], 65536, floats);
            for (uint32_t i = 0; i < 65536; i++) {
                float expected = d == 0 ? gb_float_from_f16((uint16_t)i) : gb_float_from_bf16((uint16_t)i);
                if (expected != expected ? floats[i] == floats[i] : floats[i] != expected)
                    fail_msg("%s: %s %04x is %g", vector->name, gb_dtype_name(dtypes[d]), i,
                             (double)floats[i]);
                if (signbit(floats[i]) != signbit(expected))
                    fail_msg("%s: %s %04x has the wrong sign", vector->name, gb_dtype_name(dtypes[d]), i);
            }
        }
    }
    free(halves);
    free(floats);
}

/* A token's values do not depend on how many others are in the batch. */
static void batch_size_does_not_matter(void **unused) {
    (void)unused;
    enum { TOKENS = 70, INPUTS = 1100, OUTPUTS = 21 };
    uint64_t state = 3;
    gb_cpu_tensor x = random_tensor(&state, GB_F32, 2, TOKENS, INPUTS, 1);
    gb_cpu_tensor weight = random_tensor(&state, GB_BF16, 2, OUTPUTS, INPUTS, 1);
    gb_cpu_tensor all = new_tensor(GB_F32, 2, TOKENS, OUTPUTS, 1), one = new_tensor(GB_F32, 2, 1, OUTPUTS, 1);
    gb_kernel_call call = {.operands = {&x, &weight}, .results = {&all}};
    check_kernel(gb_kernel_linear, &call);
    for (size_t m = 0; m < TOKENS; m++) {
        gb_cpu_tensor row = {
            .data = (float *)x.data + m * INPUTS, .dtype = GB_F32, .rank = 2, .dims = {1, INPUTS}};
        call = (gb_kernel_call){.operands = {&row, &weight}, .results = {&one}};
        check_kernel(gb_kernel_linear, &call);
        assert_memory_equal(one.data, (float *)all.data + m * OUTPUTS, OUTPUTS * sizeof(float));
    }
    free_tensor(&x);
    free_tensor(&weight);
    free_tensor(&all);
    free_tensor(&one);
}

/* Threads that take pieces of the rows, a prompt's too, make what they make of equal shares. */
static void pieces_make_up_the_product(void **unused) {
    (void)unused;
    enum { TOKENS = 70, INPUTS = 100, OUTPUTS = 135, UNITS = 9, THREADS = 3 };
    uint64_t state = 4;
    gb_cpu_tensor x = random_tensor(&state, GB_F32, 2, TOKENS, INPUTS, 1);
    gb_cpu_tensor weight = random_tensor(&state, GB_F16, 2, OUTPUTS, INPUTS, 1);
    gb_cpu_tensor expected = new_tensor(GB_F32, 2, TOKENS, OUTPUTS, 1);
    gb_cpu_tensor found = new_tensor(GB_F32, 2, TOKENS, OUTPUTS, 1);
    gb_kernel_call call = {.operands = {&x, &weight}, .results = {&expected}};
    check_kernel(gb_kernel_linear, &call);
    gb_work_part parts[THREADS];
    gb_work_queue queue = {parts, THREADS, UNITS, 2};
    call = (gb_kernel_call){.operands = {&x, &weight}, .results = {&found}, .queue = &queue};
    const gb_vector_kernels *vector;
    for (size_t set = 0; (vector = gb_available_vector_kernels(set)); set++) {
        call.vector = vector;
        memset(found.data, 0x5a, tensor_bytes(&found));
        gb_work_queue_fill(&queue);
        run_as_team(gb_kernel_linear, &call, THREADS);
        assert_memory_equal(found.data, expected.data, tensor_bytes(&found));
    }
    free_tensor(&x);
    free_tensor(&weight);
    free_tensor(&expected);
    free_tensor(&found);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_shapes),
        cmocka_unit_test(all_halves),
        cmocka_unit_test(batch_size_does_not_matter),
        cmocka_unit_test(pieces_make_up_the_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
