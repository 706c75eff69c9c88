/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of matrices that are not quantized: near the exact sums, with the same bits whatever other rows a
 * product has, and together with other matrices as alone.
 */
#include "cuda/device_memory.h"
#include "tensor/convert.h"

#include <math.h>

enum { MOST_ROWS = 70, MATRICES = 3 };

typedef struct case_of {
    gb_dtype dtype;
    size_t inputs, outputs[MATRICES];
} case_of;

static const case_of cases[] = {
    {GB_F32, 50, {70, 1, 9}},    {GB_F32, 64, {5, 33, 1}},   {GB_BF16, 96, {70, 1, 64}},
    {GB_BF16, 2208, {33, 4, 1}}, {GB_F16, 200, {9, 128, 3}}, {GB_BF16, 40, {17, 65, 2}},
    {GB_F32, 2048, {6, 1, 3}},   {GB_F16, 2056, {5, 2, 1}},  {GB_F32, 4104, {3, 5, 1}},
    {GB_BF16, 5632, {7, 1, 2}},  {GB_F16, 8192, {2, 5, 1}},  {GB_F32, 8184, {1, 6, 2}},
};

typedef struct matrix {
    float *values; /* as they are rounded */
    gb_cuda_tensor tensor;
} matrix;

static matrix new_matrix(const case_of *c, size_t outputs, uint64_t *random) {
    size_t count = outputs * c->inputs;
    float *values = malloc(count * sizeof *values);
    uint16_t *halves = malloc(count * sizeof *halves);
    assert_non_null(values);
    assert_non_null(halves);
    for (size_t i = 0; i < count; i++) {
        values[i] = next_float(random);
        halves[i] = c->dtype == GB_BF16 ? gb_bf16_from_float(values[i]) : gb_f16_from_float(values[i]);
        if (c->dtype != GB_F32)
            values[i] = gb_widen_half(halves[i], c->dtype);
    }
    const void *data = c->dtype == GB_F32 ? (const void *)values : halves;
    matrix m = {values, device_tensor(c->dtype, data, 2, outputs, c->inputs, 1)};
    free(halves);
    return m;
}

/* y[i] = the rows x through matrix i: in one launch, or in one each. */
static void multiply(const case_of *c, const matrix *matrices, const float *x, size_t rows, bool is_prefill,
                     bool together, float **y) {
    gb_cuda_tensor from = device_tensor(GB_F32, x, 2, rows, c->inputs, 1), to[MATRICES];
    gb_cuda_scratch scratch = {0};
    gb_cuda_call calls[MATRICES];
    const gb_cuda_call *list[MATRICES];
    for (size_t i = 0; i < MATRICES; i++) {
        to[i] = device_tensor(GB_F32, NULL, 2, rows, c->outputs[i], 1);
        calls[i] = (gb_cuda_call){.operands = {&from, &matrices[i].tensor},
                                  .results = {&to[i]},
                                  .scratch = &scratch,
                                  .is_prefill = is_prefill};
        list[i] = &calls[i];
        if (!together)
            gb_cuda_linear(&calls[i]);
    }
    if (together)
        gb_cuda_linear_group(list, MATRICES);
    for (size_t i = 0; i < MATRICES; i++) {
        fetch_tensor(&to[i], y[i]);
        free_on_device(&to[i]);
    }
    free_on_device(&from);
}

static void assert_sums(const case_of *c, const matrix *m, size_t outputs, const float *x, size_t rows,
                        const float *y) {
    for (size_t n = 0; n < rows; n++)
        for (size_t o = 0; o < outputs; o++) {
            double sum = 0;
            for (size_t k = 0; k < c->inputs; k++)
                sum += (double)m->values[o * c->inputs + k] * (double)x[n * c->inputs + k];
            const double found = (double)y[n * outputs + o];
            if (!(fabs(found - sum) < 1e-6 * (double)c->inputs))
                fail_msg("row %zu, output %zu of %zu inputs: %g, expected %g", n, o, c->inputs, found, sum);
        }
}

static void check_case(const case_of *c, bool is_prefill, uint64_t *random) {
    static const size_t counts[] = {1, 3, 16, 33, MOST_ROWS};
    float *x = malloc(MOST_ROWS * c->inputs * sizeof *x), *all[MATRICES], *some[MATRICES];
    matrix matrices[MATRICES];
    assert_non_null(x);
    for (size_t i = 0; i < MOST_ROWS * c->inputs; i++)
        x[i] = next_float(random);
    for (size_t i = 0; i < MATRICES; i++) {
        matrices[i] = new_matrix(c, c->outputs[i], random);
        all[i] = malloc(MOST_ROWS * c->outputs[i] * sizeof(float));
        some[i] = malloc(MOST_ROWS * c->outputs[i] * sizeof(float));
    }
    multiply(c, matrices, x, MOST_ROWS, is_prefill, false, all);
    for (size_t i = 0; i < MATRICES; i++)
        assert_sums(c, &matrices[i], c->outputs[i], x, MOST_ROWS, all[i]);
    for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
        const size_t first = MOST_ROWS - counts[n];
        multiply(c, matrices, x + first * c->inputs, counts[n], is_prefill, true, some);
        for (size_t i = 0; i < MATRICES; i++)
            assert_memory_equal(some[i], all[i] + first * c->outputs[i],
                                counts[n] * c->outputs[i] * sizeof(float));
    }
    for (size_t i = 0; i < MATRICES; i++) {
        free_on_device(&matrices[i].tensor);
        free(matrices[i].values);
        free(all[i]);
        free(some[i]);
    }
    free(x);
}

static void generated_tokens_sums_are_right(void **state) {
    (void)state;
    uint64_t random = 3;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i], false, &random);
}

static void prompts_sums_are_right(void **state) {
    (void)state;
    uint64_t random = 4;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i], true, &random);
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generated_tokens_sums_are_right),
        cmocka_unit_test(prompts_sums_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
