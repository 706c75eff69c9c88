/* SPDX-License-Identifier: Apache-2.0
 *
 * Streaming of quantized constants: the same bytes whatever the threads, drawn ones with the right width, and
 * memory that does not grow with the tensor.
 */
#include "base/file_map.h"
#include "export/parallel.h"
#include "export/quantize/write_quantized.h"
#include "export/random_weights.h"
#include "support/assertions.h"
#include "support/temporary.h"
#include "tensor/convert.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static gumbel_status ignore(void *user, uint64_t bytes, gumbel_error *error) {
    (void)error;
    *(uint64_t *)user += bytes;
    return GUMBEL_OK;
}

/* A program of one constant of that shape and format. */
typedef struct one_constant {
    gb_program program;
    gb_constant constant;
    gb_planes planes;
} one_constant;

static void describe(one_constant *one, const gb_format *format, int64_t rows, int64_t columns) {
    *one = (one_constant){.constant = {.name = "weight", .format = *format}};
    one->constant.type = (gb_type){GB_QUANTIZED, {.rank = 2, .dims = {rows, columns}}};
    one->program.constants = &one->constant;
    one->program.constant_count = 1;
    assert_true(gb_constant_planes(&one->constant, &one->planes));
    one->constant.size = one->planes.size;
}

/* Writes the constant; its bytes into data unless that is NULL. */
static gumbel_status write_constant(one_constant *one, const gb_quantized_source *source, unsigned threads,
                                    uint8_t *data, gumbel_error *error) {
    gb_writer *writer;
    uint64_t written = 0;
    gb_written_callback callback = {ignore, &written};
    assert_ok(gb_writer_create(temporary_path("out.gumbel"), NULL, &one->program, &writer, error), error);
    gb_writer_use_threads(writer, gb_parallel_for, threads);
    assert_ok(gb_writer_begin_constant(writer, 0, error), error);
    gumbel_status status = gb_write_quantized(writer, &one->constant, source, threads, &callback, error);
    if (status != GUMBEL_OK) {
        gb_writer_abort(writer);
        return status;
    }
    assert_int_equal(written, one->constant.size);
    assert_ok(gb_writer_finish(writer, error), error);
    if (data) {
        gb_file_map map;
        assert_ok(gb_map_file(temporary_path("out.gumbel"), &map, error), error);
        memcpy(data, map.data + one->constant.offset, one->constant.size);
        gb_unmap_file(&map);
    }
    return GUMBEL_OK;
}

static const gb_format int4 = {GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_F16, 64, 0};
static const gb_format int5 = {GB_FORMAT_ONE_LEVEL, 5, true, 0, GB_BF16, 32, 0};
static const gb_format progressive = {GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0};
static const gb_format int8_rows = {GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0};

static void threads_change_nothing(void **unused) {
    (void)unused;
    enum { ROWS = 37, COLUMNS = 192 };
    static float values[ROWS * COLUMNS];
    gb_random_fill(3, gb_random_matrix(COLUMNS), GB_F32, 0, ROWS * COLUMNS, values);
    const gb_format *formats[] = {&int4, &int5, &int8_rows, &progressive};
    for (size_t f = 0; f < 4; f++)
        for (int drawn = 0; drawn < 2; drawn++) {
            gb_quantized_source source = {
                .data = {.parts = drawn ? NULL : (const uint8_t *const[]){(const uint8_t *)values}},
                .dtype = GB_F32,
                .method = formats[f]->group ? GB_METHOD_HQQ : GB_METHOD_MIN_MAX,
                .stream = 9,
                .half_width = 0.1f};
            if (!formats[f]->has_bias)
                source.method = GB_METHOD_MIN_MAX;
            if (formats[f] == &progressive)
                source.method = GB_METHOD_SEARCH;
            source.rotation = gb_format_is_integer(formats[f]) ? 64 : 0;
            one_constant one;
            gumbel_error error;
            describe(&one, formats[f], ROWS, COLUMNS);
            uint8_t *expected = malloc(one.constant.size), *found = malloc(one.constant.size);
            assert_true(expected && found);
            assert_ok(write_constant(&one, &source, 1, expected, &error), &error);
            for (unsigned threads = 2; threads <= 5; threads++) {
                assert_ok(write_constant(&one, &source, threads, found, &error), &error);
                assert_memory_equal(found, expected, one.constant.size);
            }
            free(expected);
            free(found);
        }
}

/* Two parts, so many rows of each in turns, give the bytes that the whole does. */
static void stacked_as_the_whole(void **unused) {
    (void)unused;
    enum { RUN = 3, TURNS = 5, ROWS = 2 * RUN * TURNS, COLUMNS = 64 };
    static float whole[ROWS][COLUMNS], parts[2][ROWS / 2][COLUMNS];
    gb_random_fill(3, gb_random_matrix(COLUMNS), GB_F32, 0, ROWS * COLUMNS, whole);
    for (size_t row = 0; row < ROWS; row++)
        memcpy(parts[row / RUN % 2][row / RUN / 2 * RUN + row % RUN], whole[row], sizeof whole[row]);
    gb_quantized_source source = {.data = {.parts = (const uint8_t *const[]){(const uint8_t *)whole}},
                                  .dtype = GB_F32};
    const gb_quantized_source stacked = {
        .data = {(const uint8_t *const[]){(const uint8_t *)parts[0], (const uint8_t *)parts[1]},
                 {.parts = 2, .run = RUN}},
        .dtype = GB_F32};
    one_constant one;
    gumbel_error error;
    describe(&one, &int4, ROWS, COLUMNS);
    uint8_t *expected = malloc(one.constant.size), *found = malloc(one.constant.size);
    assert_true(expected && found);
    assert_ok(write_constant(&one, &source, 1, expected, &error), &error);
    assert_ok(write_constant(&one, &stacked, 2, found, &error), &error);
    assert_memory_equal(found, expected, one.constant.size);
    free(expected);
    free(found);
}

/* A constant that is to be packed is made of the same bytes, whatever the threads. */
static void packed_as_it_is_written(void **unused) {
    (void)unused;
    enum { ROWS = 80, COLUMNS = 192 };
    const gb_format *formats[] = {&int4, &int5, &int8_rows, &progressive};
    for (size_t f = 0; f < 4; f++) {
        const gb_quantized_source source = {.stream = 11, .half_width = 0.1f};
        one_constant one;
        gumbel_error error;
        describe(&one, formats[f], ROWS, COLUMNS);
        uint8_t *canonical = malloc(one.constant.size), *expected = malloc(one.constant.size),
                *found = malloc(one.constant.size);
        assert_true(canonical && expected && found);
        assert_ok(write_constant(&one, &source, 1, canonical, &error), &error);
        assert_true(gb_packing_interleaved(formats[f], ROWS, COLUMNS, &one.constant.packing));
        gb_pack_matrix(&one.constant.packing, formats[f], ROWS, COLUMNS, canonical, expected);
        for (unsigned threads = 1; threads <= 5; threads++) {
            assert_ok(write_constant(&one, &source, threads, found, &error), &error);
            assert_memory_equal(found, expected, one.constant.size);
        }
        free(canonical);
        free(expected);
        free(found);
    }
}

/* Mean 0 and the deviation of the uniform distribution that dense weights would be drawn from. */
static void check_width(const gb_format *format) {
    enum { ROWS = 200, COLUMNS = 256 };
    one_constant one;
    gumbel_error error;
    gb_quantized_source source = {.stream = 5, .half_width = gb_random_matrix(COLUMNS).high};
    describe(&one, format, ROWS, COLUMNS);
    uint8_t *data = malloc(one.constant.size);
    assert_non_null(data);
    assert_ok(write_constant(&one, &source, 2, data, &error), &error);
    if (format->kind == GB_FORMAT_PROGRESSIVE) {
        const uint64_t bytes = ROWS * one.planes.scales.row_bytes;
        assert_int_equal(gb_check_group_bytes(format->bits, data + one.planes.scales.offset, bytes), bytes);
    }
    double sum = 0, squares = 0;
    for (uint64_t r = 0; r < ROWS; r++) {
        float row[COLUMNS];
        gb_format_dequantize(format, &one.planes, data, r, 0, COLUMNS, row);
        for (int i = 0; i < COLUMNS; i++) {
            sum += row[i];
            squares += (double)row[i] * (double)row[i];
        }
    }
    double count = ROWS * COLUMNS, deviation = sqrt(squares / count);
    assert_true(fabs(sum / count) < 0.02 * deviation);
    assert_true(fabs(deviation * sqrt(COLUMNS) - 1) < 0.1);
    free(data);
}

static void drawn_weights_have_their_width(void **unused) {
    (void)unused;
    check_width(&int4);
    for (uint8_t bits = 4; bits <= 6; bits++) {
        gb_format format = progressive;
        format.bits = bits;
        check_width(&format);
    }
}

/* Rows are rotated before they are quantized: rotated once more what is read is what was given. */
static void rows_are_rotated(void **unused) {
    (void)unused;
    enum { ROWS = 5, COLUMNS = 192, ROTATION = 64 };
    static float values[ROWS][COLUMNS];
    gb_random_fill(3, gb_random_matrix(COLUMNS), GB_F32, 0, ROWS * COLUMNS, values);
    const gb_quantized_source source = {.data = {.parts = (const uint8_t *const[]){(const uint8_t *)values}},
                                        .dtype = GB_F32,
                                        .rotation = ROTATION};
    one_constant one;
    gumbel_error error;
    describe(&one, &int8_rows, ROWS, COLUMNS);
    uint8_t *data = malloc(one.constant.size);
    assert_non_null(data);
    assert_ok(write_constant(&one, &source, 1, data, &error), &error);
    for (uint64_t r = 0; r < ROWS; r++) {
        float row[COLUMNS];
        gb_format_dequantize(&int8_rows, &one.planes, data, r, 0, COLUMNS, row);
        gb_rotate_row(row, COLUMNS, ROTATION);
        for (int i = 0; i < COLUMNS; i++)
            assert_true(fabsf(row[i] - values[r][i]) < 0.01f * gb_random_matrix(COLUMNS).high * 4);
    }
    free(data);
}

static void names_the_row_that_cannot_be(void **unused) {
    (void)unused;
    enum { ROWS = 8, COLUMNS = 64 };
    static uint16_t values[ROWS * COLUMNS];
    values[5 * COLUMNS + 3] = gb_bf16_from_float(INFINITY);
    values[3 * COLUMNS + 1] = gb_bf16_from_float(1e30f);
    gb_quantized_source source = {.data = {.parts = (const uint8_t *const[]){(const uint8_t *)values}},
                                  .dtype = GB_BF16};
    one_constant one;
    gumbel_error error;
    describe(&one, &int4, ROWS, COLUMNS);
    assert_fails(write_constant(&one, &source, 3, NULL, &error), GUMBEL_ERROR_FORMAT, &error,
                 "tensor weight: row 3 holds a number too large for f16 scales");
    values[3 * COLUMNS + 1] = 0;
    assert_fails(write_constant(&one, &source, 3, NULL, &error), GUMBEL_ERROR_FORMAT, &error,
                 "tensor weight: row 5, column 3 is infinity, expected finite numbers");
}

static long peak_megabytes(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

/* A tensor of 256 MB of a mapped file. ThreadSanitizer takes four times as much beside it. */
static void memory_is_bounded(void **unused) {
    (void)unused;
#if defined(__SANITIZE_THREAD__)
    skip();
#endif
    enum { ROWS = 16384, COLUMNS = 8192 };
    const char *path = temporary_path("tensor.bin");
    write_text(path, "");
    assert_int_equal(truncate(path, (off_t)ROWS * COLUMNS * 2), 0);
    gb_file_map map;
    gumbel_error error;
    assert_ok(gb_map_file(path, &map, &error), &error);
    gb_quantized_source source = {
        .data = {.parts = (const uint8_t *const[]){map.data}}, .dtype = GB_BF16, .is_mapped = true};
    one_constant one;
    describe(&one, &int4, ROWS, COLUMNS);
    long before = peak_megabytes();
    assert_ok(write_constant(&one, &source, gb_export_threads(), NULL, &error), &error);
    long grown = peak_megabytes() - before;
    if (grown > 160)
        fail_msg("quantizing a tensor of 256 MB took %ld MB", grown);
    gb_unmap_file(&map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_change_nothing),  cmocka_unit_test(stacked_as_the_whole),
        cmocka_unit_test(packed_as_it_is_written), cmocka_unit_test(drawn_weights_have_their_width),
        cmocka_unit_test(rows_are_rotated),        cmocka_unit_test(names_the_row_that_cannot_be),
        cmocka_unit_test(memory_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
