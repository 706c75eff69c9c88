/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_exact on interleaved matrices: every instruction set gives the bytes that the portable set gives on
 * the same matrix in canonical order, for parts of matrices, for more tokens and inputs than a panel has,
 * with extreme codes and where threads take work from a queue.
 */
#include "cpu/random_matrix.h"
#include "tensor/packing.h"

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

/* ---- One product in all ways --------------------------------------------------------------------------- */

/* Rows first .. end - 1 from first_row on, of tokens that may be listed. */
typedef struct product {
    size_t tokens, rows, columns;
    size_t first_row, first, end;
    const uint32_t *list; /* or NULL; x_reuse goes with it */
    uint32_t x_reuse;
    uint32_t rotation;
} product;

static product whole_product(size_t tokens, size_t rows, size_t columns) {
    return (product){.tokens = tokens, .rows = rows, .columns = columns, .end = rows, .x_reuse = 1};
}

/* Into y rows of exactly that range, between guards. */
static void run_product(const product *p, const gb_vector_kernels *vector, const gb_quantized_matrix *matrix,
                        const gb_cpu_tensor *x, size_t next_row, float *y) {
    const gb_rounding rounding = gb_round_per_token(p->rotation);
    const size_t width = p->end - p->first, x_rows = gb_elements(x) / p->columns;
    uint64_t bytes;
    assert_true(gb_activations_bytes(x_rows, p->columns, &rounding, &bytes));
    void *shared = new_guarded((size_t)bytes), *scratch = gb_allocate_aligned(GB_LINEAR_SCRATCH, 1);
    assert_non_null(scratch);
    gb_activations activations = gb_place_activations(shared, x_rows, p->columns, &rounding);
    for (size_t row = 0; row < x_rows; row++)
        vector->quantize_token(gb_floats(x) + row * p->columns, &activations, row, scratch);
    const gb_linear linear = {.tokens = p->tokens,
                              .inputs = p->columns,
                              .rows = p->list,
                              .x_reuse = p->x_reuse,
                              .activations = &activations,
                              .y = y - p->first,
                              .y_stride = width,
                              .quantized = matrix,
                              .first_row = p->first_row,
                              .next_row = next_row};
    vector->linear_exact(&linear, p->first, p->end, scratch);
    assert_guarded(y, width * p->tokens * sizeof *y);
    assert_guarded(shared, (size_t)bytes);
    gb_free(scratch);
    free_guarded(shared);
}

static void check_matrix(uint64_t *state, const product *p, const gb_quantized_matrix *canonical,
                         const gb_cpu_tensor *x) {
    const size_t size = (p->end - p->first) * p->tokens * sizeof(float);
    gb_quantized_matrix packed = interleaved(canonical, p->rows, p->columns);
    float *expected = new_guarded(size), *found = new_guarded(size);
    run_product(p, gb_available_vector_kernels(0), canonical, x, GB_NO_ROW, expected);
    const gb_vector_kernels *vector;
    for (size_t set = 0; (vector = gb_available_vector_kernels(set)); set++) {
        const size_t next_row = random_below(state, 2) ? GB_NO_ROW : random_below(state, p->rows);
        memset(found, 0x5a, size);
        run_product(p, vector, &packed, x, next_row, found);
        char text[GB_FORMAT_TEXT];
        if (memcmp(found, expected, size) != 0)
            fail_msg("%s: %s, %zu tokens, rows %zu + %zu .. %zu of %zu, %zu inputs", vector->name,
                     gb_format_text(&canonical->format, text), p->tokens, p->first_row, p->first, p->end,
                     p->rows, p->columns);
    }
    free_guarded(expected);
    free_guarded(found);
    free_matrix(&packed);
}

static void check_product(uint64_t *state, const gb_format *format, const product *p) {
    gb_quantized_matrix canonical = random_matrix(state, format, p->rows, p->columns);
    gb_cpu_tensor x = random_tensor(state, GB_F32, 2, p->tokens, p->columns, 1);
    check_matrix(state, p, &canonical, &x);
    free_tensor(&x);
    free_matrix(&canonical);
}

/* Whole groups of a format, or steps of four. */
static size_t random_inputs(uint64_t *state, const gb_format *format, size_t most) {
    const size_t unit = format->group ? format->group : 4;
    return unit * (1 + random_below(state, most / unit));
}

/* ---- Sizes --------------------------------------------------------------------------------------------- */

/* Every size of a tile, and some with several. */
static void numbers_of_tokens(void **unused) {
    (void)unused;
    uint64_t state = 21;
    for (size_t f = 0; f < INTEGER_FORMATS; f++)
        for (size_t tokens = 1; tokens <= 34; tokens += tokens < 18 ? 1 : 5) {
            const gb_format *format = &integer_formats[f];
            const product p =
                whole_product(tokens, 16 * (1 + random_below(&state, 4)), random_inputs(&state, format, 700));
            check_product(&state, format, &p);
        }
}

/* More tokens than are computed at once, and more inputs than are expanded at once. */
static void large_products(void **unused) {
    (void)unused;
    uint64_t state = 22;
    for (size_t f = 0; f < INTEGER_FORMATS; f++) {
        const product many = whole_product(261 + f, 48, 256);
        product wide = whole_product(10, 32, 8192 + 384);
        check_product(&state, &integer_formats[f], &many);
        check_product(&state, &integer_formats[f], &wide);
        wide.tokens = 3;
        check_product(&state, &integer_formats[f], &wide);
    }
}

/* ---- Parts --------------------------------------------------------------------------------------------- */

static void parts_of_blocks(void **unused) {
    (void)unused;
    enum { ROWS = 80 };
    uint64_t state = 23;
    for (size_t f = 0; f < INTEGER_FORMATS; f++)
        for (int round = 0; round < 9; round++) {
            const gb_format *format = &integer_formats[f];
            product p = whole_product(round % 3 == 0   ? 1
                                      : round % 3 == 1 ? 5
                                                       : 21,
                                      ROWS, random_inputs(&state, format, 500));
            p.first_row = random_below(&state, 32);
            p.first = random_below(&state, 30);
            p.end = p.first + 1 + random_below(&state, ROWS - p.first_row - p.first);
            check_product(&state, format, &p);
        }
}

/* Tokens of an expert: rows of y in another order, some of which share an input. */
static void listed_tokens(void **unused) {
    (void)unused;
    enum { REUSE = 3, MOST = 20 };
    uint64_t state = 24;
    for (size_t f = 0; f < INTEGER_FORMATS; f++)
        for (size_t tokens = 1; tokens <= MOST; tokens = tokens * 2 + 1) {
            uint32_t list[MOST];
            for (size_t t = 0; t < tokens; t++)
                list[t] = (uint32_t)(tokens - 1 - t);
            const gb_format *format = &integer_formats[f];
            product p = whole_product(tokens, 32, random_inputs(&state, format, 300));
            p.list = list;
            p.x_reuse = REUSE;
            check_product(&state, format, &p);
        }
}

/* ---- Extreme numbers ----------------------------------------------------------------------------------- */

/* All codes are the largest or all the smallest, inputs all have one sign or take turns; zeros and scales are
 * those that weights of +-127 come from, where there are such. */
static void fill_extreme(gb_quantized_matrix *matrix, size_t rows, bool is_high, uint32_t zero) {
    uint8_t *data = (uint8_t *)(uintptr_t)matrix->data;
    const uint32_t bits = matrix->format.bits;
    memset(data + matrix->planes.codes.offset, is_high ? 0xff : 0,
           rows * (size_t)matrix->planes.codes.row_bytes);
    if (bits < 8)
        memset(data + matrix->planes.scales.offset,
               gb_put_group_integers(bits, (gb_group_integers){zero, gb_largest_group_scale(bits, zero)}),
               rows * (size_t)matrix->planes.scales.row_bytes);
}

static void extreme_codes(void **unused) {
    (void)unused;
    uint64_t state = 25;
    for (size_t f = 0; f < INTEGER_FORMATS; f++)
        for (int turn = 0; turn < 8; turn++) {
            const gb_format *format = &integer_formats[f];
            const uint32_t most = (1u << format->bits) - 1;
            const product p = whole_product(turn < 4 ? 1 : 19, 16, 1024);
            gb_quantized_matrix matrix = random_matrix(&state, format, p.rows, p.columns);
            gb_cpu_tensor x = random_tensor(&state, GB_F32, 2, p.tokens, p.columns, 1);
            fill_extreme(&matrix, p.rows, turn % 2, turn / 2 % 2 ? most : 0);
            for (size_t i = 0; i < gb_elements(&x); i++)
                set_element(&x, i, i / p.columns % 3 == 0 || i % 2 ? 1 : -1);
            check_matrix(&state, &p, &matrix, &x);
            free_tensor(&x);
            free_matrix(&matrix);
        }
}

/* ---- Queues -------------------------------------------------------------------------------------------- */

/* The same bytes where threads take pieces of the work. */
static void queues_of_rows(void **unused) {
    (void)unused;
    enum { THREADS = 3, ROWS = 112, COLUMNS = 512 };
    uint64_t state = 26;
    gb_node node = {.op = GB_OP_LINEAR,
                    .attribute_count = 2,
                    .attributes = {gb_int(GB_ATTRIBUTE_ACTIVATION, GB_ACTIVATION_INT8_PER_TOKEN),
                                   gb_int(GB_ATTRIBUTE_ROTATION, 128)}};
    for (size_t f = 0; f < INTEGER_FORMATS; f++)
        for (size_t tokens = 1; tokens <= 8; tokens += 7) {
            gb_quantized_matrix canonical = random_matrix(&state, &integer_formats[f], ROWS, COLUMNS);
            gb_quantized_matrix packed = interleaved(&canonical, ROWS, COLUMNS);
            gb_cpu_tensor weight = tensor_of(&packed, ROWS, COLUMNS);
            gb_cpu_tensor x = random_tensor(&state, GB_F32, 2, tokens, COLUMNS, 1);
            gb_cpu_tensor y = new_tensor(GB_F32, 2, tokens, ROWS, 1);
            gb_cpu_tensor expected = new_tensor(GB_F32, 2, tokens, ROWS, 1);
            gb_work_part parts[THREADS];
            gb_work_queue queue = {parts, THREADS, ROWS / GB_COLUMN_UNIT, 1};
            gb_kernel_call call = {.node = &node, .operands = {&x, &weight}, .results = {&expected}};
            for (size_t set = 0; (call.vector = gb_available_vector_kernels(set)); set++) {
                call.queue = NULL;
                call.results[0] = &expected;
                run_as_team(gb_kernel_linear, &call, 1);
                gb_work_queue_fill(&queue);
                call.queue = &queue;
                call.results[0] = &y;
                run_as_team(gb_kernel_linear, &call, THREADS);
                assert_memory_equal(y.data, expected.data, tensor_bytes(&y));
            }
            free_tensor(&x);
            free_tensor(&y);
            free_tensor(&expected);
            free_matrix(&canonical);
            free_matrix(&packed);
        }
}

/* ---- Rounding ------------------------------------------------------------------------------------------ */

/* Codes, their sums and scales are the portable set's for every block of the transform, and for rows that end
 * within a group. */
static void rounded_inputs(void **unused) {
    (void)unused;
    uint64_t state = 27;
    void *scratch = gb_allocate_aligned(GB_LINEAR_SCRATCH, 1);
    assert_non_null(scratch);
    for (uint32_t rotation = 1; rotation <= 256; rotation *= 2)
        for (int round = 0; round < 6; round++) {
            const size_t columns = rotation * (1 + random_below(&state, 1 + 900 / rotation));
            const gb_rounding rounding = gb_round_per_token(rotation > 1 ? rotation : 0);
            gb_cpu_tensor x = random_tensor(&state, GB_F32, 2, 1, columns, 1);
            set_element(&x, random_below(&state, columns), 100 * random_float(&state));
            uint64_t bytes;
            assert_true(gb_activations_bytes(1, columns, &rounding, &bytes));
            uint8_t *expected = new_guarded((size_t)bytes), *found = new_guarded((size_t)bytes);
            const gb_vector_kernels *vector;
            for (size_t set = 0; (vector = gb_available_vector_kernels(set)); set++) {
                uint8_t *to = set == 0 ? expected : found;
                memset(to, 0, (size_t)bytes); /* codes past the inputs are undefined */
                gb_activations placed = gb_place_activations(to, 1, columns, &rounding);
                vector->quantize_token(gb_floats(&x), &placed, 0, scratch);
                assert_guarded(to, (size_t)bytes);
                assert_memory_equal(to, expected, (size_t)bytes);
            }
            free_guarded(expected);
            free_guarded(found);
            free_tensor(&x);
        }
    gb_free(scratch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_tokens), cmocka_unit_test(large_products),
        cmocka_unit_test(parts_of_blocks),   cmocka_unit_test(listed_tokens),
        cmocka_unit_test(extreme_codes),     cmocka_unit_test(queues_of_rows),
        cmocka_unit_test(rounded_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
