/* SPDX-License-Identifier: Apache-2.0
 *
 * GGUF checkpoints in one file and in parts.
 */
#include "export/checkpoint/ggml_types.h"
#include "export/checkpoint/gguf_files.h"
#include "support/assertions.h"
#include "support/checkpoints/gguf_writer.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const int64_t ONE[] = {1};

static int start_empty(void **state) {
    (void)state;
    empty_temporary_directory();
    return 0;
}

/* Writes a part with one tensor of that name. The gguf package stores these keys as uint16 and int32. */
static void write_part(const char *file, uint16_t number, uint16_t count, const char *tensor, float value) {
    static const uint32_t UINT16 = 2, INT32 = 5;
    gguf_writer w = {.version = 3};
    const uint8_t number_bytes[] = {(uint8_t)number, (uint8_t)(number >> 8)};
    const uint8_t count_bytes[] = {(uint8_t)count, (uint8_t)(count >> 8)};
    gguf_add_raw(&w, "split.no", UINT16, number_bytes, 2);
    gguf_add_raw(&w, "split.count", UINT16, count_bytes, 2);
    gguf_add_raw(&w, "split.tensors.count", INT32, "\3\0\0\0", 4);
    gguf_add_tensor(&w, tensor, GB_GGML_F32, 1, ONE, &value, 4);
    gguf_write(&w, temporary_path(file));
}

static void write_three(void) {
    write_part("m-00001-of-00003.gguf", 0, 3, "a", 1);
    write_part("m-00002-of-00003.gguf", 1, 3, "b", 2);
    write_part("m-00003-of-00003.gguf", 2, 3, "c", 3);
}

static void refuses(const char *file, gumbel_status status, const char *part) {
    gb_gguf_files files;
    gumbel_error error;
    assert_fails(gb_gguf_files_open(temporary_path(file), &files, &error), status, &error, part);
    assert_null(files.files);
}

static void reads_parts(void **state) {
    (void)state;
    gb_gguf_files files;
    gumbel_error error;
    float value;
    write_three();
    assert_ok(gb_gguf_files_open(temporary_path("m-00001-of-00003.gguf"), &files, &error), &error);
    assert_int_equal(files.count, 3);
    assert_int_equal(files.tensor_count, 3);
    memcpy(&value, gb_gguf_files_find(&files, "c")->data, sizeof value);
    assert_true(value == 3);
    assert_null(gb_gguf_files_find(&files, "d"));
    gb_gguf_files_close(&files);
    gb_gguf_files_close(&files);
}

static void reads_one_file(void **state) {
    (void)state;
    gb_gguf_files files;
    gumbel_error error;
    gguf_writer w = {.version = 2};
    gguf_add_tensor(&w, "a", GB_GGML_F32, 1, ONE, NULL, 4);
    gguf_write(&w, temporary_path("one.gguf"));
    assert_ok(gb_gguf_files_open(temporary_path("one.gguf"), &files, &error), &error);
    assert_int_equal(files.tensor_count, 1);
    gb_gguf_files_close(&files);
}

static void append_byte(const char *path) {
    FILE *file = fopen(path, "ab");
    assert_non_null(file);
    assert_int_equal(fputc(0, file), 0);
    assert_int_equal(fclose(file), 0);
}

static void refuses_bad_parts(void **state) {
    (void)state;
    const gumbel_status format = GUMBEL_ERROR_FORMAT;
    write_three();
    refuses("m-00002-of-00003.gguf", format,
            "split.no 1 and split.count 3, expected 0 and 3: give the first part");
    remove(temporary_path("m-00003-of-00003.gguf"));
    refuses("m-00001-of-00003.gguf", GUMBEL_ERROR_IO, "m-00003-of-00003.gguf");
    write_part("m-00003-of-00003.gguf", 1, 3, "c", 3);
    refuses("m-00001-of-00003.gguf", format,
            "m-00003-of-00003.gguf: split.no 1 and split.count 3, expected 2 and 3");
    write_part("m-00003-of-00003.gguf", 2, 4, "c", 3);
    refuses("m-00001-of-00003.gguf", format, "split.no 2 and split.count 4, expected 2 and 3");
    write_text(temporary_path("m-00003-of-00003.gguf"), "GGUF");
    refuses("m-00001-of-00003.gguf", format, "m-00003-of-00003.gguf: the header is cut short");
    write_part("m-00003-of-00003.gguf", 2, 3, "c", 3);
    append_byte(temporary_path("m-00003-of-00003.gguf"));
    refuses("m-00001-of-00003.gguf", format, "m-00003-of-00003.gguf: 1 bytes follow the last tensor");
    write_part("other.gguf", 0, 3, "a", 1);
    refuses("other.gguf", format, "one of 3 parts, expected a name that ends in -00001-of-00003.gguf");
    write_part("m-00001-of-65535.gguf", 0, 65535, "a", 1);
    refuses("m-00001-of-65535.gguf", format, "split.count: 65535, expected at most 1024");
    write_part("m-00001-of-00001.gguf", 0, 1, "a", 1);
    refuses("m-00001-of-00001.gguf", format, "1 tensors in all parts, expected the 3 of split.tensors.count");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(reads_parts, start_empty),
        cmocka_unit_test_setup(reads_one_file, start_empty),
        cmocka_unit_test_setup(refuses_bad_parts, start_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
