/* SPDX-License-Identifier: Apache-2.0
 *
 * What products lose: against the definition, with and without correlations, for any number of threads.
 */
#include "export/measure_loss.h"
#include "export/random_weights.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 40, MANY_ROWS = 200, COLUMNS = 160, TOKENS = 50, ROTATION = 32 };

static const gb_format narrow = {GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0},
                       wide = {GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0};

static float weights[MANY_ROWS][COLUMNS], inputs[TOKENS][COLUMNS];

/* Inputs differ in size, and each is something of its neighbour's. */
static int make_numbers(void **unused) {
    (void)unused;
    gb_random_fill(1, (gb_uniform){-1, 1}, GB_F32, 0, MANY_ROWS * COLUMNS, weights);
    gb_random_fill(2, (gb_uniform){-1, 1}, GB_F32, 0, TOKENS * COLUMNS, inputs);
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t i = 1; i < COLUMNS; i++)
            inputs[t][i] = 0.5f * inputs[t][i - 1] + (i % 7 == 0 ? 3.0f : 0.3f) * inputs[t][i];
    return 0;
}

static const uint8_t *parts[] = {(const uint8_t *)weights};

static gb_quantized_source source_of(uint32_t rotation) {
    return (gb_quantized_source){.data = {.parts = parts}, .dtype = GB_F32, .rotation = rotation};
}

static double measure(const gb_quantized_source *source, const gb_correlations *correlations, uint64_t rows,
                      const gb_format *format, unsigned threads) {
    const gb_measured_matrix matrix = {source, correlations, rows, COLUMNS};
    const gb_quantize_method method =
        format->kind == GB_FORMAT_PROGRESSIVE ? GB_METHOD_SEARCH : GB_METHOD_MIN_MAX;
    double loss = -1;
    assert_true(gb_measure_loss(&matrix, format, method, threads, &loss));
    return loss;
}

/* A rotated row, and what the format makes of it. */
static void round_row(size_t row, float rotated[COLUMNS], float back[COLUMNS]) {
    gb_planes planes;
    static _Alignas(64) uint8_t data[2048];
    assert_true(gb_format_planes(&narrow, 1, COLUMNS, &planes) && planes.size <= sizeof data);
    const gb_quantized_row to = gb_quantized_row_in(&narrow, &planes, 0, data, data, 0);
    memcpy(rotated, weights[row], sizeof weights[row]);
    gb_rotate_row(rotated, COLUMNS, ROTATION);
    assert_true(gb_quantize_row(GB_METHOD_SEARCH, &narrow, rotated, COLUMNS, &to));
    gb_format_dequantize(&narrow, &planes, data, 0, 0, COLUMNS, back);
}

static double product(const float *a, const float *b) {
    double sum = 0;
    for (size_t i = 0; i < COLUMNS; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Over the products of all rows with all rotated inputs. */
static void with_correlations_it_is_that_of_products(void **unused) {
    (void)unused;
    gb_correlations correlations;
    assert_true(gb_correlations_create(COLUMNS, 256, &correlations));
    gb_correlations_add(&correlations, inputs[0], TOKENS, 0, 1);
    double error = 0, power = 0;
    for (size_t r = 0; r < ROWS; r++) {
        float rotated[COLUMNS], back[COLUMNS], x[COLUMNS];
        round_row(r, rotated, back);
        for (size_t t = 0; t < TOKENS; t++) {
            memcpy(x, inputs[t], sizeof x);
            gb_rotate_row(x, COLUMNS, ROTATION);
            error += pow(product(back, x) - product(rotated, x), 2);
            power += pow(product(rotated, x), 2);
        }
    }
    const gb_quantized_source source = source_of(ROTATION);
    const double loss = measure(&source, &correlations, ROWS, &narrow, 2);
    assert_true(fabs(loss / (error / power) - 1) < 1e-3);
    assert_true(measure(&source, &correlations, ROWS, &wide, 1) < 0.1 * loss);
    gb_correlations_free(&correlations);
}

static void without_them_it_is_that_of_weights(void **unused) {
    (void)unused;
    double error = 0, power = 0;
    for (size_t r = 0; r < ROWS; r++) {
        float rotated[COLUMNS], back[COLUMNS];
        round_row(r, rotated, back);
        power += product(rotated, rotated);
        for (size_t i = 0; i < COLUMNS; i++)
            back[i] -= rotated[i];
        error += product(back, back);
    }
    const gb_quantized_source source = source_of(ROTATION);
    assert_true(fabs(measure(&source, NULL, ROWS, &narrow, 3) / (error / power) - 1) < 1e-3);
}

/* More inputs than a block: the blocks' powers are added. */
static void blocks_are_added(void **unused) {
    (void)unused;
    gb_correlations correlations;
    assert_true(gb_correlations_create(COLUMNS, 64, &correlations));
    gb_correlations_add(&correlations, inputs[0], TOKENS, 0, 1);
    double expected = 0;
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t begin = 0; begin < COLUMNS; begin += 64) {
            double sum = 0;
            for (size_t i = begin; i < begin + 64 && i < COLUMNS; i++)
                sum += (double)weights[0][i] * (double)inputs[t][i];
            expected += sum * sum;
        }
    assert_true(fabs(gb_correlations_power(&correlations, weights[0]) / expected - 1) < 1e-4);
    gb_correlations_free(&correlations);
}

static void threads_do_not_matter(void **unused) {
    (void)unused;
    const gb_quantized_source source = source_of(0);
    const double one = measure(&source, NULL, MANY_ROWS, &narrow, 1);
    assert_true(one > 0 && one < 0.05);
    for (unsigned threads = 2; threads < 80; threads += 11)
        assert_true(measure(&source, NULL, MANY_ROWS, &narrow, threads) == one);
}

/* Zeros lose nothing; rows that cannot be quantized are left to what writes them. */
static void rows_without_a_loss(void **unused) {
    (void)unused;
    static float others[2][COLUMNS];
    const uint8_t *other_parts[] = {(const uint8_t *)others};
    gb_quantized_source source = source_of(ROTATION);
    source.data.parts = other_parts;
    assert_true(measure(&source, NULL, 2, &narrow, 1) == 0);
    memcpy(others[0], weights[0], sizeof others[0]);
    const double expected = measure(&source, NULL, 1, &narrow, 1);
    others[1][5] = INFINITY;
    assert_true(measure(&source, NULL, 2, &narrow, 1) == expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_correlations_it_is_that_of_products),
        cmocka_unit_test(without_them_it_is_that_of_weights),
        cmocka_unit_test(blocks_are_added),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(rows_without_a_loss),
    };
    return cmocka_run_group_tests(tests, make_numbers, NULL);
}
