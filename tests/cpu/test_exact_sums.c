/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of inputs that are rounded per token with weights that are integers but for their row's scale:
 * what every instruction set gives is what the written rule says, bit for bit, in whatever order the sum is
 * taken.
 */
#include "cpu/random_matrix.h"
#include "tensor/hadamard.h"
#include "tensor/packing.h"

#include <math.h>

static const uint32_t rotations[] = {0, 2, 4, 8, 16, 32, 64, 128, 256};
enum { ROTATIONS = sizeof rotations / sizeof *rotations };

/* ---- The definition ------------------------------------------------------------------------------------ */

/* One row of x as codes and t, by the words of vector_kernels.h. */
typedef struct rounded_row {
    int32_t *codes;
    float scale;
} rounded_row;

static rounded_row round_row(const float *x, size_t columns, uint32_t rotation) {
    rounded_row row = {malloc(columns * sizeof *row.codes), 0};
    float *rotated = malloc(columns * sizeof *rotated), largest = 0;
    assert_true(row.codes && rotated);
    memcpy(rotated, x, columns * sizeof *rotated);
    for (size_t at = 0; rotation > 0 && at < columns; at += rotation)
        gb_hadamard(rotated + at, rotation);
    bool is_finite = true;
    for (size_t k = 0; k < columns; k++) {
        is_finite = is_finite && isfinite(rotated[k]);
        largest = fabsf(rotated[k]) > largest ? fabsf(rotated[k]) : largest;
    }
    float s = largest / 127.0f;
    s = !is_finite ? NAN : s < 0x1p-126f ? 0 : s;
    for (size_t k = 0; k < columns; k++)
        row.codes[k] = s > 0 ? (int32_t)nearbyintf(rotated[k] / s) : 0;
    row.scale = rotation > 0 ? s * (float)(1 / sqrt((double)rotation)) : s;
    free(rotated);
    return row;
}

static int32_t integer_weight(const gb_quantized_matrix *m, size_t row, size_t k) {
    const uint8_t *data = m->data;
    const uint8_t *codes = data + m->planes.codes.offset + row * m->planes.codes.row_bytes;
    const int32_t code = (int32_t)gb_get_code(codes, m->format.bits, k);
    if (m->format.bits == 8)
        return code - 128;
    const uint8_t byte =
        data[m->planes.scales.offset + row * m->planes.scales.row_bytes + k / m->format.group];
    const uint32_t scale_bits = 8u - m->format.bits;
    return (code - (int32_t)(byte >> scale_bits)) * (int32_t)((byte & ((1u << scale_bits) - 1)) + 1);
}

static float row_scale(const gb_quantized_matrix *m, size_t row) {
    const gb_plane *plane = m->format.bits == 8 ? &m->planes.scales : &m->planes.super_scales;
    uint16_t half;
    memcpy(&half, (const uint8_t *)m->data + plane->offset + row * plane->row_bytes, sizeof half);
    return m->format.scale == GB_BF16 ? gb_float_from_bf16(half) : gb_float_from_f16(half);
}

typedef enum sum_order { SUM_FORWARDS, SUM_BACKWARDS, SUM_IN_HALVES, SUM_ORDERS } sum_order;

/* The same sum on purpose in different orders, each in int32. */
static int32_t sum_of(const gb_quantized_matrix *m, const rounded_row *x, size_t row, size_t columns,
                      sum_order order) {
    int32_t sum = 0, half = 0;
    for (size_t i = 0; i < columns; i++) {
        const size_t k = order == SUM_BACKWARDS ? columns - 1 - i : i;
        const int32_t product = x->codes[k] * integer_weight(m, row, k);
        if (order == SUM_IN_HALVES && k >= columns / 2)
            half += product;
        else
            sum += product;
    }
    return sum + half;
}

static float defined_output(const gb_quantized_matrix *m, const rounded_row *x, size_t row, size_t columns) {
    const int32_t sum = sum_of(m, x, row, columns, SUM_FORWARDS);
    for (sum_order order = SUM_BACKWARDS; order < SUM_ORDERS; order++)
        assert_int_equal(sum_of(m, x, row, columns, order), sum);
    const float scaled = (float)sum * x->scale;
    return scaled * row_scale(m, row);
}

static void check_outputs(const gb_quantized_matrix *m, const gb_cpu_tensor *x, const gb_cpu_tensor *y,
                          size_t rows, size_t columns, uint32_t rotation) {
    for (size_t t = 0; t < gb_elements(x) / columns; t++) {
        rounded_row input = round_row(gb_floats(x) + t * columns, columns, rotation);
        for (size_t o = 0; o < rows; o++) {
            const float found = element(y, t * rows + o), expected = defined_output(m, &input, o, columns);
            char text[GB_FORMAT_TEXT];
            if (isnan(expected) ? !isnan(found) : memcmp(&found, &expected, sizeof found) != 0)
                fail_msg("%s [%zu,%zu], rotation %u, token %zu, row %zu: %.9g, expected %.9g",
                         gb_format_text(&m->format, text), rows, columns, rotation, t, o, (double)found,
                         (double)expected);
        }
        free(input.codes);
    }
}

/* ---- Linear -------------------------------------------------------------------------------------------- */

static gb_node node_with(gb_op op, uint32_t rotation) {
    return (gb_node){.op = op,
                     .attribute_count = 2,
                     .attributes = {gb_int(GB_ATTRIBUTE_ACTIVATION, GB_ACTIVATION_INT8_PER_TOKEN),
                                    gb_int(GB_ATTRIBUTE_ROTATION, rotation)}};
}

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

static void check_product(const gb_quantized_matrix *matrix, const gb_cpu_tensor *x, size_t rows,
                          size_t columns, uint32_t rotation) {
    gb_node node = node_with(GB_OP_LINEAR, rotation);
    gb_cpu_tensor weight = tensor_of(matrix, rows, columns);
    gb_cpu_tensor y = new_tensor(GB_F32, 2, x->dims[0], rows, 1);
    gb_kernel_call call = {.node = &node, .operands = {x, &weight}, .results = {&y}};
    check_kernel(gb_kernel_linear, &call);
    check_outputs(matrix, x, &y, rows, columns, rotation);
    if (rows % GB_INTERLEAVED_ROWS == 0 && columns % 4 == 0) {
        gb_quantized_matrix packed = interleaved(matrix, rows, columns);
        weight = tensor_of(&packed, rows, columns);
        check_kernel(gb_kernel_linear, &call);
        check_outputs(matrix, x, &y, rows, columns, rotation);
        free_matrix(&packed);
    }
    free_tensor(&y);
}

/* Tokens of zeros, of tiny numbers, with ties and with outliers. */
static void fill_inputs(uint64_t *state, const gb_cpu_tensor *x) {
    const size_t columns = x->dims[x->rank - 1];
    for (size_t i = 0; i < gb_elements(x); i++) {
        const size_t kind = i / columns % 6;
        const float value = random_float(state);
        set_element(x, i,
                    kind == 2   ? 0
                    : kind == 3 ? value * 1e-40f
                    : kind == 4 ? truncf(value * 254) * 0.5f
                                : value);
        if (kind == 5 && i % 97 == 0)
            set_element(x, i, value * 1000);
    }
}

static size_t columns_for(uint64_t *state, const gb_format *format, uint32_t rotation) {
    const size_t group = format->group ? format->group : 1, block = rotation ? rotation : 1;
    const size_t unit = group > block ? group : block;
    return unit * (1 + random_below(state, unit == 1 ? 700 : 1 + 1500 / unit));
}

static void products(void **unused) {
    (void)unused;
    uint64_t state = 11;
    for (size_t f = 0; f < INTEGER_FORMATS; f++)
        for (size_t r = 0; r < ROTATIONS; r++) {
            const gb_format *format = &integer_formats[f];
            const size_t columns = columns_for(&state, format, rotations[r]);
            const size_t rows =
                r % 2 == 0 ? 16 * (1 + random_below(&state, 4)) : 1 + random_below(&state, 40);
            const size_t tokens = r % 3 == 0 ? 1 : 2 + random_below(&state, r == 4 ? 70 : 12);
            gb_quantized_matrix matrix = random_matrix(&state, format, rows, columns);
            gb_cpu_tensor x = new_tensor(GB_F32, 2, tokens, columns, 1);
            fill_inputs(&state, &x);
            check_product(&matrix, &x, rows, columns, rotations[r]);
            free_tensor(&x);
            free_matrix(&matrix);
        }
}

/* Widths of real models: more inputs than a kernel takes at once. */
static void wide_products(void **unused) {
    (void)unused;
    static const size_t widths[] = {5376, 21504};
    uint64_t state = 12;
    for (size_t f = 0; f < INTEGER_FORMATS; f++)
        for (size_t w = 0; w < 2; w++)
            for (size_t tokens = 1; tokens <= 3; tokens += 2) {
                gb_quantized_matrix matrix = random_matrix(&state, &integer_formats[f], 16, widths[w]);
                gb_cpu_tensor x = new_tensor(GB_F32, 2, tokens, widths[w], 1);
                fill_inputs(&state, &x);
                check_product(&matrix, &x, 16, widths[w], 128);
                free_tensor(&x);
                free_matrix(&matrix);
            }
}

/* ---- The largest sums ---------------------------------------------------------------------------------- */

/* Every product has the largest magnitude there is, and all have one sign. */
static void largest_sums(void **unused) {
    (void)unused;
    enum { ROWS = 16 };
    uint64_t state = 13;
    for (size_t f = 0; f < INTEGER_FORMATS; f++) {
        const gb_format *format = &integer_formats[f];
        const size_t columns =
            GB_MAX_INT32_INPUTS / (format->group ? format->group : 1) * (format->group ? format->group : 1);
        const bool is_8_bit = format->bits == 8;
        gb_quantized_matrix matrix = random_matrix(&state, format, ROWS, columns);
        uint8_t *data = (uint8_t *)(uintptr_t)matrix.data;
        /* 4 bits: zero 15 and scale 8 give 120 below; zero 0 and scale 8 give 120 above */
        const uint32_t scale = is_8_bit ? 1 : gb_largest_group_scale(format->bits, 0);
        for (size_t row = 0; row < ROWS; row++) {
            const bool is_low = row % 2 == 0;
            const uint32_t zero = is_low ? (1u << format->bits) - 1 : 0;
            memset(data + matrix.planes.codes.offset + row * matrix.planes.codes.row_bytes, is_low ? 0 : 0xff,
                   (size_t)matrix.planes.codes.row_bytes);
            if (!is_8_bit)
                memset(data + matrix.planes.scales.offset + row * matrix.planes.scales.row_bytes,
                       gb_put_group_integers(format->bits, (gb_group_integers){zero, scale}),
                       (size_t)matrix.planes.scales.row_bytes);
        }
        const int32_t least = integer_weight(&matrix, 0, 0), most = integer_weight(&matrix, 1, columns - 1);
        assert_true(is_8_bit ? least == -128 && most == 127 : least == -most && most > 120 - 30);
        for (int sign = -1; sign <= 1; sign += 2) {
            gb_cpu_tensor x = new_tensor(GB_F32, 2, 1, columns, 1);
            for (size_t k = 0; k < columns; k++)
                set_element(&x, k, (float)sign * 3.5f);
            check_product(&matrix, &x, ROWS, columns, 0);
            free_tensor(&x);
        }
        free_matrix(&matrix);
    }
}

static void numbers_that_are_none_are_seen(void **unused) {
    (void)unused;
    static const float bad[] = {INFINITY, -INFINITY, NAN};
    uint64_t state = 14;
    gb_quantized_matrix matrix = random_matrix(&state, &integer_formats[0], 16, 256);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (size_t r = 0; r < ROTATIONS; r++) {
            gb_cpu_tensor x = random_tensor(&state, GB_F32, 2, 3, 256, 1);
            set_element(&x, 256 + 100, bad[i]); /* of the middle one of three tokens */
            check_product(&matrix, &x, 16, 256, rotations[r]);
            free_tensor(&x);
        }
    free_matrix(&matrix);
}

/* ---- Experts ------------------------------------------------------------------------------------------- */

static void check_experts(uint64_t *state, const gb_format *format, size_t tokens, uint32_t rotation) {
    enum { EXPERTS = 6, CHOICES = 3, ROWS = 32 };
    gb_node node = node_with(GB_OP_EXPERT_LINEAR, rotation);
    const size_t columns = columns_for(state, format, rotation) * (format->group ? 1 : 4);
    const size_t x_rows = 1 + 2 * (tokens % 2);
    gb_quantized_matrix matrix = random_matrix(state, format, (size_t)EXPERTS * ROWS, columns);
    gb_quantized_matrix packed = interleaved(&matrix, (size_t)EXPERTS * ROWS, columns);
    gb_cpu_tensor x = x_rows == 1 ? new_tensor(GB_F32, 2, tokens, columns, 1)
                                  : new_tensor(GB_F32, 3, tokens, x_rows, columns);
    fill_inputs(state, &x);
    gb_cpu_tensor experts = new_tensor(GB_I32, 2, tokens, CHOICES, 1);
    gb_cpu_tensor y = new_tensor(GB_F32, 3, tokens, CHOICES, ROWS);
    for (size_t i = 0; i < tokens * CHOICES; i++)
        ((int32_t *)experts.data)[i] = (int32_t)random_below(state, EXPERTS);
    for (int is_packed = 0; is_packed < 2; is_packed++) {
        gb_cpu_tensor weight = {.dtype = GB_QUANTIZED,
                                .rank = 3,
                                .dims = {EXPERTS, ROWS, columns},
                                .quantized = is_packed ? &packed : &matrix};
        gb_kernel_call call = {.node = &node, .operands = {&x, &weight, &experts}, .results = {&y}};
        check_kernel(gb_kernel_expert_linear, &call);
        for (size_t pair = 0; pair < tokens * CHOICES; pair++) {
            rounded_row input =
                round_row(gb_floats(&x) + pair * x_rows / CHOICES * columns, columns, rotation);
            for (size_t o = 0; o < ROWS; o++) {
                const size_t row = (size_t)((int32_t *)experts.data)[pair] * ROWS + o;
                const float found = element(&y, pair * ROWS + o),
                            expected = defined_output(&matrix, &input, row, columns);
                assert_memory_equal(&found, &expected, sizeof found);
            }
            free(input.codes);
        }
    }
    free_tensor(&x);
    free_tensor(&experts);
    free_tensor(&y);
    free_matrix(&matrix);
    free_matrix(&packed);
}

static void products_of_experts(void **unused) {
    (void)unused;
    uint64_t state = 15;
    for (size_t f = 0; f < INTEGER_FORMATS; f++)
        for (size_t tokens = 1; tokens <= 26; tokens += tokens == 2 ? 23 : 1)
            check_experts(&state, &integer_formats[f], tokens, rotations[(f + tokens) % ROTATIONS]);
}

/* ---- Without rounding ---------------------------------------------------------------------------------- */

/* With plain activations and as embeddings the formats are dequantized, exactly. */
static void dequantized_rows(void **unused) {
    (void)unused;
    uint64_t state = 16;
    for (size_t f = 0; f < INTEGER_FORMATS; f++) {
        const size_t columns =
            columns_for(&state, &integer_formats[f], 0) * (integer_formats[f].group ? 1 : 4);
        gb_quantized_matrix matrix = random_matrix(&state, &integer_formats[f], 16, columns);
        gb_quantized_matrix packed = interleaved(&matrix, 16, columns);
        float *values = malloc(columns * sizeof *values);
        for (size_t row = 0; row < 16; row++) {
            gb_format_dequantize(&matrix.format, &matrix.planes, matrix.data, row, 0, columns, values);
            for (size_t k = 0; k < columns; k++)
                assert_true(values[k] == (float)integer_weight(&matrix, row, k) * row_scale(&matrix, row));
            float *found = malloc(columns * sizeof *found);
            const gb_vector_kernels *vector;
            for (size_t set = 0; (vector = gb_available_vector_kernels(set)); set++) {
                vector->dequantize(&packed, row, 0, columns, found);
                assert_memory_equal(found, values, columns * sizeof *found);
                vector->dequantize(&matrix, row, 0, columns, found);
                assert_memory_equal(found, values, columns * sizeof *found);
            }
            free(found);
        }
        free(values);
        free_matrix(&packed);
        free_matrix(&matrix);
    }
}

/* ---- The transform ------------------------------------------------------------------------------------- */

/* Against the matrix of signs (-1)^(number of common bits); sums of small integers are exact. */
static void transform_is_hadamards(void **unused) {
    (void)unused;
    uint64_t state = 17;
    for (size_t size = 2; size <= 256; size *= 2) {
        float x[256], found[256];
        for (size_t i = 0; i < size; i++)
            found[i] = x[i] = (float)random_below(&state, 1000) - 500;
        gb_hadamard(found, size);
        for (size_t i = 0; i < size; i++) {
            float expected = 0;
            for (size_t j = 0; j < size; j++)
                expected += __builtin_popcountll(i & j) % 2 ? -x[j] : x[j];
            assert_true(found[i] == expected);
        }
        assert_true(gb_hadamard_scale(size) == (float)(1 / sqrt((double)size)));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(wide_products),
        cmocka_unit_test(largest_sums),
        cmocka_unit_test(numbers_that_are_none_are_seen),
        cmocka_unit_test(products_of_experts),
        cmocka_unit_test(dequantized_rows),
        cmocka_unit_test(transform_is_hadamards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
