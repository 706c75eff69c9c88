/* SPDX-License-Identifier: Apache-2.0
 *
 * Correlations of inputs and quantization with error feedback: against their definitions, the same for every
 * number of threads, and better for the products that they are made for.
 */
#include "export/calibrate/calibration.h"
#include "export/random_weights.h"
#include "support/assertions.h"
#include "support/temporary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 8, COLUMNS = 320, TOKENS = 403 };

static const gb_format formats[] = {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0},
                                    {GB_FORMAT_PROGRESSIVE, 6, false, 8, GB_F16, 64, 0},
                                    {GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_F16, 64, 0},
                                    {GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0}};
enum { FORMATS = sizeof formats / sizeof *formats };

static gb_quantize_method method_of(const gb_format *format) {
    return format->kind == GB_FORMAT_PROGRESSIVE ? GB_METHOD_SEARCH : GB_METHOD_MIN_MAX;
}

static float weights[ROWS][COLUMNS], inputs[TOKENS][COLUMNS];

/* Each input is its neighbour's, and something of its own. */
static int make_numbers(void **unused) {
    (void)unused;
    gb_random_fill(1, (gb_uniform){-1, 1}, GB_F32, 0, ROWS * COLUMNS, weights);
    gb_random_fill(2, (gb_uniform){-1, 1}, GB_F32, 0, TOKENS * COLUMNS, inputs);
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t i = 1; i < COLUMNS; i++)
            inputs[t][i] = 0.9f * inputs[t][i - 1] + 0.4f * inputs[t][i];
    return 0;
}

static void add_all(gb_correlations *correlations, unsigned threads) {
    for (unsigned thread = 0; thread < threads; thread++)
        gb_correlations_add(correlations, inputs[0], TOKENS, thread, threads);
}

static void correlations_are_sums_of_products(void **unused) {
    (void)unused;
    gb_correlations one, three, halved, small;
    assert_true(gb_correlations_create(COLUMNS, 256, &one) && gb_correlations_create(COLUMNS, 256, &three) &&
                gb_correlations_create(COLUMNS, 256, &halved) &&
                gb_correlations_create(COLUMNS, 128, &small));
    assert_int_equal(gb_correlations_bytes(&one), (256 * 256 + 64 * 64) * sizeof(float));
    add_all(&one, 1);
    add_all(&three, 3);
    assert_memory_equal(one.sums, three.sums, gb_correlations_bytes(&one));
    for (size_t i = 0; i < 4; i++)
        for (size_t j = i; j < 4; j++) {
            double sum = 0, last = 0;
            for (size_t t = 0; t < TOKENS; t++) {
                sum += (double)inputs[t][i] * (double)inputs[t][j];
                last += (double)inputs[t][256 + i] * (double)inputs[t][256 + j];
            }
            assert_true(fabs((double)one.sums[i * 256 + j] - sum) < 1e-3);
            assert_true(fabs((double)one.sums[256 * 256 + i * 64 + j] - last) < 1e-3);
        }
    add_all(&halved, 1);
    gb_correlations_halve(&halved);
    add_all(&small, 1);
    assert_int_equal(halved.block, 128);
    assert_memory_equal(halved.sums, small.sums, gb_correlations_bytes(&small));
    gb_correlations_free(&one);
    gb_correlations_free(&three);
    gb_correlations_free(&halved);
    gb_correlations_free(&small);
}

/* Of H = [[2, 1], [1, 2]] + damping: H^-1 = U^T U has U_01 / U_00 = -H_01 / H_11. */
static void spread_is_the_inverse_factor(void **unused) {
    (void)unused;
    const float sums[] = {2, 1, 0, 2, 3}; /* a block of 2 and one of 1 */
    gb_feedback feedback;
    assert_true(gb_feedback_create(sums, 3, 2, 2, &feedback));
    assert_true(fabsf(feedback.spread[0] - 1) < 1e-6f && fabsf(feedback.spread[3] - 1) < 1e-6f);
    assert_true(fabsf(feedback.spread[1] + 1 / 2.1f) < 1e-6f);
    assert_true(fabsf(feedback.spread[4] - 1) < 1e-6f);
    gb_feedback_free(&feedback);
    const float zeros[4] = {0};
    assert_true(gb_feedback_create(zeros, 2, 2, 1, &feedback));
    assert_memory_equal(feedback.spread, zeros, sizeof zeros);
    gb_feedback_free(&feedback);
}

/* A matrix in its format. */
typedef struct quantized {
    gb_planes planes;
    uint8_t *data;
    gb_quantized_row rows[ROWS];
} quantized;

static quantized make_quantized(const gb_format *format) {
    quantized made;
    assert_true(gb_format_planes(format, ROWS, COLUMNS, &made.planes));
    made.data = calloc(1, (size_t)made.planes.size);
    assert_non_null(made.data);
    for (size_t r = 0; r < ROWS; r++)
        made.rows[r] = gb_quantized_row_in(format, &made.planes, r,
                                           made.data + r * made.planes.codes.row_bytes, made.data, 0);
    return made;
}

static quantized round_alone(const gb_format *format) {
    quantized made = make_quantized(format);
    for (size_t r = 0; r < ROWS; r++)
        assert_true(gb_quantize_row(method_of(format), format, weights[r], COLUMNS, &made.rows[r]));
    return made;
}

static quantized round_with(const gb_format *format, const gb_feedback *feedback) {
    static float values[ROWS][COLUMNS];
    quantized made = make_quantized(format);
    memcpy(values, weights, sizeof values);
    assert_int_equal(gb_quantize_rows(method_of(format), format, feedback, values[0], ROWS, made.rows), ROWS);
    return made;
}

/* Of the products of all rows with all inputs. */
static double product_error(const gb_format *format, const quantized *found) {
    double error = 0;
    for (size_t r = 0; r < ROWS; r++) {
        float back[COLUMNS];
        gb_format_dequantize(format, &found->planes, found->data, r, 0, COLUMNS, back);
        for (size_t t = 0; t < TOKENS; t++) {
            double product = 0;
            for (size_t i = 0; i < COLUMNS; i++)
                product += (double)(back[i] - weights[r][i]) * (double)inputs[t][i];
            error += product * product;
        }
    }
    return sqrt(error);
}

static void without_correlations_rows_are_rounded_alone(void **unused) {
    (void)unused;
    static float sums[COLUMNS * 128];
    memset(sums, 0, sizeof sums);
    for (size_t b = 0, at = 0; b < COLUMNS; b += 128) {
        const size_t size = COLUMNS - b < 128 ? COLUMNS - b : 128;
        for (size_t i = 0; i < size; i++)
            sums[at + i * size + i] = 1;
        at += size * size;
    }
    gb_feedback feedback;
    assert_true(gb_feedback_create(sums, COLUMNS, 128, 2, &feedback));
    for (size_t f = 0; f < FORMATS; f++) {
        quantized alone = round_alone(&formats[f]), with = round_with(&formats[f], &feedback);
        assert_memory_equal(alone.data, with.data, alone.planes.size);
        free(alone.data);
        free(with.data);
    }
    gb_feedback_free(&feedback);
}

static void products_lose_less(void **unused) {
    (void)unused;
    gb_correlations correlations;
    gb_feedback feedback, again;
    assert_true(gb_correlations_create(COLUMNS, 256, &correlations));
    add_all(&correlations, 1);
    assert_true(gb_correlations_feedback(&correlations, 0, 1, &feedback));
    assert_true(gb_correlations_feedback(&correlations, 0, 3, &again));
    for (size_t f = 0; f < FORMATS; f++) {
        quantized alone = round_alone(&formats[f]), with = round_with(&formats[f], &feedback),
                  threads = round_with(&formats[f], &again);
        const double before = product_error(&formats[f], &alone), after = product_error(&formats[f], &with);
        print_message("%zu: %.3f becomes %.3f\n", f, before, after);
        assert_true(after < 0.75 * before);
        assert_memory_equal(with.data, threads.data, with.planes.size);
        free(alone.data);
        free(with.data);
        free(threads.data);
    }
    gb_feedback_free(&feedback);
    gb_feedback_free(&again);
    gb_correlations_free(&correlations);
}

/* Rotated correlations are those of rotated inputs. */
static void rotation_follows_the_inputs(void **unused) {
    (void)unused;
    static float kept[TOKENS][COLUMNS];
    gb_correlations plain, rotated;
    gb_feedback expected, found;
    assert_true(gb_correlations_create(COLUMNS, 256, &plain));
    assert_true(gb_correlations_create(COLUMNS, 256, &rotated));
    add_all(&plain, 1);
    memcpy(kept, inputs, sizeof kept);
    for (size_t t = 0; t < TOKENS; t++)
        gb_rotate_row(inputs[t], COLUMNS, 64);
    add_all(&rotated, 1);
    memcpy(inputs, kept, sizeof kept);
    assert_true(gb_correlations_feedback(&rotated, 0, 1, &expected));
    assert_true(gb_correlations_feedback(&plain, 64, 1, &found));
    for (uint64_t i = 0; i < gb_block_squares(COLUMNS, 256); i++)
        assert_true(fabsf(expected.spread[i] - found.spread[i]) < 2e-3f);
    gb_feedback_free(&expected);
    gb_feedback_free(&found);
    gb_correlations_free(&plain);
    gb_correlations_free(&rotated);
}

static void a_bad_row_is_found(void **unused) {
    (void)unused;
    static float sums[COLUMNS * COLUMNS], values[3][COLUMNS];
    gb_feedback feedback;
    for (size_t i = 0; i < COLUMNS; i++)
        sums[i * COLUMNS + i] = 1;
    assert_true(gb_feedback_create(sums, COLUMNS, COLUMNS, 1, &feedback));
    for (size_t f = 0; f < FORMATS; f++) {
        quantized made = make_quantized(&formats[f]);
        memset(values, 0, sizeof values);
        values[1][7] = NAN;
        assert_int_equal(
            gb_quantize_rows(method_of(&formats[f]), &formats[f], &feedback, values[0], 3, made.rows), 1);
        free(made.data);
    }
    gb_feedback_free(&feedback);
}

/* ---- The calibration ----------------------------------------------------------------------------------- */

static void observe(gumbel_calibration *calibration, const char *weight, const float *rows, size_t columns,
                    unsigned threads) {
    for (unsigned thread = 0; thread < threads; thread++)
        gumbel_calibration_observe(calibration, &(gumbel_observation){.weight = weight,
                                                                      .inputs = rows,
                                                                      .rows = 3,
                                                                      .columns = columns,
                                                                      .thread = thread,
                                                                      .threads = threads});
}

/* What two products take in together counts once, whatever the number of threads. */
static void inputs_are_shared_by_what_they_hold(void **unused) {
    (void)unused;
    gumbel_error error;
    gumbel_calibration *calibration;
    assert_ok(gumbel_calibration_create(NULL, &calibration, &error), &error);
    for (int step = 0; step < 2; step++) {
        observe(calibration, "q", inputs[0], COLUMNS, 2);
        observe(calibration, "k", inputs[0], COLUMNS, 2);
        observe(calibration, "o", inputs[1], COLUMNS, 2);
    }
    const gb_correlations *q = gb_calibration_find(calibration, "q", COLUMNS),
                          *o = gb_calibration_find(calibration, "o", COLUMNS);
    assert_ptr_equal(q, gb_calibration_find(calibration, "k", COLUMNS));
    assert_true(q && o && q != o);
    assert_null(gb_calibration_find(calibration, "q", 64));
    assert_null(gb_calibration_find(calibration, "v", COLUMNS));
    double square = 0;
    for (size_t t = 0; t < 3; t++)
        square += 2 * (double)inputs[t][0] * (double)inputs[t][0];
    assert_true(fabs((double)q->sums[0] - square) < 1e-5);
    const gb_feedback *feedback = gb_calibration_feedback(calibration, q, 64);
    assert_non_null(feedback);
    assert_ptr_equal(feedback, gb_calibration_feedback(calibration, q, 64));
    gumbel_calibration_destroy(calibration);
}

/* First blocks become smaller; then there are no more. */
static void memory_is_bounded(void **unused) {
    (void)unused;
    enum { WIDE = 2048, NAMES = 6 };
    static float rows[3][WIDE];
    static const char *const names[NAMES] = {"a", "b", "c", "d", "e", "f"};
    gumbel_error error;
    gumbel_calibration *calibration;
    const gumbel_calibration_options options = {.size = sizeof options, .memory_bytes = 8 << 20};
    assert_ok(gumbel_calibration_create(&options, &calibration, &error), &error);
    for (int i = 0; i < NAMES; i++) {
        gb_random_fill((uint64_t)i, (gb_uniform){-1, 1}, GB_F32, 0, 3 * WIDE, rows);
        observe(calibration, names[i], rows[0], WIDE, 1);
        const gb_correlations *found = gb_calibration_find(calibration, names[i], WIDE);
        assert_true((found != NULL) == (i < 4)); /* blocks of 256 take 2 MB each */
        assert_true(!found || found->block == (i == 0 ? 1024 : i == 1 ? 512 : 256));
    }
    assert_int_equal(gb_calibration_find(calibration, "a", WIDE)->block, 256);
    assert_ok(gb_calibration_check(calibration, &error), &error);
    gumbel_calibration_destroy(calibration);
    assert_int_equal(
        gumbel_calibration_create(&(gumbel_calibration_options){.size = 0}, &calibration, &error),
        GUMBEL_ERROR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(correlations_are_sums_of_products),
        cmocka_unit_test(spread_is_the_inverse_factor),
        cmocka_unit_test(without_correlations_rows_are_rounded_alone),
        cmocka_unit_test(products_lose_less),
        cmocka_unit_test(rotation_follows_the_inputs),
        cmocka_unit_test(a_bad_row_is_found),
        cmocka_unit_test(inputs_are_shared_by_what_they_hold),
        cmocka_unit_test(memory_is_bounded),
    };
    return cmocka_run_group_tests(tests, make_numbers, NULL);
}
