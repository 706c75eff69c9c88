/* SPDX-License-Identifier: Apache-2.0
 *
 * linear, expert_linear and embedding with quantized weights: what every instruction set gives is what the
 * formats and the written rule say, bit for bit.
 */
#include "cpu/random_matrix.h"
#include "tensor/hadamard.h"
#include "tensor/packing.h"

#include <math.h>

/* ---- In float32 ---------------------------------------------------------------------------------------- */

/* The bits of the dense kernel on the dequantized weights. */
static void plain_activations(void **unused) {
    (void)unused;
    uint64_t state = 4;
    gb_node node = {.op = GB_OP_LINEAR};
    for (size_t f = 0; f < FORMATS; f++)
        for (int round = 0; round < 4; round++) {
            size_t tokens = 1 + random_below(&state, round < 2 ? 3 : 70), rows = 1 + random_below(&state, 40);
            size_t columns = random_columns(&state, &formats[f]);
            gb_quantized_matrix matrix = random_matrix(&state, &formats[f], rows, columns);
            gb_cpu_tensor weight = tensor_of(&matrix, rows, columns),
                          dense = dequantized(&matrix, rows, columns);
            gb_cpu_tensor x = random_tensor(&state, GB_F32, 2, tokens, columns, 1);
            gb_cpu_tensor y = new_tensor(GB_F32, 2, tokens, rows, 1),
                          expected = new_tensor(GB_F32, 2, tokens, rows, 1);
            gb_kernel_call call = {.node = &node, .operands = {&x, &weight}, .results = {&y}};
            check_kernel(gb_kernel_linear, &call);
            call = (gb_kernel_call){.node = &node, .operands = {&x, &dense}, .results = {&expected}};
            check_kernel(gb_kernel_linear, &call);
            assert_memory_equal(y.data, expected.data, tensor_bytes(&y));
            free_tensor(&x);
            free_tensor(&y);
            free_tensor(&expected);
            free_tensor(&dense);
            free((void *)(uintptr_t)matrix.data);
        }
}

/* ---- With 8-bit activations ---------------------------------------------------------------------------- */

/* The rule of vector_kernels.h, one output at a time. */
static float defined_output(const gb_quantized_matrix *m, const float *x, size_t row, size_t columns) {
    size_t group = m->format.group ? m->format.group : GB_INT8_ROW_GROUP;
    const uint8_t *codes =
        (const uint8_t *)m->data + m->planes.codes.offset + row * m->planes.codes.row_bytes;
    float y = 0;
    for (size_t first = 0; first < columns; first += group) {
        size_t end = first + group < columns ? first + group : columns;
        float largest = 0;
        bool is_finite = true;
        for (size_t k = first; k < end; k++) {
            is_finite = is_finite && isfinite(x[k]);
            largest = fabsf(x[k]) > largest ? fabsf(x[k]) : largest;
        }
        float sx = largest / 127.0f;
        sx = !is_finite ? NAN : sx < 0x1p-126f ? 0 : sx;
        int64_t product = 0, sum = 0;
        for (size_t k = first; k < end && sx > 0; k++) {
            int32_t c = (int32_t)nearbyintf(x[k] / sx);
            product += c * gb_format_integer(&m->format, gb_get_code(codes, m->format.bits, k));
            sum += c;
        }
        gb_affine affine = gb_format_affine(&m->format, &m->planes, m->data, row, first / m->planes.group);
        float t = sx * (float)sum, scale = sx * affine.scale, term = scale * (float)product;
        y = y + term;
        float bias_term = t * affine.bias;
        if (m->format.has_bias)
            y = y + bias_term;
    }
    return y;
}

/* Zeros, tiny numbers, ties and outliers among the activations. */
static void make_activations(uint64_t *state, const gb_cpu_tensor *x) {
    for (size_t i = 0; i < gb_elements(x); i++) {
        size_t block = i / 200 % 5;
        float value = random_float(state);
        set_element(x, i,
                    block == 1   ? 0
                    : block == 2 ? value * 1e-40f
                    : block == 3 ? truncf(value * 254) * 0.5f
                                 : value);
    }
    ((float *)x->data)[random_below(state, gb_elements(x))] = 1000;
}

static void check_int8(uint64_t *state, const gb_format *format, size_t tokens, size_t rows, size_t columns) {
    static gb_node node = {.op = GB_OP_LINEAR, .attribute_count = 1};
    node.attributes[0] = gb_int(GB_ATTRIBUTE_ACTIVATION, GB_ACTIVATION_INT8_PER_GROUP);
    gb_quantized_matrix matrix = random_matrix(state, format, rows, columns);
    gb_cpu_tensor weight = tensor_of(&matrix, rows, columns);
    gb_cpu_tensor x = new_tensor(GB_F32, 2, tokens, columns, 1), y = new_tensor(GB_F32, 2, tokens, rows, 1);
    make_activations(state, &x);
    gb_kernel_call call = {.node = &node, .operands = {&x, &weight}, .results = {&y}};
    check_kernel(gb_kernel_linear, &call);
    for (size_t m = 0; m < tokens; m++)
        for (size_t o = 0; o < rows; o++) {
            float found = element(&y, m * rows + o);
            float expected = defined_output(&matrix, gb_floats(&x) + m * columns, o, columns);
            char text[GB_FORMAT_TEXT];
            if (memcmp(&found, &expected, sizeof found) != 0)
                fail_msg("%s [%zu,%zu], token %zu, row %zu: %.9g, expected %.9g",
                         gb_format_text(format, text), rows, columns, m, o, (double)found, (double)expected);
        }
    free_tensor(&x);
    free_tensor(&y);
    free((void *)(uintptr_t)matrix.data);
}

static void int8_activations(void **unused) {
    (void)unused;
    uint64_t state = 5;
    for (size_t f = 0; f < FORMATS; f++) {
        for (int round = 0; round < 4; round++)
            check_int8(&state, &formats[f], 1 + random_below(&state, round < 2 ? 3 : 70),
                       1 + random_below(&state, 20), random_columns(&state, &formats[f]));
        check_int8(&state, &formats[f], 1, 3, 33 * 1024); /* several blocks of one token */
    }
}

static void numbers_that_are_none_are_seen(void **unused) {
    (void)unused;
    static const float bad[] = {INFINITY, -INFINITY, NAN};
    static gb_node node = {.op = GB_OP_LINEAR, .attribute_count = 1};
    node.attributes[0] = gb_int(GB_ATTRIBUTE_ACTIVATION, GB_ACTIVATION_INT8_PER_GROUP);
    uint64_t state = 6;
    gb_quantized_matrix matrix = random_matrix(&state, &formats[0], 5, 256);
    gb_cpu_tensor weight = tensor_of(&matrix, 5, 256), y = new_tensor(GB_F32, 2, 1, 5, 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        gb_cpu_tensor x = random_tensor(&state, GB_F32, 2, 1, 256, 1);
        ((float *)x.data)[100] = bad[i];
        gb_kernel_call call = {.node = &node, .operands = {&x, &weight}, .results = {&y}};
        check_kernel(gb_kernel_linear, &call);
        for (size_t o = 0; o < 5; o++)
            assert_true(isnan(element(&y, o)));
        free_tensor(&x);
    }
    free_tensor(&y);
    free((void *)(uintptr_t)matrix.data);
}

/* ---- Embedding ----------------------------------------------------------------------------------------- */

static void rows_of_tables(void **unused) {
    (void)unused;
    enum { TOKENS = 9, ROWS = 7 };
    uint64_t state = 7;
    gb_node node = {
        .op = GB_OP_EMBEDDING, .attribute_count = 1, .attributes = {gb_float(GB_ATTRIBUTE_SCALE, 3)}};
    for (size_t f = 0; f < FORMATS; f++) {
        size_t columns = random_columns(&state, &formats[f]);
        gb_quantized_matrix matrix = random_matrix(&state, &formats[f], ROWS, columns);
        gb_cpu_tensor table = tensor_of(&matrix, ROWS, columns), dense = dequantized(&matrix, ROWS, columns);
        gb_cpu_tensor tokens = new_tensor(GB_I32, 1, TOKENS, 1, 1),
                      y = new_tensor(GB_F32, 2, TOKENS, columns, 1);
        for (size_t t = 0; t < TOKENS; t++)
            ((int32_t *)tokens.data)[t] = (int32_t)random_below(&state, ROWS);
        gb_kernel_call call = {.node = &node, .operands = {&table, &tokens}, .results = {&y}};
        check_kernel(gb_kernel_embedding, &call);
        for (size_t i = 0; i < TOKENS * columns; i++) {
            size_t row = (size_t)((int32_t *)tokens.data)[i / columns];
            float expected = element(&dense, row * columns + i % columns) * 3.0f, found = element(&y, i);
            assert_memory_equal(&found, &expected, sizeof found);
        }
        free_tensor(&tokens);
        free_tensor(&y);
        free_tensor(&dense);
        free((void *)(uintptr_t)matrix.data);
    }
}

/* A row of the table as the op's line in ops.def defines it. */
static void define_row(const gb_quantized_matrix *m, size_t row, size_t columns, size_t rotation, float scale,
                       float *y) {
    gb_format_dequantize(&m->format, &m->planes, m->data, row, 0, columns, y);
    for (size_t at = 0; at < columns; at += rotation)
        gb_hadamard(y + at, rotation);
    for (size_t k = 0; k < columns; k++) {
        const float turned = y[k] * gb_hadamard_scale(rotation);
        y[k] = turned * scale;
    }
}

enum { TABLE_TOKENS = 9, TABLE_ROWS = 32 };

/* The table as it is, or as products read it; threads share tokens, or columns. */
static void look_up_rotated(const gb_cpu_tensor *table, const gb_cpu_tensor *tokens, size_t rotation,
                            gb_split split, const float *expected) {
    const size_t columns = table->dims[1];
    gb_node node = {
        .op = GB_OP_EMBEDDING,
        .attribute_count = 2,
        .attributes = {gb_float(GB_ATTRIBUTE_SCALE, 3), gb_int(GB_ATTRIBUTE_ROTATION, (int64_t)rotation)}};
    gb_cpu_tensor y = new_tensor(GB_F32, 2, TABLE_TOKENS, columns, 1);
    gb_kernel_call call = {.node = &node, .operands = {table, tokens}, .results = {&y}, .split = split};
    check_kernel(gb_kernel_embedding, &call);
    assert_memory_equal(y.data, expected, tensor_bytes(&y));
    free_tensor(&y);
}

static void look_up_interleaved(const gb_quantized_matrix *matrix, const gb_cpu_tensor *tokens,
                                size_t columns, size_t rotation, const float *expected) {
    gb_packing packing;
    if (!gb_packing_interleaved(&matrix->format, TABLE_ROWS, columns, &packing))
        return;
    gb_quantized_matrix packed = *matrix;
    uint8_t *bytes = malloc((size_t)matrix->planes.size);
    assert_non_null(bytes);
    gb_pack_matrix(&packing, &matrix->format, TABLE_ROWS, columns, matrix->data, bytes);
    packed.data = bytes;
    packed.is_interleaved = true;
    const gb_cpu_tensor table = tensor_of(&packed, TABLE_ROWS, columns);
    look_up_rotated(&table, tokens, rotation, GB_SPLIT_COLUMNS, expected);
    free(bytes);
}

static void check_rotated_table(uint64_t *state, const gb_format *format, size_t columns, size_t rotation) {
    gb_quantized_matrix matrix = random_matrix(state, format, TABLE_ROWS, columns);
    const gb_cpu_tensor table = tensor_of(&matrix, TABLE_ROWS, columns);
    gb_cpu_tensor tokens = new_tensor(GB_I32, 1, TABLE_TOKENS, 1, 1);
    float *expected = malloc(TABLE_TOKENS * columns * sizeof *expected);
    assert_non_null(expected);
    for (size_t t = 0; t < TABLE_TOKENS; t++) {
        ((int32_t *)tokens.data)[t] = (int32_t)random_below(state, TABLE_ROWS);
        define_row(&matrix, (size_t)((int32_t *)tokens.data)[t], columns, rotation, 3,
                   expected + t * columns);
    }
    look_up_rotated(&table, &tokens, rotation, GB_SPLIT_TOKENS, expected);
    look_up_rotated(&table, &tokens, rotation, GB_SPLIT_COLUMNS, expected);
    look_up_interleaved(&matrix, &tokens, columns, rotation, expected);
    free(expected);
    free_tensor(&tokens);
    free((void *)(uintptr_t)matrix.data);
}

static void rows_of_rotated_tables(void **unused) {
    (void)unused;
    static const size_t widths[] = {576, 96, 128, 1280, 6, 40};
    uint64_t state = 9;
    for (size_t f = 0; f < FORMATS + INTEGER_FORMATS; f++) {
        const gb_format *format = f < FORMATS ? &formats[f] : &integer_formats[f - FORMATS];
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
            for (size_t rotation = 2; rotation <= GB_MAX_ROTATION; rotation *= 2)
                if (gb_format_fits(format, widths[w]) && widths[w] % rotation == 0)
                    check_rotated_table(&state, format, widths[w], rotation);
    }
}

/* ---- Experts ------------------------------------------------------------------------------------------- */

/* Each output is the one of the chosen expert's matrix, with x's row of the token or of the choice. */
static void check_experts(uint64_t *state, const gb_format *format, size_t tokens, gb_activation activation) {
    enum { EXPERTS = 6, CHOICES = 3, ROWS = 19 };
    gb_node node = {.op = GB_OP_EXPERT_LINEAR,
                    .attribute_count = 1,
                    .attributes = {gb_int(GB_ATTRIBUTE_ACTIVATION, activation)}};
    size_t columns = random_columns(state, format), x_rows = 1 + 2 * (tokens % 2);
    gb_quantized_matrix matrix = random_matrix(state, format, (size_t)EXPERTS * ROWS, columns);
    gb_cpu_tensor weight = {
        .dtype = GB_QUANTIZED, .rank = 3, .dims = {EXPERTS, ROWS, columns}, .quantized = &matrix};
    gb_cpu_tensor dense = dequantized(&matrix, (size_t)EXPERTS * ROWS, columns);
    gb_cpu_tensor x = random_tensor(state, GB_F32, x_rows == 1 ? 2 : 3, tokens,
                                    x_rows == 1 ? columns : x_rows, x_rows == 1 ? 1 : columns);
    gb_cpu_tensor experts = new_tensor(GB_I32, 2, tokens, CHOICES, 1);
    gb_cpu_tensor y = new_tensor(GB_F32, 3, tokens, CHOICES, ROWS),
                  expected = new_tensor(GB_F32, 3, tokens, CHOICES, ROWS);
    for (size_t i = 0; i < tokens * CHOICES; i++)
        ((int32_t *)experts.data)[i] = (int32_t)random_below(state, EXPERTS);
    gb_kernel_call call = {.node = &node, .operands = {&x, &weight, &experts}, .results = {&y}};
    check_kernel(gb_kernel_expert_linear, &call);
    if (activation == GB_ACTIVATION_NONE) {
        gb_cpu_tensor matrices = dense;
        matrices.rank = 3;
        matrices.dims[0] = EXPERTS;
        matrices.dims[1] = ROWS;
        matrices.dims[2] = columns;
        call = (gb_kernel_call){.node = &node, .operands = {&x, &matrices, &experts}, .results = {&expected}};
        check_kernel(gb_kernel_expert_linear, &call);
    }
    for (size_t i = 0; activation != GB_ACTIVATION_NONE && i < gb_elements(&y); i++) {
        size_t pair = i / ROWS, row = (size_t)((int32_t *)experts.data)[pair] * ROWS + i % ROWS;
        const float *of = gb_floats(&x) + pair * x_rows / CHOICES * columns;
        set_element(&expected, i, defined_output(&matrix, of, row, columns));
    }
    assert_memory_equal(y.data, expected.data, tensor_bytes(&y));
    free_tensor(&x);
    free_tensor(&experts);
    free_tensor(&y);
    free_tensor(&expected);
    free_tensor(&dense);
    free((void *)(uintptr_t)matrix.data);
}

static void products_of_experts(void **unused) {
    (void)unused;
    uint64_t state = 8;
    for (size_t f = 0; f < FORMATS; f++)
        for (size_t tokens = 1; tokens <= 26; tokens += tokens == 2 ? 23 : 1)
            for (int activation = GB_ACTIVATION_NONE; activation <= GB_ACTIVATION_INT8_PER_GROUP;
                 activation++)
                check_experts(&state, &formats[f], tokens, (gb_activation)activation);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_activations),
        cmocka_unit_test(int8_activations),
        cmocka_unit_test(numbers_that_are_none_are_seen),
        cmocka_unit_test(rows_of_tables),
        cmocka_unit_test(rows_of_rotated_tables),
        cmocka_unit_test(products_of_experts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
