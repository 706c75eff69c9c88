/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM and GEMV of matrices that are not quantized: near the exact sums, with the same bits whatever other
 * rows there are, and with other matrices in the launch as alone.
 */
#include "backends/cuda/lowering/activations.h"
#include "cuda/launching.h"
#include "tensor/convert.h"

#include <math.h>

enum { MOST_ROWS = 150, SOME_ROWS = 20, MATRICES = 3, EXPERTS = 5, CHOICES = 2 };

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

/* What Hopper has a kernel of its own for, but for the last matrix: of more than 1,024 outputs. */
static const case_of large_cases[] = {{GB_BF16, 64, {1025, 1290, 1024}}, {GB_BF16, 320, {1224, 1030, 1}}};

/* Of generated tokens: a block has more outputs where there are so many, and more for several rows. */
static const case_of wide_cases[] = {
    {GB_BF16, 72, {8200, 1030, 1}}, {GB_BF16, 8712, {20, 3, 1}}, {GB_BF16, 2056, {3000, 2900, 2910}}};

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
    gb_cuda_scratch scratch = {.wgmma_blocks = gb_cuda_wgmma_blocks()};
    gb_cuda_call calls[MATRICES];
    const gb_cuda_call *list[MATRICES];
    for (size_t i = 0; i < MATRICES; i++) {
        to[i] = device_tensor(GB_F32, NULL, 2, rows, c->outputs[i], 1);
        calls[i] = (gb_cuda_call){.operands = {&from, &matrices[i].tensor},
                                  .results = {&to[i]},
                                  .scratch = &scratch,
                                  .row_class = is_prefill ? GB_CUDA_SHORT_PROMPT : GB_CUDA_ONE_ROW};
        list[i] = &calls[i];
        if (!together)
            launch_linear(&calls[i]);
    }
    if (together)
        launch_linears(list, MATRICES);
    for (size_t i = 0; i < MATRICES; i++) {
        fetch_tensor(&to[i], y[i]);
        free_on_device(&to[i]);
    }
    free_on_device(&from);
}

/* y = weight x, of one row. */
static void assert_row(const float *weight, size_t inputs, size_t outputs, const float *x, const float *y) {
    for (size_t o = 0; o < outputs; o++) {
        double sum = 0;
        for (size_t k = 0; k < inputs; k++)
            sum += (double)weight[o * inputs + k] * (double)x[k];
        if (!(fabs((double)y[o] - sum) < 1e-6 * (double)inputs))
            fail_msg("output %zu of %zu inputs: %g, expected %g", o, inputs, (double)y[o], sum);
    }
}

static void assert_sums(const case_of *c, const matrix *m, size_t outputs, const float *x, size_t rows,
                        const float *y) {
    for (size_t n = 0; n < rows; n++)
        assert_row(m->values, c->inputs, outputs, x + n * c->inputs, y + n * outputs);
}

static void check_case(const case_of *c, size_t rows, bool is_prefill, uint64_t *random) {
    static const size_t counts[] = {1, 3, 16, SOME_ROWS, 33, 101, MOST_ROWS};
    float *x = malloc(rows * c->inputs * sizeof *x), *all[MATRICES], *some[MATRICES];
    matrix matrices[MATRICES];
    assert_non_null(x);
    for (size_t i = 0; i < rows * c->inputs; i++)
        x[i] = next_float(random);
    for (size_t i = 0; i < MATRICES; i++) {
        matrices[i] = new_matrix(c, c->outputs[i], random);
        all[i] = malloc(rows * c->outputs[i] * sizeof(float));
        some[i] = malloc(rows * c->outputs[i] * sizeof(float));
    }
    multiply(c, matrices, x, rows, is_prefill, false, all);
    for (size_t i = 0; i < MATRICES; i++)
        assert_sums(c, &matrices[i], c->outputs[i], x, rows, all[i]);
    for (size_t n = 0; n < sizeof counts / sizeof *counts && counts[n] <= rows; n++) {
        const size_t first = rows - counts[n];
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
        check_case(&cases[i], MOST_ROWS, false, &random);
    for (size_t i = 0; i < sizeof large_cases / sizeof *large_cases; i++)
        check_case(&large_cases[i], MOST_ROWS, false, &random);
    for (size_t i = 0; i < sizeof wide_cases / sizeof *wide_cases; i++)
        check_case(&wide_cases[i], SOME_ROWS, false, &random);
}

/* A row with one number that is not 0, times weights of 1: no kernel leaves bits of it out. */
static void generated_tokens_keep_all_bits(void **state) {
    static const case_of c = {GB_BF16, 328, {1100, 40, 1}};
    enum { ROWS = 20 };
    (void)state;
    uint64_t random = 6;
    float *x = calloc(ROWS * c.inputs, sizeof *x), *y[MATRICES];
    uint16_t *ones = malloc(c.outputs[0] * c.inputs * sizeof *ones);
    matrix matrices[MATRICES] = {0};
    assert_non_null(x);
    assert_non_null(ones);
    for (size_t i = 0; i < c.outputs[0] * c.inputs; i++)
        ones[i] = gb_bf16_from_float(1);
    for (size_t n = 0; n < ROWS; n++)
        x[n * c.inputs + n * 37 % c.inputs] = next_float(&random);
    for (size_t i = 0; i < MATRICES; i++) {
        matrices[i].tensor = device_tensor(c.dtype, ones, 2, c.outputs[i], c.inputs, 1);
        y[i] = malloc(ROWS * c.outputs[i] * sizeof(float));
        assert_non_null(y[i]);
    }
    multiply(&c, matrices, x, ROWS, false, true, y);
    for (size_t i = 0; i < MATRICES; i++) {
        for (size_t j = 0; j < ROWS * c.outputs[i]; j++) {
            const size_t n = j / c.outputs[i];
            assert_true(y[i][j] == x[n * c.inputs + n * 37 % c.inputs]);
        }
        free_on_device(&matrices[i].tensor);
        free(y[i]);
    }
    free(ones);
    free(x);
}

static void prompts_sums_are_right(void **state) {
    (void)state;
    uint64_t random = 4;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i], MOST_ROWS, true, &random);
    for (size_t i = 0; i < sizeof large_cases / sizeof *large_cases; i++)
        check_case(&large_cases[i], MOST_ROWS, true, &random);
}

/* ---- Experts ------------------------------------------------------------------------------------------- */

typedef struct experts_case {
    case_of of;       /* outputs[0] of an expert */
    size_t rows_each; /* of x for a token: 1, or one for each choice */
    bool is_prefill;
} experts_case;

/* y = each token's rows through its chosen experts' matrices, which stand one after the other in m. */
static void multiply_by_experts(const experts_case *e, const matrix *m, const float *x, const int32_t *chosen,
                                size_t tokens, float *y) {
    const case_of *c = &e->of;
    gb_cuda_tensor weight = m->tensor,
                   from = e->rows_each == 1 ? device_tensor(GB_F32, x, 2, tokens, c->inputs, 1)
                                            : device_tensor(GB_F32, x, 3, tokens, CHOICES, c->inputs),
                   experts = device_tensor(GB_I32, chosen, 2, tokens, CHOICES, 1),
                   to = device_tensor(GB_F32, NULL, 3, tokens, CHOICES, c->outputs[0]);
    gb_cuda_scratch scratch = {.wgmma_blocks = gb_cuda_wgmma_blocks()};
    weight.rank = 3;
    weight.dims[0] = EXPERTS;
    weight.dims[1] = c->outputs[0];
    weight.dims[2] = c->inputs;
    const gb_cuda_call call = {.operands = {&from, &weight, &experts},
                               .results = {&to},
                               .scratch = &scratch,
                               .row_class = e->is_prefill ? GB_CUDA_SHORT_PROMPT : GB_CUDA_ONE_ROW};
    scratch.bytes = device_copy(NULL, scratch_from(&gb_cuda_expert_linear_kernels, &call));
    launch_expert_linear(&call);
    fetch_tensor(&to, y);
    assert_cuda(cudaFree(scratch.bytes));
    free_on_device(&to);
    free_on_device(&from);
    free_on_device(&experts);
}

/* Most tokens choose the first two, so that there are large and small lists, and an empty one. */
static void check_experts(const experts_case *e) {
    const case_of c = e->of;
    const size_t rows_each = e->rows_each;
    enum { ALONE = 3 };
    uint64_t random = 5;
    int32_t chosen[MOST_ROWS * CHOICES];
    float *x = malloc(MOST_ROWS * rows_each * c.inputs * sizeof *x);
    float *all = malloc(MOST_ROWS * CHOICES * c.outputs[0] * sizeof *all),
          *some = malloc(ALONE * CHOICES * c.outputs[0] * sizeof *some);
    assert_non_null(x);
    assert_non_null(all);
    assert_non_null(some);
    const matrix m = new_matrix(&c, EXPERTS * c.outputs[0], &random);
    for (size_t i = 0; i < MOST_ROWS * rows_each * c.inputs; i++)
        x[i] = next_float(&random);
    for (int32_t n = 0; n < MOST_ROWS; n++) {
        chosen[n * CHOICES] = n % 16 == 0 ? 3 : 0;
        chosen[n * CHOICES + 1] = n % 5 == 0 ? 4 : 1;
    }
    multiply_by_experts(e, &m, x, chosen, MOST_ROWS, all);
    for (size_t i = 0; i < MOST_ROWS * CHOICES; i++)
        assert_row(m.values + (size_t)chosen[i] * c.outputs[0] * c.inputs, c.inputs, c.outputs[0],
                   x + i * rows_each / CHOICES * c.inputs, all + i * c.outputs[0]);
    const size_t first = MOST_ROWS - ALONE;
    multiply_by_experts(e, &m, x + first * rows_each * c.inputs, chosen + first * CHOICES, ALONE, some);
    assert_memory_equal(some, all + first * CHOICES * c.outputs[0],
                        ALONE * CHOICES * c.outputs[0] * sizeof *some);
    free_on_device(&m.tensor);
    free(m.values);
    free(x);
    free(all);
    free(some);
}

static void experts_sums_are_right(void **state) {
    (void)state;
    static const experts_case experts[] = {
        {{GB_BF16, 128, {440, 0, 0}}, 1, true},  {{GB_BF16, 128, {440, 0, 0}}, CHOICES, true},
        {{GB_BF16, 128, {440, 0, 0}}, 1, false}, {{GB_BF16, 2056, {70, 0, 0}}, CHOICES, false},
        {{GB_BF16, 36, {70, 0, 0}}, 1, false},
    };
    for (size_t i = 0; i < sizeof experts / sizeof *experts; i++)
        check_experts(&experts[i]);
}

/* More pairs than a grid has blocks for: each token has one number and chooses the experts 1 and 2, by whose
 * only weights it is multiplied. */
static void many_pairs_are_all_there(void **state) {
    static const experts_case e = {{GB_BF16, 8, {1, 0, 0}}, 1, false};
    enum { TOKENS = 33000 };
    (void)state;
    float *x = calloc(TOKENS * e.of.inputs, sizeof *x), *y = malloc(TOKENS * CHOICES * sizeof *y);
    int32_t *chosen = malloc(TOKENS * CHOICES * sizeof *chosen);
    uint16_t weights[EXPERTS * 8] = {0};
    assert_non_null(x);
    assert_non_null(y);
    assert_non_null(chosen);
    for (size_t i = 0; i < EXPERTS; i++)
        weights[i * e.of.inputs] = gb_bf16_from_float((float)i);
    for (size_t n = 0; n < TOKENS; n++) {
        x[n * e.of.inputs] = (float)n;
        chosen[n * CHOICES] = 1;
        chosen[n * CHOICES + 1] = 2;
    }
    const matrix m = {NULL, device_tensor(e.of.dtype, weights, 2, EXPERTS, e.of.inputs, 1)};
    multiply_by_experts(&e, &m, x, chosen, TOKENS, y);
    for (size_t i = 0; i < TOKENS * CHOICES; i++)
        assert_true(y[i] == (float)(i / CHOICES * (i % CHOICES + 1)));
    free_on_device(&m.tensor);
    free(x);
    free(y);
    free(chosen);
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generated_tokens_sums_are_right), cmocka_unit_test(generated_tokens_keep_all_bits),
        cmocka_unit_test(prompts_sums_are_right),          cmocka_unit_test(experts_sums_are_right),
        cmocka_unit_test(many_pairs_are_all_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
