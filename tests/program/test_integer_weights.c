/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of products with exact sums: which weights, rows and rotations they take, and which bytes of scales.
 */
#include "program/builder.h"
#include "program/verify/verifier.h"
#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCABULARY = 16 };

#define PROGRESSIVE(code_bits, size)                                                                         \
    { .kind = GB_FORMAT_PROGRESSIVE, .bits = (code_bits), .scale_bits = 8, .scale = GB_F16, .group = (size) }
static const gb_format int4_g32 = PROGRESSIVE(4, 32), int5_g64 = PROGRESSIVE(5, 64);
static const gb_format int8_row = {GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0};
static const gb_format int8_row_bias = {GB_FORMAT_ONE_LEVEL, 8, true, 0, GB_F16, 0, 0};
static const gb_format int4_one_level = {GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_F16, 32, 0};

/* A program that multiplies rows of an embedding [columns] with a weight [VOCABULARY, columns]. Where its
 * table has a format it is rotated, too. */
static gumbel_status build_both(const gb_format *table_format, int64_t table_rotation,
                                const gb_format *format, int64_t columns, int64_t activation,
                                int64_t rotation, gb_program **program, gumbel_error *error) {
    gb_builder *b = gb_builder_create();
    assert_non_null(b);
    gb_metadata *metadata = gb_builder_metadata(b);
    metadata->architecture = "exact";
    metadata->vocab_size = VOCABULARY;
    metadata->max_context = 8;
    metadata->prefill_chunk = 4;
    const int64_t dims[] = {VOCABULARY, columns};
    gb_build_input(b, GB_ROLE_POSITIONS);
    gb_build_input(b, GB_ROLE_SLOTS);
    const gb_ref table = table_format ? gb_build_quantized(b, "table", table_format, 2, dims)
                                      : gb_build_constant(b, "table", GB_BF16, 2, dims);
    const gb_attribute of_table = gb_int(GB_ATTRIBUTE_ROTATION, table_rotation);
    gb_ref x = gb_build_op(b, GB_OP_EMBEDDING, (const gb_ref[]){table, gb_build_input(b, GB_ROLE_TOKENS)}, 2,
                           &of_table, 1);
    x = gb_build_op(b, GB_OP_GATHER_ROWS, (const gb_ref[]){x, gb_build_input(b, GB_ROLE_ROWS)}, 2, NULL, 0);
    const gb_attribute attributes[] = {gb_int(GB_ATTRIBUTE_ACTIVATION, activation),
                                       gb_int(GB_ATTRIBUTE_ROTATION, rotation)};
    const gb_ref weight = gb_build_quantized(b, "weight", format, 2, dims);
    gb_build_output(b, GB_ROLE_LOGITS,
                    gb_build_op(b, GB_OP_LINEAR, (const gb_ref[]){x, weight}, 2, attributes, 2));
    *program = NULL;
    gumbel_status status = gb_builder_finish(b, program, error);
    gb_builder_destroy(b);
    return status;
}

static gumbel_status build(const gb_format *format, int64_t columns, int64_t activation, int64_t rotation,
                           gb_program **program, gumbel_error *error) {
    return build_both(NULL, 0, format, columns, activation, rotation, program, error);
}

static void take(const gb_format *format, int64_t columns, int64_t activation, int64_t rotation) {
    gb_program *program;
    gumbel_error error = {0};
    assert_ok(build(format, columns, activation, rotation, &program, &error), &error);
    assert_ok(gb_program_verify(program, &error), &error);
    gb_program_destroy(program);
}

static void refuse(const gb_format *format, int64_t columns, int64_t activation, int64_t rotation,
                   const char *part) {
    gb_program *program;
    gumbel_error error = {0};
    assert_fails(build(format, columns, activation, rotation, &program, &error), GUMBEL_ERROR_FORMAT, &error,
                 part);
    assert_null(program);
}

static void weights_are_integers(void **unused) {
    (void)unused;
    take(&int4_g32, 96, 2, 0);
    take(&int5_g64, 128, 2, 128);
    take(&int8_row, 7, 2, 0);
    take(&int4_g32, 96, 0, 0);
    refuse(
        &int4_one_level, 96, 2, 0,
        "linear: activation = 2 with a weight of int4 g32 f16+bias, expected a progressive one or int8 row");
    refuse(&int8_row_bias, 96, 2, 0, "with a weight of int8 row f16+bias");
    refuse(&int4_g32, 96, 1, 0, "linear: activation = 1 with a progressive weight, expected 0 or 2");
}

static void rotations_divide_rows(void **unused) {
    (void)unused;
    for (int64_t rotation = 2; rotation <= 256; rotation *= 2)
        take(&int4_g32, 256, 2, rotation);
    take(&int8_row, 6, 2, 2);
    refuse(&int4_g32, 512, 2, 512,
           "linear: rotation = 512, expected a power of two from 2 to 256 that divides rows of 512");
    refuse(&int4_g32, 96, 2, 1, "rotation = 1");
    refuse(&int4_g32, 96, 2, 24, "rotation = 24");
    refuse(&int4_g32, 96, 2, 64, "a power of two from 2 to 256 that divides rows of 96");
    refuse(&int4_g32, 96, 0, 32, "linear: rotation = 32 without activation = 2");
    refuse(&int8_row, 96, 1, 32, "linear: rotation = 32 without activation = 2");
}

static gumbel_status build_table(const gb_format *format, int64_t columns, int64_t rotation,
                                 gb_program **program, gumbel_error *error) {
    return build_both(format, rotation, &int8_row, columns, 2, 0, program, error);
}

static void take_table(const gb_format *format, int64_t columns, int64_t rotation) {
    gb_program *program;
    gumbel_error error = {0};
    assert_ok(build_table(format, columns, rotation, &program, &error), &error);
    assert_ok(gb_program_verify(program, &error), &error);
    gb_program_destroy(program);
}

static void refuse_table(const gb_format *format, int64_t columns, int64_t rotation, const char *part) {
    gb_program *program;
    gumbel_error error = {0};
    assert_fails(build_table(format, columns, rotation, &program, &error), GUMBEL_ERROR_FORMAT, &error, part);
}

/* A table of any format that is not dense can be rotated. */
static void rotations_divide_rows_of_tables(void **unused) {
    (void)unused;
    for (int64_t rotation = 2; rotation <= 256; rotation *= 2)
        take_table(&int4_g32, 256, rotation);
    take_table(&int8_row, 6, 2);
    take_table(&int4_one_level, 96, 32);
    take_table(NULL, 96, 0);
    refuse_table(NULL, 96, 32, "embedding: rotation = 32, but its table is not quantized");
    refuse_table(&int4_g32, 512, 512,
                 "embedding: rotation = 512, expected a power of two from 2 to 256 that divides rows of 512");
    refuse_table(&int8_row, 96, 1, "rotation = 1");
    refuse_table(&int8_row, 96, 24, "rotation = 24");
    refuse_table(&int4_g32, 96, 64, "a power of two from 2 to 256 that divides rows of 96");
}

static void sums_cannot_overflow(void **unused) {
    (void)unused;
    take(&int8_row, 131071, 2, 0);
    take(&int4_g32, 131040, 2, 32);
    take(&int8_row, 131072, 1, 0);
    refuse(&int8_row, 131072, 2, 0, "rows of 131072, expected at most 131071: sums of int32 could overflow");
    refuse(&int4_g32, 131072, 2, 128, "rows of 131072");
}

/* Of the weight every byte is tried as the one of its last group; the others are such as fit. */
static void bytes_of_scales(void **unused) {
    (void)unused;
    gb_program *program;
    gumbel_error error = {0};
    assert_ok(build(&int4_g32, 96, 2, 32, &program, &error), &error);
    gb_constant *weight = &program->constants[1];
    gb_planes planes;
    assert_true(gb_constant_planes(weight, &planes));
    uint8_t *data = calloc((size_t)planes.size, 1);
    assert_non_null(data);
    weight->data = data;
    const uint64_t last = VOCABULARY * 3 - 1;
    for (uint32_t byte = 0; byte < 256; byte++) {
        data[planes.scales.offset + last] = (uint8_t)byte;
        const uint32_t zero = byte >> 4, scale = (byte & 15) + 1;
        const gumbel_status status = gb_verify_weights(program, &error);
        assert_int_equal(status,
                         zero * scale <= 127 && (15 - zero) * scale <= 127 ? GUMBEL_OK : GUMBEL_ERROR_FORMAT);
    }
    assert_string_equal(error.message,
                        "constant weight: byte 47 of its scales is 0xff: with a zero of 15 the scale is "
                        "16, expected at most 8, so that weights have 8 bits");
    weight->data = NULL; /* of a program that is being built */
    assert_ok(gb_verify_weights(program, &error), &error);
    free(data);
    gb_program_destroy(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_integers),
        cmocka_unit_test(rotations_divide_rows),
        cmocka_unit_test(rotations_divide_rows_of_tables),
        cmocka_unit_test(sums_cannot_overflow),
        cmocka_unit_test(bytes_of_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
