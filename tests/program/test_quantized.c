/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantized constants in a program: built, written, read back and printed; what is refused of them.
 */
#include "base/byte_buffer.h"
#include "base/memory.h"
#include "base/text_sink.h"
#include "program/file/encode.h"
#include "program/file/format.h"
#include "program/file/records.h"
#include "program/file/storage.h"
#include "program/print/printer.h"
#include "program/verify/verifier.h"
#include "support/assertions.h"
#include "support/programs/broken_program.h"
#include "support/programs/quantized_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void sizes_are_those_of_the_planes(void **unused) {
    (void)unused;
    gb_program *program = quantized_program_build();
    assert_int_equal(program->constants[0].size,
                     QUANTIZED_VOCABULARY * QUANTIZED_WIDTH + QUANTIZED_VOCABULARY * 2);
    assert_int_equal(program->constants[2].size, QUANTIZED_VOCABULARY * (QUANTIZED_WIDTH / 2 + 4 + 4));
    gb_program_destroy(program);
}

static gb_program *decode(const gb_byte_buffer *buffer, gumbel_status *status, gumbel_error *error) {
    gb_program *program = gb_allocate(1, sizeof *program);
    assert_non_null(program);
    program->storage = gb_storage_create();
    *status = gb_decode_graph((gb_byte_view){.data = buffer->data, .size = buffer->size}, program, error);
    return program;
}

static void formats_are_written_and_read(void **unused) {
    (void)unused;
    gb_program *program = quantized_program_build();
    gb_byte_buffer buffer = {0};
    gumbel_status status;
    gumbel_error error;
    gb_encode_graph(program, &buffer);
    gb_program *again = decode(&buffer, &status, &error);
    assert_ok(status, &error);
    for (uint32_t i = 0; i < program->constant_count; i++) {
        assert_true(gb_format_equal(&program->constants[i].format, &again->constants[i].format));
        assert_true(gb_type_equal(&program->constants[i].type, &again->constants[i].type));
    }
    gb_free(buffer.data);
    gb_program_destroy(again);
    gb_program_destroy(program);
}

static const gb_format e2m1 = {
    .kind = GB_FORMAT_ONE_LEVEL, .bits = 4, .scale = GB_BF16, .group = 32, .book = GB_BOOK_E2M1};

/* The number of a book, of which a reader must know what it stands for. */
static void books_are_written_and_read(void **unused) {
    (void)unused;
    gb_program *program = quantized_program_build();
    gb_byte_buffer buffer = {0};
    gumbel_status status;
    gumbel_error error;
    program->constants[2].format = e2m1;
    gb_encode_graph(program, &buffer);
    gb_program *again = decode(&buffer, &status, &error);
    assert_ok(status, &error);
    assert_true(gb_format_equal(&again->constants[2].format, &e2m1));
    gb_program_destroy(again);
    const uint8_t head[] = {GB_CONSTANT_FIELD_BOOK, 0, GB_RECORD_CRITICAL, 0, 4, 0, 0, 0, GB_BOOK_E2M1};
    size_t at = 0;
    while (at + sizeof head < buffer.size && memcmp(buffer.data + at, head, sizeof head) != 0)
        at++;
    assert_true(at + sizeof head <= buffer.size);
    gb_put_u32(buffer.data + at + 8, GB_BOOK_COUNT);
    again = decode(&buffer, &status, &error);
    assert_fails(status, GUMBEL_ERROR_UNSUPPORTED, &error, "code book 7 is not known to this version");
    gb_free(buffer.data);
    gb_program_destroy(again);
    gb_program_destroy(program);
}

/* The graph with field `index` of the first format replaced. */
static void refuse_field(uint32_t index, uint32_t value, gumbel_status expected, const char *part) {
    gb_program *program = quantized_program_build();
    gb_byte_buffer buffer = {0};
    gb_encode_graph(program, &buffer);
    const uint8_t head[] = {GB_CONSTANT_FIELD_FORMAT, 0, GB_RECORD_CRITICAL, 0, 24, 0, 0, 0};
    size_t at = 0;
    while (at + sizeof head < buffer.size && memcmp(buffer.data + at, head, sizeof head) != 0)
        at++;
    assert_true(at + sizeof head + 24 <= buffer.size);
    gb_put_u32(buffer.data + at + sizeof head + 4 * (size_t)index, value);
    gumbel_status status;
    gumbel_error error;
    gb_program *again = decode(&buffer, &status, &error);
    assert_fails(status, expected, &error, part);
    gb_free(buffer.data);
    gb_program_destroy(again);
    gb_program_destroy(program);
}

static void broken_fields_are_refused(void **unused) {
    (void)unused;
    refuse_field(0, 4, GUMBEL_ERROR_UNSUPPORTED, "weight format 4 is not known to this version");
    refuse_field(1, 256, GUMBEL_ERROR_FORMAT, "constant 0: field 4 is malformed");
    refuse_field(3, 99, GUMBEL_ERROR_FORMAT, "field 4 is malformed");
    refuse_field(4, 2, GUMBEL_ERROR_FORMAT, "field 4 is malformed");
}

static void refuse_change(void (*change)(gb_program *), gumbel_status expected, const char *part) {
    gb_program *program = quantized_program_build();
    change(program);
    refuse_as(program, expected, part);
    gb_program_destroy(program);
}

static void change_size(gb_program *program) {
    program->constants[2].size--;
}
static void change_bits(gb_program *program) {
    program->constants[2].format.bits = 7;
}
static void give_a_bias_and_a_book(gb_program *program) {
    program->constants[2].format.book = GB_BOOK_IQ4;
}
static void give_dense_a_book(gb_program *program) {
    program->constants[1].format.book = GB_BOOK_E2M1;
}
static void change_group(gb_program *program) {
    program->constants[2].format.group = 128; /* rows have 64 */
}
static void drop_format(gb_program *program) {
    program->constants[2].format = (gb_format){0};
}
static void give_dense_a_format(gb_program *program) {
    program->constants[1].format = quantized_head_format;
}
static void make_vector(gb_program *program) {
    program->constants[2].type.shape = (gb_shape){1, {QUANTIZED_VOCABULARY * QUANTIZED_WIDTH}};
}
static void use_in_norm(gb_program *program) {
    node_of(program, GB_OP_RMS_NORM, 0)->operands[1] = value_of_kind(program, GB_VALUE_CONSTANT, 2);
}
static void set_activation(gb_program *program) {
    set_attribute(node_of(program, GB_OP_LINEAR, 0), gb_int(GB_ATTRIBUTE_ACTIVATION, 4));
}
static void make_head_dense(gb_program *program) {
    gb_type type = {GB_F32, program->constants[2].type.shape};
    program->constants[2].type = program->values[value_of_kind(program, GB_VALUE_CONSTANT, 2)].type = type;
    program->constants[2].format = (gb_format){0};
    program->constants[2].size = QUANTIZED_VOCABULARY * QUANTIZED_WIDTH * 4;
}

static void rules_of_quantized_constants(void **unused) {
    (void)unused;
    refuse_change(change_size, GUMBEL_ERROR_FORMAT, "constant head: 3839 bytes, its type has 3840");
    refuse_change(change_bits, GUMBEL_ERROR_FORMAT,
                  "constant head: quantized[96,64] cannot have the weight format int7 g32 bf16+bias");
    refuse_change(give_a_bias_and_a_book, GUMBEL_ERROR_FORMAT,
                  "cannot have the weight format iq4 g32 bf16+bias");
    refuse_change(give_dense_a_book, GUMBEL_ERROR_FORMAT, "f32[64] cannot have the weight format dense");
    refuse_change(change_group, GUMBEL_ERROR_FORMAT, "cannot have the weight format int4 g128");
    refuse_change(drop_format, GUMBEL_ERROR_FORMAT, "cannot have the weight format dense");
    refuse_change(give_dense_a_format, GUMBEL_ERROR_FORMAT, "f32[64] cannot have the weight format int4");
    refuse_change(make_vector, GUMBEL_ERROR_FORMAT, "cannot have the weight format");
    refuse_change(use_in_norm, GUMBEL_ERROR_FORMAT,
                  "operand weight is constant quantized[96,64], expected a float constant [64]");
    refuse_change(set_activation, GUMBEL_ERROR_UNSUPPORTED, "activation = 4 is not known to this version");
    refuse_change(make_head_dense, GUMBEL_ERROR_FORMAT, "activation = 1, but its weight is not quantized");
}

static void the_table_shows_formats(void **unused) {
    (void)unused;
    gb_program *program = quantized_program_build();
    gb_byte_buffer printed = {0};
    gb_text_sink sink = {gb_buffer_write, &printed};
    gb_print_tensors(program, &sink);
    assert_non_null(strstr(gb_buffer_string(&printed), "int8 row f16            8.250  [96,64]"));
    assert_non_null(strstr(gb_buffer_string(&printed), "int4 g32 bf16+bias      5.000  [96,64]"));
    gb_buffer_free(&printed);
    gb_program_destroy(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_those_of_the_planes), cmocka_unit_test(formats_are_written_and_read),
        cmocka_unit_test(books_are_written_and_read),    cmocka_unit_test(broken_fields_are_refused),
        cmocka_unit_test(rules_of_quantized_constants),  cmocka_unit_test(the_table_shows_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
