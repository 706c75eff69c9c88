/* SPDX-License-Identifier: Apache-2.0
 *
 * Norms around a residual on long rows, in one launch: the bits are those of the ops' own kernels, and the
 * epilogue stores prepared rows.
 */
#include "backends/cuda/runtime/facts.h"
#include "cuda/launching.h"
#include "cuda/prepared_pairs.h"

enum { ROWS = 3, MOST_OPS = 4 };

typedef enum part { NORM, ADD, SCALE } part;

typedef struct chain_case {
    uint32_t width, count;
    part parts[MOST_OPS];
} chain_case;

static const chain_case cases[] = {
    {1100, 4, {NORM, ADD, SCALE, NORM}},
    {2048, 2, {ADD, NORM}},
    {5376, 3, {NORM, ADD, NORM}},
    {5376, 4, {NORM, ADD, SCALE, NORM}},
    {8192, 1, {NORM}},
    {1056, 2, {SCALE, NORM}},
    {6200, 3, {ADD, SCALE, NORM}},
    {9000, 3, {NORM, ADD, NORM}},
};

static gb_cuda_tensor random_tensor(uint32_t rows, uint32_t width, uint64_t *random) {
    float *values = malloc((size_t)rows * width * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < (size_t)rows * width; i++)
        values[i] = next_float(random);
    gb_cuda_tensor result = rows == 1 ? device_tensor(GB_F32, values, 1, width, 1, 1)
                                      : device_tensor(GB_F32, values, 2, rows, width, 1);
    free(values);
    return result;
}

/* ROWS rows, one time after the other. */
static gb_cuda_tensor repeated_tensor(uint32_t rows, uint32_t width, uint64_t *random) {
    const size_t count = (size_t)rows * width;
    float *values = malloc(count * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = i < (size_t)ROWS * width ? next_float(random) : values[i - (size_t)ROWS * width];
    const gb_cuda_tensor result = device_tensor(GB_F32, values, 2, rows, width, 1);
    free(values);
    return result;
}

static gb_cuda_tensor random_weight(uint32_t width, gb_dtype dtype, uint64_t *random) {
    if (dtype == GB_F32)
        return random_tensor(1, width, random);
    uint16_t *values = malloc(width * sizeof *values);
    assert_non_null(values);
    for (uint32_t i = 0; i < width; i++)
        values[i] = gb_bf16_from_float(next_float(random));
    const gb_cuda_tensor result = device_tensor(GB_BF16, values, 1, width, 1, 1);
    free(values);
    return result;
}

static const gb_node nodes[] = {
    [NORM] = {.op = GB_OP_RMS_NORM,
              .attribute_count = 2,
              .attributes = {{GB_ATTRIBUTE_EPSILON, GB_ATTRIBUTE_FLOAT, {.f = 1e-6}},
                             {GB_ATTRIBUTE_WEIGHT_OFFSET, GB_ATTRIBUTE_FLOAT, {.f = 1}}}},
    [ADD] = {.op = GB_OP_ADD},
    [SCALE] = {.op = GB_OP_SCALE},
};

typedef void (*op_launch)(const gb_cuda_call *call);

static const op_launch alone[] = {[NORM] = gb_cuda_rms_norm, [ADD] = gb_cuda_add, [SCALE] = gb_cuda_scale};

/* Ops in order as the norms of a step, whose results are all kept, with products of the last one. */
typedef struct norms_step {
    const gb_cuda_tensor *operands[GB_MAX_STEP_OPERANDS];
    const gb_cuda_call *parts[GB_MAX_FUSED_NODES];
    gb_cuda_problem problem;
} norms_step;

static void make_norms(norms_step *s, const part *parts, const gb_cuda_call *const *calls, uint32_t count,
                       const gb_cuda_call *const *products, uint32_t product_count, bool keeps_last) {
    *s = (norms_step){.operands = {[GB_NORMS_X] = calls[0]->operands[0]}};
    for (uint32_t k = 0; k < count; k++) {
        const gb_cuda_tensor *other = calls[k]->operands[1];
        if (parts[k] == ADD) {
            s->parts[GB_NORMS_ADD] = calls[k];
            s->operands[GB_NORMS_ADDED] = other;
        } else if (parts[k] == SCALE) {
            s->parts[GB_NORMS_SCALE] = calls[k];
            s->operands[GB_NORMS_SCALE_FACTOR] = other;
        } else if (k + 1 < count) {
            s->parts[GB_NORMS_FIRST] = calls[k];
            s->operands[GB_NORMS_FIRST_WEIGHT] = other;
        } else {
            s->parts[GB_NORMS_LAST] = calls[k];
            s->operands[GB_NORMS_LAST_WEIGHT] = other;
        }
    }
    for (uint32_t i = 0; i < product_count; i++)
        s->parts[GB_NORMS_PARTS + i] = products[i];
    s->problem = (gb_cuda_problem){s->operands, s->parts, GB_NORMS_PARTS + product_count, 0};
    for (uint32_t p = 0; p < GB_NORMS_PARTS; p++)
        if (s->parts[p] && (p != GB_NORMS_LAST || keeps_last))
            s->problem.live |= 1u << p;
}

/* One launch for the norms (too long ones are a chain of rows), and as few as there can be for the products.
 */
static void launch_apart(const norms_step *s) {
    gb_cuda_problem norms = s->problem;
    norms.count = GB_NORMS_PARTS;
    norms.live |= 1u << GB_NORMS_LAST;
    if (!launch_fused(GB_FUSED_NORMS, &norms)) {
        const gb_cuda_call *chain[GB_NORMS_PARTS];
        gb_cuda_problem rows = {.parts = chain, .live = ~0u};
        for (uint32_t p = 0; p < GB_NORMS_PARTS; p++)
            if (s->parts[p])
                chain[rows.count++] = s->parts[p];
        assert_true(launch_fused(GB_FUSED_ROWS, &rows));
    }
    launch_linears(s->parts + GB_NORMS_PARTS, s->problem.count - GB_NORMS_PARTS);
}

/* The results of all of a case's ops, [count, rows, width], in one launch or in one each. prepared: of ROWS
 * rows, or NULL. */
static void run_case(const chain_case *c, uint32_t rows, gb_dtype dtype, bool is_chain, void *prepared,
                     float *results) {
    uint64_t random = 11;
    gb_cuda_tensor x = repeated_tensor(rows, c->width, &random), others[MOST_OPS], result[MOST_OPS];
    gb_cuda_call calls[MOST_OPS] = {0};
    const gb_cuda_call *list[MOST_OPS] = {NULL};
    norms_step step;
    for (uint32_t k = 0; k < c->count; k++) {
        others[k] = c->parts[k] == ADD ? repeated_tensor(rows, c->width, &random)
                                       : random_weight(c->parts[k] == SCALE ? 1 : c->width, dtype, &random);
        result[k] = device_tensor(GB_F32, NULL, 2, rows, c->width, 1);
        calls[k] = (gb_cuda_call){.node = &nodes[c->parts[k]],
                                  .operands = {k ? &result[k - 1] : &x, &others[k]},
                                  .results = {&result[k]}};
        list[k] = &calls[k];
    }
    const gb_cuda_prepared epilogue = {.as = &result[c->count - 1], .data = prepared};
    calls[c->count - 1].epilogue = is_chain && prepared ? &epilogue : NULL;
    make_norms(&step, c->parts, list, c->count, NULL, 0, true);
    if (is_chain)
        launch_apart(&step);
    for (uint32_t k = 0; k < c->count; k++) {
        if (!is_chain)
            run_op(alone[c->parts[k]], &calls[k]);
        fetch_tensor(&result[k], results + (size_t)k * rows * c->width);
    }
    for (uint32_t k = 0; k < c->count; k++) {
        free_on_device(&others[k]);
        free_on_device(&result[k]);
    }
    free_on_device(&x);
}

static void same_bits_as_alone(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const chain_case *c = &cases[i];
        const size_t count = (size_t)c->count * ROWS * c->width;
        float *expected = calloc(count, sizeof *expected), *found = calloc(count, sizeof *found);
        assert_true(expected && found);
        void *prepared = device_copy(NULL, 8 * ((size_t)c->width + 32) * 3);
        run_case(c, ROWS, GB_F32, false, prepared, expected);
        run_case(c, ROWS, GB_F32, true, prepared, found);
        assert_memory_equal(expected, found, count * sizeof *found);
        check_prepared(prepared, found + (size_t)(c->count - 1) * ROWS * c->width, ROWS, c->width);
        assert_cuda(cudaFree(prepared));
        free(expected);
        free(found);
    }
}

/* Many rows, which a block has in rounds, have the bits of few. */
static void many_rows_have_the_bits_of_few(void **unused) {
    (void)unused;
    static const gb_dtype dtypes[] = {GB_F32, GB_BF16};
    const uint32_t many = 2 * gb_cuda_find_facts()->multiprocessors + 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const chain_case *c = &cases[i];
        const size_t few = (size_t)c->count * ROWS * c->width, count = (size_t)c->count * many * c->width;
        float *expected = calloc(few, sizeof *expected), *found = calloc(count, sizeof *found);
        assert_true(expected && found);
        run_case(c, ROWS, dtypes[i % 2], true, NULL, expected);
        run_case(c, many, dtypes[i % 2], true, NULL, found);
        for (size_t k = 0; k < c->count; k++)
            for (size_t row = 0; row < many; row++)
                assert_memory_equal(found + (k * many + row) * c->width,
                                    expected + (k * ROWS + row % ROWS) * c->width, c->width * sizeof *found);
        free(expected);
        free(found);
    }
}

/* ---- With products ------------------------------------------------------------------------------------- */

enum { MOST_PRODUCTS = 2 };

/* How rows are also rounded to 8 bits. */
typedef enum rounding { NOT_ROUNDED, BY_GROUPS, BY_ROWS } rounding;

/* Rows of a chain of an addition and a norm, and matrices that they meet. */
typedef struct product_case {
    uint32_t rows, width, count, outputs[MOST_PRODUCTS];
    gb_dtype dtype;
    rounding rounding;
    uint32_t columns; /* of a group, or of a block of the rotation */
    bool is_supported;
} product_case;

/* Several rows have more outputs a block of threads, up to as many as it has warps, and maybe fewer in the
 * last one. */
static const product_case product_cases[] = {
    {1, 2048, 2, {256, 1}, GB_BF16, BY_GROUPS, 64, true},
    {1, 2048, 2, {32, 32}, GB_BF16, BY_GROUPS, 64, true},
    {1, 2048, 2, {7, 3}, GB_F16, BY_GROUPS, 128, true},
    {1, 1104, 1, {5}, GB_F32, NOT_ROUNDED, 0, true},
    {1, 1536, 2, {4, 9}, GB_F32, BY_GROUPS, 32, true},
    {1, 5376, 2, {8, 4}, GB_BF16, BY_GROUPS, 64, false},
    {1, 1024, 2, {8, 4}, GB_BF16, BY_GROUPS, 64, true},
    {1, 512, 2, {8, 4}, GB_BF16, BY_GROUPS, 64, false},
    {3, 2048, 2, {256, 1}, GB_BF16, BY_ROWS, 128, true},
    {16, 2048, 2, {250, 3}, GB_BF16, BY_ROWS, 0, true},
    {16, 1104, 2, {250, 3}, GB_F16, BY_ROWS, 16, true},
    {2, 1536, 1, {5}, GB_F32, BY_GROUPS, 32, true},
    {9, 2048, 2, {32, 32}, GB_BF16, NOT_ROUNDED, 0, true},
};

static size_t prepared_bytes(const product_case *c) {
    return 8 * ((size_t)c->width + 32) * 3 * (c->rows + 7u);
}

static gb_cuda_tensor random_matrix(const product_case *c, uint32_t outputs, uint64_t *random) {
    const size_t count = (size_t)outputs * c->width;
    float *values = malloc(count * sizeof *values);
    uint16_t *halves = malloc(count * sizeof *halves);
    assert_true(values && halves);
    for (size_t i = 0; i < count; i++) {
        values[i] = next_float(random);
        halves[i] = c->dtype == GB_BF16 ? gb_bf16_from_float(values[i]) : gb_f16_from_float(values[i]);
    }
    const void *data = c->dtype == GB_F32 ? (const void *)values : halves;
    gb_cuda_tensor result = device_tensor(c->dtype, data, 2, outputs, c->width, 1);
    free(values);
    free(halves);
    return result;
}

/* The results of the chain and of the products, and the rows as they are prepared, in one launch or in one
 * each. Returns whether it could be one. */
static bool run_products(const product_case *c, bool together, float *results, uint8_t *prepared) {
    uint64_t random = 21;
    memset(prepared, 0, prepared_bytes(c));
    gb_cuda_scratch scratch = {0};
    void *const on_device = device_copy(prepared, prepared_bytes(c));
    gb_cuda_tensor x = random_tensor(c->rows, c->width, &random),
                   other = random_tensor(c->rows, c->width, &random),
                   weight = random_tensor(1, c->width, &random);
    gb_cuda_tensor sum = device_tensor(GB_F32, NULL, 2, c->rows, c->width, 1),
                   row = device_tensor(GB_F32, NULL, 2, c->rows, c->width, 1), matrices[MOST_PRODUCTS],
                   result[MOST_PRODUCTS];
    x.rank = other.rank = 2;
    x.dims[0] = other.dims[0] = c->rows;
    x.dims[1] = other.dims[1] = c->width;
    gb_cuda_call add = {.node = &nodes[ADD], .operands = {&x, &other}, .results = {&sum}},
                 norm = {.node = &nodes[NORM], .operands = {&sum, &weight}, .results = {&row}},
                 products[MOST_PRODUCTS] = {{0}};
    const gb_cuda_call *const chain[] = {&add, &norm}, *const list[] = {&products[0], &products[1]};
    static const part parts[] = {ADD, NORM};
    norms_step step;
    add.scratch = norm.scratch = &scratch;
    const bool by_rows = c->rounding == BY_ROWS;
    const gb_cuda_prepared epilogue = {by_rows ? GB_CUDA_BYTES_BY_LANES : GB_CUDA_BYTES_BY_GROUPS,
                                       by_rows ? 0 : c->columns, by_rows ? c->columns : 0, &row, on_device};
    norm.epilogue = c->rounding != NOT_ROUNDED ? &epilogue : NULL;
    for (uint32_t i = 0; i < c->count; i++) {
        matrices[i] = random_matrix(c, c->outputs[i], &random);
        result[i] = device_tensor(GB_F32, NULL, 2, c->rows, c->outputs[i], 1);
        products[i] =
            (gb_cuda_call){.operands = {&row, &matrices[i]}, .results = {&result[i]}, .scratch = &scratch};
    }
    make_norms(&step, parts, chain, 2, list, c->count, true);
    const bool is_one = together && launch_fused(GB_FUSED_NORM_LINEARS, &step.problem);
    if (!is_one)
        launch_apart(&step);
    fetch_tensor(&sum, results);
    fetch_tensor(&row, results + (size_t)c->rows * c->width);
    results += 2 * (size_t)c->rows * c->width;
    for (uint32_t i = 0; i < c->count; i++) {
        fetch_tensor(&result[i], results);
        results += c->rows * c->outputs[i];
        free_on_device(&result[i]);
        free_on_device(&matrices[i]);
    }
    assert_cuda(cudaMemcpy(prepared, on_device, prepared_bytes(c), cudaMemcpyDeviceToHost));
    assert_cuda(cudaFree(on_device));
    gb_cuda_tensor *const rows[] = {&x, &other, &weight, &sum, &row};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        free_on_device(rows[i]);
    return is_one;
}

static void products_have_the_bits_that_they_have_alone(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof product_cases / sizeof *product_cases; i++) {
        const product_case *c = &product_cases[i];
        const size_t count = c->rows * (2 * c->width + 1024);
        float *expected = calloc(count, sizeof *expected), *found = calloc(count, sizeof *found);
        uint8_t *expected_row = calloc(1, prepared_bytes(c)), *found_row = calloc(1, prepared_bytes(c));
        assert_true(expected && found && expected_row && found_row);
        run_products(c, false, expected, expected_row);
        assert_int_equal(run_products(c, true, found, found_row), c->is_supported);
        assert_memory_equal(expected, found, count * sizeof *found);
        assert_memory_equal(expected_row, found_row, prepared_bytes(c));
        free(expected);
        free(found);
        free(expected_row);
        free(found_row);
    }
}

/* ---- With quantized products --------------------------------------------------------------------------- */

enum { LINEAR_OPS = 3 };

/* One row of a norm, an addition and a norm, and two matrices that it meets. */
typedef struct linear_case {
    uint32_t width, outputs[MOST_PRODUCTS];
    gb_format format;
    bool keeps_row, is_supported; /* keeps_row: others take it, too */
} linear_case;

#define FORMAT(bits, has_bias, scale, group)                                                                 \
    { GB_FORMAT_ONE_LEVEL, bits, has_bias, 0, scale, group, 0 }

static const linear_case linear_cases[] = {
    {5376, {48, 16}, FORMAT(4, true, GB_F16, 64), false, true},
    {2048, {16, 2144}, FORMAT(4, true, GB_BF16, 64), false, true},
    {4096, {32, 16}, FORMAT(4, false, GB_F16, 64), false, true},
    {1088, {16, 16}, FORMAT(4, false, GB_BF16, 64), true, true},
    {5120, {160, 32}, FORMAT(4, true, GB_F16, 64), false, true},
    {6208, {16, 16}, FORMAT(4, true, GB_F16, 64), false, false},
    {1024, {16, 16}, FORMAT(4, true, GB_F16, 64), false, true},
    {512, {16, 16}, FORMAT(4, true, GB_F16, 64), false, false},
    {2048, {48, 21}, FORMAT(4, false, GB_F16, 32), false, true},
    {5184, {16, 32}, FORMAT(4, true, GB_F16, 32), true, true},
    {2048, {256, 1}, FORMAT(8, true, GB_BF16, 64), true, true}, /* a router and a shared expert's gate */
    {1088, {3, 16}, FORMAT(8, false, GB_F16, 64), false, true},
    {5120, {7, 2}, FORMAT(8, true, GB_F16, 64), true, true},
    {2048, {16, 16}, FORMAT(8, false, GB_F16, 32), false, false},
};

static gb_cuda_tensor random_row(uint32_t width, uint64_t *random) {
    gb_cuda_tensor row = random_tensor(1, width, random);
    row.rank = 2;
    row.dims[1] = row.dims[0];
    row.dims[0] = 1;
    return row;
}

/* Packed in whole blocks, of any codes; scales and biases are between a half and two. */
static gb_cuda_tensor random_quantized(const linear_case *c, uint32_t outputs, uint64_t *random) {
    gb_planes planes;
    assert_true(gb_format_planes(&c->format, (outputs + 15) / 16 * 16, c->width, &planes));
    uint8_t *bytes = malloc((size_t)planes.size);
    assert_non_null(bytes);
    for (size_t i = 0; i < (size_t)planes.size; i++)
        bytes[i] = (uint8_t)(next_random(random) >> 16);
    for (size_t i = (size_t)planes.scales.offset; i + 1 < (size_t)planes.size; i += 2) {
        const float value = 0.5f + 1.5f * (float)bytes[i] / 256.0f;
        const uint16_t half =
            c->format.scale == GB_BF16 ? gb_bf16_from_float(value) : gb_f16_from_float(value);
        memcpy(bytes + i, &half, sizeof half);
    }
    const gb_cuda_tensor result = {.data = device_copy(bytes, (size_t)planes.size),
                                   .dtype = GB_QUANTIZED,
                                   .rank = 2,
                                   .dims = {outputs, c->width},
                                   .format = c->format,
                                   .planes = planes,
                                   .is_packed = true,
                                   .int8_input = true};
    free(bytes);
    return result;
}

/* The results of the norm's chain and of the products, and the row as it is prepared, in one launch or in one
 * each. Returns whether it could be one. */
static bool run_linears(const linear_case *c, bool together, float *results, uint8_t *prepared) {
    static const part parts[LINEAR_OPS] = {NORM, ADD, NORM};
    uint64_t random = 31;
    const size_t prepared_size = 8 * ((size_t)c->width + 32) * 3;
    memset(prepared, 0, prepared_size);
    gb_cuda_scratch scratch = {0};
    void *const on_device = device_copy(prepared, prepared_size);
    gb_cuda_tensor x = random_row(c->width, &random), others[LINEAR_OPS], rows[LINEAR_OPS],
                   matrices[MOST_PRODUCTS], result[MOST_PRODUCTS];
    gb_cuda_call ops[LINEAR_OPS] = {0}, products[MOST_PRODUCTS] = {0};
    const gb_cuda_call *const chain[] = {&ops[0], &ops[1], &ops[2]}, *const list[] = {&products[0],
                                                                                      &products[1]};
    for (uint32_t k = 0; k < LINEAR_OPS; k++) {
        others[k] = parts[k] == ADD ? random_row(c->width, &random) : random_tensor(1, c->width, &random);
        rows[k] = device_tensor(GB_F32, NULL, 2, 1, c->width, 1);
        ops[k] = (gb_cuda_call){.node = &nodes[parts[k]],
                                .operands = {k ? &rows[k - 1] : &x, &others[k]},
                                .results = {&rows[k]},
                                .scratch = &scratch};
    }
    for (uint32_t i = 0; i < MOST_PRODUCTS; i++) {
        matrices[i] = random_quantized(c, c->outputs[i], &random);
        result[i] = device_tensor(GB_F32, NULL, 2, 1, c->outputs[i], 1);
        products[i] = (gb_cuda_call){
            .operands = {&rows[LINEAR_OPS - 1], &matrices[i]}, .results = {&result[i]}, .scratch = &scratch};
    }
    const gb_cuda_prepared epilogue = {GB_CUDA_BYTES_BY_GROUPS, matrices[0].format.group, 0,
                                       &rows[LINEAR_OPS - 1], on_device};
    ops[LINEAR_OPS - 1].epilogue = &epilogue;
    norms_step step;
    make_norms(&step, parts, chain, LINEAR_OPS, list, MOST_PRODUCTS, c->keeps_row);
    const bool is_one = together && launch_fused(GB_FUSED_NORM_LINEARS, &step.problem);
    if (!is_one)
        launch_apart(&step);
    for (uint32_t k = 0; k < LINEAR_OPS; k++, results += c->width) {
        if (k + 1 < LINEAR_OPS || c->keeps_row) /* not stored where products alone take it */
            fetch_tensor(&rows[k], results);
        free_on_device(&rows[k]);
        free_on_device(&others[k]);
    }
    for (uint32_t i = 0; i < MOST_PRODUCTS; results += c->outputs[i], i++) {
        fetch_tensor(&result[i], results);
        free_on_device(&result[i]);
        free_on_device(&matrices[i]);
    }
    free_on_device(&x);
    assert_cuda(cudaMemcpy(prepared, on_device, prepared_size, cudaMemcpyDeviceToHost));
    assert_cuda(cudaFree(on_device));
    return is_one;
}

static void quantized_products_have_the_bits_that_they_have_alone(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof linear_cases / sizeof *linear_cases; i++) {
        const linear_case *c = &linear_cases[i];
        const size_t count = LINEAR_OPS * c->width + c->outputs[0] + c->outputs[1];
        const size_t prepared_size = 8 * ((size_t)c->width + 32) * 3;
        float *expected = calloc(count, sizeof *expected), *found = calloc(count, sizeof *found);
        uint8_t *expected_row = calloc(1, prepared_size), *found_row = calloc(1, prepared_size);
        assert_true(expected && found && expected_row && found_row);
        run_linears(c, false, expected, expected_row);
        assert_int_equal(run_linears(c, true, found, found_row), c->is_supported);
        assert_memory_equal(expected, found, count * sizeof *found);
        assert_memory_equal(expected_row, found_row, prepared_size);
        free(expected);
        free(found);
        free(expected_row);
        free(found_row);
    }
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_as_alone), cmocka_unit_test(many_rows_have_the_bits_of_few),
        cmocka_unit_test(products_have_the_bits_that_they_have_alone),
        cmocka_unit_test(quantized_products_have_the_bits_that_they_have_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
