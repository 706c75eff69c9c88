/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels on interleaved matrices: every instruction set gives the bytes that the portable set gives on the
 * same matrix in canonical order.
 */
#include "cpu/random_matrix.h"
#include "support/test_arguments.h"
#include "tensor/packing.h"

#include <math.h>

/* Rare combinations, beside the formats of random_matrix.h. */
static const gb_format more_formats[] = {
    {GB_FORMAT_TWO_LEVEL, 5, true, 6, GB_F16, 16, 0},  {GB_FORMAT_TWO_LEVEL, 4, false, 8, GB_F16, 32, 0},
    {GB_FORMAT_TWO_LEVEL, 8, true, 6, GB_F16, 16, 0},  {GB_FORMAT_TWO_LEVEL, 6, false, 6, GB_F16, 32, 0},
    {GB_FORMAT_ONE_LEVEL, 6, false, 0, GB_F16, 32, 0}, {GB_FORMAT_ONE_LEVEL, 8, true, 0, GB_BF16, 128, 0},
};
enum { MORE_FORMATS = sizeof more_formats / sizeof *more_formats };

static const gb_format *format_at(size_t i) {
    return i < FORMATS ? &formats[i] : &more_formats[i - FORMATS];
}

/* Interleaving wants whole steps of four columns. */
static size_t random_packed_columns(uint64_t *state, const gb_format *format) {
    size_t columns = random_columns(state, format);
    return columns % 4 == 0 ? columns : columns * 4;
}

/* The end of the data is exact. */
static gb_quantized_matrix interleaved(const gb_quantized_matrix *matrix, size_t rows, size_t columns) {
    gb_quantized_matrix packed = *matrix;
    gb_packing packing;
    assert_true(gb_packing_interleaved(&matrix->format, rows, columns, &packing));
    uint8_t *data = malloc((size_t)matrix->planes.size);
    assert_non_null(data);
    gb_pack_matrix(&packing, &matrix->format, rows, columns, matrix->data, data);
    packed.data = data;
    packed.is_interleaved = true;
    return packed;
}

static void free_matrix(const gb_quantized_matrix *matrix) {
    free((void *)(uintptr_t)matrix->data);
}

static gb_node node_with(gb_op op, gb_activation activation) {
    return (gb_node){
        .op = op, .attribute_count = 1, .attributes = {gb_int(GB_ATTRIBUTE_ACTIVATION, activation)}};
}

/* Groups of zeros, of tiny numbers and with outliers; sometimes one with a NaN or an infinity. */
static gb_cpu_tensor random_activations(uint64_t *state, int32_t rank, size_t a, size_t b, size_t c) {
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    gb_cpu_tensor x = random_tensor(state, GB_F32, rank, a, b, c);
    size_t count = gb_elements(&x);
    for (size_t i = 0; i < count; i++)
        if (i / 300 % 7 >= 5)
            set_element(&x, i, i / 300 % 7 == 5 ? 0 : element(&x, i) * 1e-40f);
    ((float *)x.data)[random_below(state, count)] = 1000;
    if (random_below(state, 4) == 0)
        ((float *)x.data)[random_below(state, count)] = bad[random_below(state, 3)];
    return x;
}

/* A short run has each second number of tokens and each second rounding, other ones of the next format. */
static int every(void) {
    return is_short_run() ? 2 : 1;
}

/* ---- Linear -------------------------------------------------------------------------------------------- */

static void check_linear(uint64_t *state, const gb_format *format, gb_activation activation, size_t tokens,
                         size_t rows, size_t columns) {
    gb_node node = node_with(GB_OP_LINEAR, activation);
    gb_quantized_matrix canonical = random_matrix(state, format, rows, columns);
    gb_quantized_matrix packed = interleaved(&canonical, rows, columns);
    gb_cpu_tensor weight = tensor_of(&canonical, rows, columns),
                  packed_weight = tensor_of(&packed, rows, columns);
    gb_cpu_tensor x = random_activations(state, 2, tokens, columns, 1);
    gb_cpu_tensor y = new_tensor(GB_F32, 2, tokens, rows, 1),
                  expected = new_tensor(GB_F32, 2, tokens, rows, 1);
    gb_kernel_call call = {.node = &node, .operands = {&x, &weight}, .results = {&expected}};
    call.vector = gb_available_vector_kernels(0);
    run_as_team(gb_kernel_linear, &call, 1);
    call.operands[1] = &packed_weight;
    call.results[0] = &y;
    check_kernel(gb_kernel_linear, &call);
    char text[GB_FORMAT_TEXT];
    for (size_t i = 0; i < gb_elements(&y); i++)
        if (memcmp((float *)y.data + i, (float *)expected.data + i, sizeof(float)) != 0)
            fail_msg("%s [%zu,%zu], token %zu of %zu, row %zu: %.9g, expected %.9g",
                     gb_format_text(format, text), rows, columns, i / rows, tokens, i % rows,
                     (double)element(&y, i), (double)element(&expected, i));
    free_tensor(&x);
    free_tensor(&y);
    free_tensor(&expected);
    free_matrix(&canonical);
    free_matrix(&packed);
}

static void products(void **unused) {
    (void)unused;
    uint64_t state = 1;
    for (size_t f = 0; f < FORMATS + MORE_FORMATS; f++) {
        const gb_format *format = format_at(f);
        for (size_t tokens = 1; tokens <= 9; tokens++)
            check_linear(&state, format, GB_ACTIVATION_INT8_PER_GROUP, tokens,
                         16 * (1 + random_below(&state, 4)), random_packed_columns(&state, format));
        check_linear(&state, format, GB_ACTIVATION_INT8_PER_GROUP, 10 + random_below(&state, 31), 48,
                     random_packed_columns(&state, format));
    }
}

/* More tokens and more inputs than one panel has. */
static void large_products(void **unused) {
    (void)unused;
    uint64_t state = 2;
    for (size_t f = 0; f < FORMATS; f++) {
        check_linear(&state, &formats[f], GB_ACTIVATION_INT8_PER_GROUP, 67 + f, 16, 3 * 1024);
        check_linear(&state, &formats[f], GB_ACTIVATION_INT8_PER_GROUP, 9, 16, 22 * 1024);
    }
}

static void plain_activations(void **unused) {
    (void)unused;
    uint64_t state = 3;
    for (size_t f = 0; f < FORMATS + MORE_FORMATS; f++)
        for (size_t tokens = 1 + f % (size_t)every(); tokens <= 5; tokens += (size_t)every())
            check_linear(&state, format_at(f), GB_ACTIVATION_NONE, tokens, 16 * (1 + random_below(&state, 3)),
                         random_packed_columns(&state, format_at(f)));
    for (size_t f = 0; f < FORMATS; f++) {
        check_linear(&state, &formats[f], GB_ACTIVATION_NONE, 67 + f, 32, 2 * 1024 + 256);
        check_linear(&state, &formats[f], GB_ACTIVATION_NONE, 1, 32, 2 * 1024 + 256);
    }
}

/* ---- Parts of matrices --------------------------------------------------------------------------------- */

/* Rows first .. end - 1 from first_row on, into y rows of exactly that range between guards. */
static void check_range(uint64_t *state, const gb_format *format, size_t tokens, bool is_float) {
    enum { ROWS = 64 };
    const size_t columns = random_packed_columns(state, format);
    const gb_rounding rounding = gb_round_per_group(format);
    gb_quantized_matrix canonical = random_matrix(state, format, ROWS, columns);
    gb_quantized_matrix packed = interleaved(&canonical, ROWS, columns);
    gb_cpu_tensor x = random_activations(state, 2, tokens, columns, 1);
    const size_t first_row = random_below(state, 32), first = random_below(state, 30),
                 end = first + 1 + random_below(state, ROWS - first_row - first);
    uint64_t bytes;
    assert_true(gb_activations_bytes(tokens, columns, &rounding, &bytes));
    void *shared = new_guarded((size_t)bytes), *scratch = gb_allocate_aligned(GB_LINEAR_SCRATCH, 1);
    gb_activations activations = gb_place_activations(shared, tokens, columns, &rounding);
    const size_t width = end - first;
    float *found = new_guarded(width * tokens * sizeof *found),
          *expected = malloc(width * tokens * sizeof *expected);
    gb_linear linear = {.tokens = tokens,
                        .inputs = columns,
                        .x = gb_floats(&x),
                        .x_stride = columns,
                        .activations = &activations,
                        .y_stride = width,
                        .first_row = first_row,
                        .next_row = random_below(state, 2) ? GB_NO_ROW : random_below(state, ROWS)};
    const gb_vector_kernels *vector;
    for (size_t set = 0; (vector = gb_available_vector_kernels(set)); set++) {
        for (size_t row = 0; row < tokens; row++)
            vector->quantize(gb_floats(&x) + row * columns, &activations, row, 0, activations.groups);
        linear.quantized = set == 0 ? &canonical : &packed;
        for (int pass = set == 0; pass < 2; pass++, linear.quantized = &packed) {
            linear.y = found - first;
            (is_float ? vector->linear : vector->linear_int8)(&linear, first, end, scratch);
            assert_guarded(found, width * tokens * sizeof *found);
            if (linear.quantized == &canonical)
                memcpy(expected, found, width * tokens * sizeof *found);
            assert_memory_equal(found, expected, width * tokens * sizeof *found);
        }
    }
    gb_free(scratch);
    free_guarded(shared);
    free_guarded(found);
    free(expected);
    free_tensor(&x);
    free_matrix(&canonical);
    free_matrix(&packed);
}

static void ranges_of_rows(void **unused) {
    (void)unused;
    uint64_t state = 4;
    for (size_t f = 0; f < FORMATS + MORE_FORMATS; f++)
        for (int round = 0; round < 8; round++)
            check_range(&state, format_at(f), round % 2 ? 1 : 11, round >= 4);
}

/* ---- Experts ------------------------------------------------------------------------------------------- */

/* Lists with repeats; experts of any number of rows, so that some begin within a block. */
static void check_experts(uint64_t *state, const gb_format *format, size_t tokens, size_t rows,
                          gb_activation activation) {
    enum { EXPERTS = 8, CHOICES = 3 };
    gb_node node = node_with(GB_OP_EXPERT_LINEAR, activation);
    const size_t columns = random_packed_columns(state, format);
    const bool by_choice = random_below(state, 2) == 1;
    gb_quantized_matrix canonical = random_matrix(state, format, EXPERTS * rows, columns);
    gb_quantized_matrix packed = interleaved(&canonical, EXPERTS * rows, columns);
    gb_cpu_tensor weight = {
        .dtype = GB_QUANTIZED, .rank = 3, .dims = {EXPERTS, rows, columns}, .quantized = &canonical};
    gb_cpu_tensor x = random_activations(state, by_choice ? 3 : 2, tokens, by_choice ? CHOICES : columns,
                                         by_choice ? columns : 1);
    gb_cpu_tensor experts = new_tensor(GB_I32, 2, tokens, CHOICES, 1);
    gb_cpu_tensor y = new_tensor(GB_F32, 3, tokens, CHOICES, rows),
                  expected = new_tensor(GB_F32, 3, tokens, CHOICES, rows);
    for (size_t i = 0; i < tokens * CHOICES; i++)
        ((int32_t *)experts.data)[i] = (int32_t)random_below(state, 1 + random_below(state, EXPERTS));
    gb_kernel_call call = {.node = &node, .operands = {&x, &weight, &experts}, .results = {&expected}};
    call.vector = gb_available_vector_kernels(0);
    run_as_team(gb_kernel_expert_linear, &call, 1);
    weight.quantized = &packed;
    call.results[0] = &y;
    check_kernel(gb_kernel_expert_linear, &call);
    assert_memory_equal(y.data, expected.data, tensor_bytes(&y));
    free_tensor(&x);
    free_tensor(&experts);
    free_tensor(&y);
    free_tensor(&expected);
    free_matrix(&canonical);
    free_matrix(&packed);
}

static void products_of_experts(void **unused) {
    (void)unused;
    uint64_t state = 5;
    for (size_t f = 0; f < FORMATS + MORE_FORMATS; f++)
        for (size_t tokens = 1; tokens <= 26; tokens += tokens == 2 ? 23 : 1)
            for (int activation = GB_ACTIVATION_NONE + (int)(f + tokens) % every();
                 activation <= GB_ACTIVATION_INT8_PER_GROUP; activation += every())
                check_experts(&state, format_at(f), tokens, 2 * (7 + random_below(&state, 10)),
                              (gb_activation)activation);
}

/* ---- Queues -------------------------------------------------------------------------------------------- */

/* The same bytes where threads take pieces of the work; one after the other they take each other's too. */
static void check_queue(gb_kernel kernel, gb_kernel_call *call, uint32_t units) {
    enum { THREADS = 3 };
    gb_work_part parts[THREADS];
    gb_work_queue queue = {parts, THREADS, units, 1};
    const size_t size = tensor_bytes(call->results[0]);
    uint8_t *expected = malloc(size);
    assert_non_null(expected);
    for (size_t set = 0; (call->vector = gb_available_vector_kernels(set)); set++) {
        call->queue = NULL;
        run_as_team(kernel, call, THREADS);
        memcpy(expected, call->results[0]->data, size);
        memset(call->results[0]->data, 0x5a, size);
        gb_work_queue_fill(&queue);
        call->queue = &queue;
        run_as_team(kernel, call, THREADS);
        assert_memory_equal(call->results[0]->data, expected, size);
    }
    free(expected);
}

static void queues_of_rows(void **unused) {
    (void)unused;
    enum { EXPERTS = 8, CHOICES = 3, ROWS = 80, EXPERT_ROWS = 48, COLUMNS = 512 };
    uint64_t state = 7;
    const gb_format *format = format_at(0);
    gb_node linear = node_with(GB_OP_LINEAR, GB_ACTIVATION_INT8_PER_GROUP),
            expert_linear = node_with(GB_OP_EXPERT_LINEAR, GB_ACTIVATION_INT8_PER_GROUP);
    for (size_t tokens = 1; tokens <= 2; tokens++) {
        gb_quantized_matrix canonical = random_matrix(&state, format, EXPERTS * EXPERT_ROWS, COLUMNS);
        gb_quantized_matrix packed = interleaved(&canonical, EXPERTS * EXPERT_ROWS, COLUMNS);
        gb_cpu_tensor weight = tensor_of(&packed, ROWS, COLUMNS), all = weight;
        gb_cpu_tensor x = random_activations(&state, 2, tokens, COLUMNS, 1);
        gb_cpu_tensor y = new_tensor(GB_F32, 2, tokens, ROWS, 1),
                      all_y = new_tensor(GB_F32, 3, tokens, CHOICES, EXPERT_ROWS),
                      experts = new_tensor(GB_I32, 2, tokens, CHOICES, 1);
        for (size_t i = 0; i < tokens * CHOICES; i++)
            ((int32_t *)experts.data)[i] = (int32_t)(i * 5 % EXPERTS);
        gb_kernel_call call = {.node = &linear, .operands = {&x, &weight}, .results = {&y}};
        check_queue(gb_kernel_linear, &call, ROWS / GB_COLUMN_UNIT);
        all.rank = 3;
        all.dims[0] = EXPERTS;
        all.dims[1] = EXPERT_ROWS;
        all.dims[2] = COLUMNS;
        call =
            (gb_kernel_call){.node = &expert_linear, .operands = {&x, &all, &experts}, .results = {&all_y}};
        for (uint32_t units = 1; units < 12; units += 5)
            check_queue(gb_kernel_expert_linear, &call, units);
        free_tensor(&x);
        free_tensor(&y);
        free_tensor(&all_y);
        free_tensor(&experts);
        free_matrix(&canonical);
        free_matrix(&packed);
    }
}

/* ---- Single rows --------------------------------------------------------------------------------------- */

static void rows_as_floats(void **unused) {
    (void)unused;
    enum { ROWS = 32 };
    uint64_t state = 6;
    const gb_vector_kernels *vector;
    for (size_t f = 0; f < FORMATS + MORE_FORMATS; f++) {
        const gb_format *format = format_at(f);
        const size_t columns = random_packed_columns(&state, format);
        gb_quantized_matrix canonical = random_matrix(&state, format, ROWS, columns);
        gb_quantized_matrix packed = interleaved(&canonical, ROWS, columns);
        gb_cpu_tensor dense = dequantized(&canonical, ROWS, columns);
        for (size_t set = 0; (vector = gb_available_vector_kernels(set)); set++)
            for (size_t row = 0; row < ROWS; row++) {
                const size_t unit = format->bits == 8 ? 1 : 8;
                const size_t first = random_below(&state, columns / 8) * 8,
                             count = (1 + random_below(&state, (columns - first) / unit)) * unit;
                float *found = new_guarded(count * sizeof *found);
                vector->dequantize(&packed, row, first, count, found);
                assert_guarded(found, count * sizeof *found);
                assert_memory_equal(found, (float *)dense.data + row * columns + first,
                                    count * sizeof *found);
                free_guarded(found);
            }
        free_tensor(&dense);
        free_matrix(&canonical);
        free_matrix(&packed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(large_products),
        cmocka_unit_test(plain_activations),
        cmocka_unit_test(ranges_of_rows),
        cmocka_unit_test(products_of_experts),
        cmocka_unit_test(queues_of_rows),
        cmocka_unit_test(rows_as_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
