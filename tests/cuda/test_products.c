/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM and GEMV of quantized matrices in every format: near the exact sums of rounded inputs, and with the
 * same bits whatever other rows there are, through every kernel.
 */
#include "backends/cuda/lowering/activations.h"
#include "cuda/launching.h"
#include "support/test_arguments.h"
#include "tensor/convert.h"
#include "tensor/packing.h"

#include <math.h>

enum { MOST_ROWS = 270 };

typedef struct case_of {
    gb_format format;
    size_t outputs, inputs;
    bool in_bytes; /* inputs are rounded to 8 bits by groups */
} case_of;

static const case_of cases[] = {
    {{GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_BF16, 64, 0}, 40, 192, false},
    {{GB_FORMAT_ONE_LEVEL, 4, false, 0, GB_F16, 32, 0}, 16, 96, false},
    {{GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_F16, 128, 0}, 130, 1152, false},
    {{GB_FORMAT_ONE_LEVEL, 5, true, 0, GB_F16, 32, 0}, 17, 320, false},
    {{GB_FORMAT_ONE_LEVEL, 6, false, 0, GB_BF16, 64, 0}, 33, 576, false},
    {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 32, 0}, 48, 64, false},
    {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_BF16, 0, 0}, 21, 77, false},
    {{GB_FORMAT_ONE_LEVEL, 8, true, 0, GB_BF16, 0, 0}, 24, 160, false},
    {{GB_FORMAT_TWO_LEVEL, 4, true, 6, GB_F16, 32, 0}, 32, 256, false},
    {{GB_FORMAT_TWO_LEVEL, 5, true, 6, GB_F16, 32, 0}, 20, 512, false},
    {{GB_FORMAT_TWO_LEVEL, 6, false, 8, GB_F16, 16, 0}, 50, 768, false},
    {{GB_FORMAT_TWO_LEVEL, 4, true, 6, GB_F16, 16, 0}, 18, 256, false},
    {{GB_FORMAT_ONE_LEVEL, 2, false, 0, GB_F16, 128, 0}, 18, 384, false},
    {{GB_FORMAT_TWO_LEVEL, 2, true, 4, GB_F16, 16, 0}, 34, 512, false},
    {{GB_FORMAT_TWO_LEVEL, 3, false, 8, GB_F16, 16, 0}, 18, 256, false},
    {{GB_FORMAT_ONE_LEVEL, 4, false, 0, GB_BF16, 32, GB_BOOK_E2M1}, 32, 192, false},
    {{GB_FORMAT_ONE_LEVEL, 4, false, 0, GB_BF16, 16, GB_BOOK_E2M1}, 17, 320, false},
    {{GB_FORMAT_ONE_LEVEL, 4, false, 0, GB_F16, 32, GB_BOOK_IQ4}, 16, 96, false},
    {{GB_FORMAT_TWO_LEVEL, 4, false, 8, GB_F16, 32, GB_BOOK_IQ3XXS}, 20, 256, false},
    {{GB_FORMAT_TWO_LEVEL, 3, false, 8, GB_F16, 16, GB_BOOK_IQ2}, 33, 512, false},
    {{GB_FORMAT_TWO_LEVEL, 3, false, 8, GB_F16, 32, GB_BOOK_IQ1}, 18, 256, false},
    /* In the packing of gb_packing_fragments. */
    {{GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_BF16, 64, 0}, 48, 192, false},
    {{GB_FORMAT_ONE_LEVEL, 4, false, 0, GB_F16, 32, 0}, 16, 128, false},
    {{GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_F16, 128, 0}, 144, 1152, false},
    {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 32, 0}, 48, 64, false},
    {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_BF16, 32, 0}, 144, 576, false},
    {{GB_FORMAT_ONE_LEVEL, 8, true, 0, GB_F16, 128, 0}, 16, 384, false},
    {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 32, 0}, 16, 96, false}, /* half a pair of units */
    {{GB_FORMAT_ONE_LEVEL, 8, true, 0, GB_BF16, 0, 0}, 32, 96, false},
    /* Blocks of 16 rows of which some are none. */
    {{GB_FORMAT_ONE_LEVEL, 8, true, 0, GB_BF16, 64, 0}, 1, 192, false},
    {{GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_F16, 64, 0}, 21, 128, false},
    {{GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_BF16, 64, 0}, 32, 5632, false}, /* in slices */
    {{GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_BF16, 64, 0}, 48, 704, true},
    {{GB_FORMAT_ONE_LEVEL, 4, false, 0, GB_F16, 32, 0}, 16, 128, true},
    {{GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_F16, 128, 0}, 144, 1152, true},
    {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 32, 0}, 48, 64, true},
    {{GB_FORMAT_ONE_LEVEL, 8, true, 0, GB_BF16, 64, 0}, 32, 5632, true},
    {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_BF16, 128, 0}, 16, 384, true},
    {{GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_BF16, 64, 0},
     48,
     5632,
     true}, /* slices, warps with up to 6 groups */
    {{GB_FORMAT_ONE_LEVEL, 4, false, 0, GB_F16, 32, 0}, 16, 2816, true}, /* and with up to 12 */
    {{GB_FORMAT_ONE_LEVEL, 8, true, 0, GB_BF16, 64, 0}, 1, 2048, true},
    {{GB_FORMAT_ONE_LEVEL, 4, false, 0, GB_F16, 32, 0}, 7, 128, true},
    {{GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_BF16, 64, 0}, 18, 5632, true},
};
enum { CASES = sizeof cases / sizeof *cases, FIRST_PACKED = 21, FIRST_GENERATED = 31 };

typedef struct matrix {
    uint8_t *data;
    gb_planes planes;
    gb_cuda_tensor tensor;
} matrix;

/* Whole blocks of rows, of which the last may be zeros. */
static void pack(const case_of *c, const matrix *m, size_t rows, gb_cuda_tensor *tensor) {
    const size_t all = (rows + GB_FRAGMENT_ROWS - 1) / GB_FRAGMENT_ROWS * GB_FRAGMENT_ROWS;
    gb_packing packing;
    assert_true(gb_format_planes(&c->format, all, c->inputs, &tensor->planes));
    const size_t size = tensor->planes.size;
    uint8_t *canonical = calloc(1, size), *packed = malloc(size);
    assert_true(canonical && packed);
    for (gb_plane_kind kind = GB_PLANE_CODES; kind < GB_PLANE_KINDS; kind++) {
        const gb_plane *from = gb_plane_of(&m->planes, kind);
        memcpy(canonical + gb_plane_of(&tensor->planes, kind)->offset, m->data + from->offset,
               rows * from->row_bytes);
    }
    assert_true(gb_packing_fragments(&c->format, all, c->inputs, &packing));
    gb_pack_matrix(&packing, &c->format, all, c->inputs, canonical, packed);
    tensor->data = device_copy(packed, size);
    free(canonical);
    free(packed);
}

/* Random codes; scales and biases that are small numbers. */
static matrix new_matrix(const case_of *c, size_t experts, uint64_t *random) {
    matrix m;
    size_t rows = experts * c->outputs;
    assert_true(gb_format_planes(&c->format, rows, c->inputs, &m.planes));
    m.data = calloc(1, m.planes.size);
    assert_non_null(m.data);
    for (uint64_t i = 0; i < m.planes.size; i++)
        m.data[i] = (uint8_t)next_random(random);
    const gb_plane halves[] = {m.planes.scales, m.planes.biases, m.planes.super_scales,
                               m.planes.super_biases};
    for (int p = c->format.kind == GB_FORMAT_TWO_LEVEL ? 2 : 0; p < 4; p++)
        for (uint64_t i = 0; i < halves[p].row_bytes / 2 * rows; i++) {
            float value = 0.02f * next_float(random);
            uint16_t half = c->format.scale == GB_BF16 ? gb_bf16_from_float(value) : gb_f16_from_float(value);
            memcpy(m.data + halves[p].offset + 2 * i, &half, sizeof half);
        }
    m.tensor = (gb_cuda_tensor){
        .dtype = GB_QUANTIZED, .rank = 2, .dims = {rows, c->inputs}, .format = c->format, .planes = m.planes};
    if (experts > 1) {
        m.tensor.rank = 3;
        m.tensor.dims[0] = experts;
        m.tensor.dims[1] = c->outputs;
        m.tensor.dims[2] = c->inputs;
    }
    m.tensor.is_packed = c >= cases + FIRST_PACKED;
    m.tensor.int8_input = c->in_bytes;
    if (m.tensor.is_packed)
        pack(c, &m, rows, &m.tensor);
    else
        m.tensor.data = device_copy(m.data, m.planes.size);
    return m;
}

static void free_matrix(matrix *m) {
    free_on_device(&m->tensor);
    free(m->data);
}

static float *random_rows(size_t rows, size_t columns, uint64_t *random) {
    float *x = malloc(rows * columns * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < rows * columns; i++)
        x[i] = next_float(random);
    return x;
}

typedef struct product {
    const gb_cuda_tensor *x, *weight, *experts;
    const gb_cuda_tensor *y;
    bool is_prefill;
} product;

static void run_product(const gb_cuda_registry *registry, const product *p) {
    gb_node node = {.op = p->experts ? GB_OP_EXPERT_LINEAR : GB_OP_LINEAR};
    gb_cuda_scratch scratch = {.wgmma_blocks = gb_cuda_wgmma_blocks()};
    gb_cuda_call call = {.node = &node,
                         .operands = {p->x, p->weight, p->experts},
                         .results = {p->y},
                         .scratch = &scratch,
                         .row_class = p->is_prefill ? GB_CUDA_SHORT_PROMPT : GB_CUDA_ONE_ROW};
    static const uint32_t zeros[GB_CUDA_ARRIVALS];
    scratch.bytes = device_copy(NULL, scratch_from(registry, &call));
    scratch.arrivals = device_copy(zeros, sizeof zeros);
    launch_from(registry, &call);
    assert_cuda(cudaGetLastError());
    assert_cuda(cudaFree(scratch.bytes));
    assert_cuda(cudaFree(scratch.arrivals));
}

/* y = the rows x through the matrix, and nothing behind them. */
static void multiply(const matrix *m, const float *x, size_t rows, bool is_prefill, float *y) {
    size_t outputs = m->tensor.dims[0], inputs = m->tensor.dims[1], size = (rows + 1) * outputs;
    float *result = malloc(size * sizeof *result);
    assert_non_null(result);
    for (size_t i = 0; i < size; i++)
        result[i] = 7;
    gb_cuda_tensor from = device_tensor(GB_F32, x, 2, rows, inputs, 1);
    gb_cuda_tensor to = device_tensor(GB_F32, result, 2, rows + 1, outputs, 1);
    run_product(&gb_cuda_linear_kernels, &(product){&from, &m->tensor, NULL, &to, is_prefill});
    fetch_tensor(&to, result);
    memcpy(y, result, rows * outputs * sizeof *y);
    for (size_t i = rows * outputs; i < size; i++)
        assert_true(result[i] == 7.0f);
    free(result);
    free_on_device(&from);
    free_on_device(&to);
}

static float rounded(float x) {
    return gb_float_from_bf16(gb_bf16_from_float(x));
}

/* Inputs as products take them. */
static void round_inputs(const case_of *c, const float *x, float *inputs) {
    size_t group = c->in_bytes ? c->format.group : 1;
    for (size_t first = 0; first < c->inputs; first += group) {
        float largest = 0;
        for (size_t k = first; k < first + group; k++)
            largest = fmaxf(largest, fabsf(x[k]));
        float scale = largest / 127.0f;
        for (size_t k = first; k < first + group; k++)
            inputs[k] = c->in_bytes ? scale * rintf(x[k] / scale) : rounded(x[k]);
    }
}

/* A row of the matrix against x in double, and how far a sum in float32 may be from it. With rounded weights
 * some may be rounded in the other direction, where they lie halfway but for the last bits of a float. */
static double exact_sum(const case_of *c, const matrix *m, size_t row, const float *x, bool has_rounded,
                        double *tolerance) {
    double sum = 0, size = 0;
    float w[6144], inputs[6144];
    assert_true(c->inputs <= 6144);
    round_inputs(c, x, inputs);
    gb_format_dequantize(&c->format, &m->planes, m->data, row, 0, c->inputs, w);
    for (size_t k = 0; k < c->inputs; k++) {
        gb_affine affine = gb_format_affine(&c->format, &m->planes, m->data, row, k / m->planes.group);
        sum += (double)(has_rounded ? rounded(w[k]) : w[k]) * (double)inputs[k];
        size += (fabs((double)affine.bias) + 512 * fabs((double)affine.scale)) * fabs((double)inputs[k]);
    }
    *tolerance = 1e-6 * size;
    return sum;
}

/* A prompt's products with codes that are packed have rounded weights, on devices that can. */
static bool has_rounded_weights(const matrix *m, bool is_prefill) {
    gb_cuda_scratch scratch = {.wgmma_blocks = gb_cuda_wgmma_blocks()};
    return gb_cuda_supports_wgmma(
        &(gb_cuda_call){.scratch = &scratch,
                        .row_class = is_prefill ? GB_CUDA_SHORT_PROMPT : GB_CUDA_ONE_ROW},
        &m->tensor);
}

static void assert_sum(const case_of *c, const matrix *m, size_t row, const float *x, bool is_prefill,
                       float found) {
    double tolerance, expected = exact_sum(c, m, row, x, has_rounded_weights(m, is_prefill), &tolerance);
    if (!(fabs((double)found - expected) <= tolerance)) {
        char text[GB_FORMAT_TEXT];
        fail_msg("%s, row %zu: %g, expected %g within %g", gb_format_text(&c->format, text), row,
                 (double)found, expected, tolerance);
    }
}

/* The state of a test: NULL, or that the tokens are a prompt's, whose products are others where the weight is
 * packed. */
static char prompt[] = "prompt";

static size_t first_case(bool is_prefill) {
    return is_prefill ? FIRST_PACKED : 0;
}

static size_t case_count(bool is_prefill) {
    return is_prefill ? FIRST_GENERATED : CASES;
}

static void sums_are_right(void **state) {
    const bool is_prefill = *state != NULL;
    uint64_t random = 5;
    for (size_t i = first_case(is_prefill); i < case_count(is_prefill); i++) {
        const case_of *c = &cases[i];
        enum { ROWS = 5 };
        matrix m = new_matrix(c, 1, &random);
        float *x = random_rows(ROWS, c->inputs, &random), *y = malloc(ROWS * c->outputs * sizeof *y);
        multiply(&m, x, ROWS, is_prefill, y);
        for (size_t n = 0; n < ROWS; n++)
            for (size_t o = 0; o < c->outputs; o++)
                assert_sum(c, &m, o, x + n * c->inputs, is_prefill, y[n * c->outputs + o]);
        free(x);
        free(y);
        free_matrix(&m);
    }
}

/* One row alone, 8, 16 and many rows take different kernels; so do up to 64, 128 and 256 of a prompt. */
static void rows_do_not_depend_on_others(void **state) {
    const bool is_prefill = *state != NULL;
    uint64_t random = 6;
    static const size_t counts[] = {1, 7, 8, 9, 16, 17, 64, 65, 129, MOST_ROWS};
    const size_t step = is_short_run() ? 4 : 1;
    for (size_t i = first_case(is_prefill); i < case_count(is_prefill); i++) {
        const case_of *c = &cases[i];
        const size_t most = c->inputs > 2048 ? 17 : (size_t)shortened(MOST_ROWS, 130);
        matrix m = new_matrix(c, 1, &random);
        float *x = random_rows(MOST_ROWS, c->inputs, &random);
        float *all = malloc(MOST_ROWS * c->outputs * sizeof *all),
              *some = malloc(MOST_ROWS * c->outputs * sizeof *some);
        multiply(&m, x, most, is_prefill, all);
        for (size_t n = 0; n < sizeof counts / sizeof *counts && counts[n] <= most; n += step) {
            size_t first = most - counts[n];
            multiply(&m, x + first * c->inputs, counts[n], is_prefill, some);
            assert_memory_equal(some, all + first * c->outputs, counts[n] * c->outputs * sizeof *all);
        }
        free(x);
        free(all);
        free(some);
        free_matrix(&m);
    }
}

/* Matrices that are not quantized are multiplied in float32. */
static void float_sums_are_right(void **state) {
    enum { ROWS = 130, OUTPUTS = 70, INPUTS = 50 };
    uint64_t random = 8;
    float *w = random_rows(OUTPUTS, INPUTS, &random), *x = random_rows(ROWS, INPUTS, &random);
    float *y = malloc(ROWS * OUTPUTS * sizeof *y);
    matrix m = {.tensor = device_tensor(GB_F32, w, 2, OUTPUTS, INPUTS, 1)};
    for (size_t rows = 3; rows <= ROWS; rows += ROWS - 3) {
        multiply(&m, x, rows, *state != NULL, y);
        for (size_t n = 0; n < rows; n++)
            for (size_t o = 0; o < OUTPUTS; o++) {
                double sum = 0;
                for (size_t k = 0; k < INPUTS; k++)
                    sum += (double)w[o * INPUTS + k] * (double)x[n * INPUTS + k];
                assert_true(fabs((double)y[n * OUTPUTS + o] - sum) < 1e-5);
            }
    }
    free(w);
    free(x);
    free(y);
    free_matrix(&m);
}

/* ---- Experts ------------------------------------------------------------------------------------------- */

enum { EXPERTS = 7, CHOICES = 3 };

static void multiply_by_experts(const matrix *m, const float *x, size_t x_rows, const int32_t *experts,
                                size_t tokens, bool is_prefill, float *y) {
    size_t outputs = m->tensor.dims[1], inputs = m->tensor.dims[2];
    gb_cuda_tensor from =
        device_tensor(GB_F32, x, x_rows == 1 ? 2 : 3, tokens, x_rows == 1 ? inputs : x_rows, inputs);
    gb_cuda_tensor chosen = device_tensor(GB_I32, experts, 2, tokens, CHOICES, 1);
    gb_cuda_tensor to = device_tensor(GB_F32, NULL, 3, tokens, CHOICES, outputs);
    run_product(&gb_cuda_expert_linear_kernels, &(product){&from, &m->tensor, &chosen, &to, is_prefill});
    fetch_tensor(&to, y);
    free_on_device(&from);
    free_on_device(&chosen);
    free_on_device(&to);
}

/* Few tokens go pair by pair, many are sorted by their experts. */
static void experts_are_right(void **state) {
    const bool is_prefill = *state != NULL;
    enum { FEW = 3, MOST = 120 };
    const size_t more = (size_t)shortened(MOST, 90); /* with more pairs than go one by one */
    uint64_t random = 7;
    for (size_t i = first_case(is_prefill); i < case_count(is_prefill); i += i == 4 ? FIRST_PACKED - 4 : 1) {
        const case_of *c = &cases[i];
        if (c->inputs > 2048 || (i >= FIRST_PACKED && c->outputs % GB_FRAGMENT_ROWS != 0))
            continue; /* experts have whole blocks */
        size_t x_rows = i % 2 ? CHOICES : 1, width = c->outputs * CHOICES;
        int32_t experts[MOST * CHOICES];
        matrix m = new_matrix(c, EXPERTS, &random);
        float *x = random_rows(more * x_rows, c->inputs, &random);
        float *few = malloc(FEW * width * sizeof *few), *many = malloc(more * width * sizeof *many);
        for (size_t p = 0; p < more * CHOICES; p++)
            experts[p] = (int32_t)(next_random(&random) % EXPERTS) * (p % 5 != 0);
        multiply_by_experts(&m, x, x_rows, experts, more, is_prefill, many);
        multiply_by_experts(&m, x, x_rows, experts, FEW, is_prefill, few);
        assert_memory_equal(few, many, FEW * width * sizeof *few);
        for (size_t p = 0; p < more * CHOICES; p++)
            for (size_t o = 0; o < c->outputs; o += 5)
                assert_sum(c, &m, (size_t)experts[p] * c->outputs + o,
                           x + (x_rows == 1 ? p / CHOICES : p) * c->inputs, is_prefill,
                           many[p * c->outputs + o]);
        free(x);
        free(few);
        free(many);
        free_matrix(&m);
    }
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_right),
        cmocka_unit_test(rows_do_not_depend_on_others),
        cmocka_unit_test(float_sums_are_right),
        cmocka_unit_test(experts_are_right),
        {"a prompt's sums_are_right", sums_are_right, NULL, NULL, prompt},
        {"a prompt's rows_do_not_depend_on_others", rows_do_not_depend_on_others, NULL, NULL, prompt},
        {"a prompt's float_sums_are_right", float_sums_are_right, NULL, NULL, prompt},
        {"a prompt's experts_are_right", experts_are_right, NULL, NULL, prompt},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
