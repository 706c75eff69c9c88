/* SPDX-License-Identifier: Apache-2.0
 *
 * The GGUF reader: what it reads, and that hostile files end in one clear error.
 */
#include "export/checkpoint/ggml_types.h"
#include "export/checkpoint/gguf.h"
#include "support/assertions.h"
#include "support/checkpoints/gguf_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int64_t ONE[] = {1};
static const float VALUES[] = {1, 2, 3, 4, 5, 6};

/* Finishes the file and parses it from an allocation of just its size, so that the sanitizer sees any byte
 * read past it. */
static gumbel_status parse(gguf_writer *writer, gb_gguf *file, uint8_t **bytes, gumbel_error *error) {
    size_t size = 0;
    uint8_t *written = gguf_finish(writer, &size);
    *bytes = malloc(size);
    assert_non_null(*bytes);
    memcpy(*bytes, written, size);
    free(written);
    return gb_gguf_parse("file", *bytes, size, file, error);
}

static void refuses(gguf_writer *writer, gumbel_status status, const char *part) {
    gb_gguf file;
    gumbel_error error;
    uint8_t *bytes = NULL;
    assert_fails(parse(writer, &file, &bytes, &error), status, &error, part);
    assert_null(strchr(error.message, '\n'));
    assert_null(file.keys);
    assert_null(file.tensors);
    free(bytes);
}

/* One of everything. */
static gguf_writer complete_file(uint32_t version) {
    static const char *const texts[] = {"", "two", "\xE2\x96\x81"};
    static const bool bools[] = {true, false};
    static const int32_t integers[] = {-1, 7};
    static const int64_t minus = -5;
    static const double real = 0.1;
    gguf_writer w = {.version = version};
    gguf_add_text(&w, "general.architecture", "gemma4");
    gguf_add_raw(&w, "u8", 0, "\xFF", 1);
    gguf_add_raw(&w, "i8", 1, "\xFF", 1);
    gguf_add_raw(&w, "u16", 2, "\xFE\xFF", 2);
    gguf_add_raw(&w, "i16", 3, "\xFE\xFF", 2);
    gguf_add_u32(&w, "u32", 4000000000u);
    gguf_add_raw(&w, "i32", 5, "\xFF\xFF\xFF\xFF", 4);
    gguf_add_f32(&w, "f32", 1e-6f);
    gguf_add_bool(&w, "bool", true);
    gguf_add_raw(&w, "u64", 10, "\1\0\0\0\1\0\0\0", 8);
    gguf_add_raw(&w, "huge", 10, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8);
    gguf_add_raw(&w, "i64", 11, &minus, 8);
    gguf_add_raw(&w, "f64", 12, &real, 8);
    gguf_add_texts(&w, "texts", texts, 3);
    gguf_add_bools(&w, "bools", bools, 2);
    gguf_add_i32s(&w, "integers", integers, 2);
    gguf_bytes nested = {0}; /* [["a", "bc"], []] */
    put_u32(&nested, 9);
    put_u64(&nested, 2);
    put_u32(&nested, 8);
    put_u64(&nested, 2);
    put_text(&nested, "a");
    put_text(&nested, "bc");
    put_u32(&nested, 8);
    put_u64(&nested, 0);
    gguf_add_raw(&w, "nested", 9, nested.data, nested.size);
    free(nested.data);
    gguf_add_tensor(&w, "matrix", GB_GGML_F32, 2, (const int64_t[]){2, 3}, VALUES, 24);
    gguf_add_tensor(&w, "half", GB_GGML_BF16, 1, (const int64_t[]){5}, NULL, 10);
    gguf_add_tensor(&w, "blocks", GB_GGML_Q4_K, 2, (const int64_t[]){3, 512}, NULL, 864);
    gguf_add_tensor(&w, "cube", GB_GGML_Q8_0, 3, (const int64_t[]){2, 3, 32}, NULL, 204);
    gguf_add_tensor(&w, "other", 19, 1, (const int64_t[]){256}, NULL, 50);
    return w;
}

static int64_t integer_at(const gb_gguf *file, const char *key) {
    const gb_gguf_value *value = gb_gguf_find(file, key);
    int64_t integer = 0;
    assert_non_null(value);
    assert_true(gb_gguf_integer(value, &integer));
    return integer;
}

static double number_at(const gb_gguf *file, const char *key) {
    double number = 0;
    assert_true(gb_gguf_number(gb_gguf_find(file, key), &number));
    return number;
}

static void reads_numbers(const gb_gguf *file) {
    int64_t integer;
    assert_int_equal(integer_at(file, "u8"), 255);
    assert_int_equal(integer_at(file, "i8"), -1);
    assert_int_equal(integer_at(file, "u16"), 65534);
    assert_int_equal(integer_at(file, "i16"), -2);
    assert_int_equal(integer_at(file, "u32"), 4000000000);
    assert_int_equal(integer_at(file, "i32"), -1);
    assert_int_equal(integer_at(file, "bool"), 1);
    assert_int_equal(integer_at(file, "u64"), INT64_C(0x100000001));
    assert_int_equal(integer_at(file, "i64"), -5);
    assert_false(gb_gguf_integer(gb_gguf_find(file, "huge"), &integer));
    assert_false(gb_gguf_integer(gb_gguf_find(file, "f32"), &integer));
    assert_true(number_at(file, "f32") == 1e-6);
    assert_true(number_at(file, "f64") == 0.1);
    assert_null(gb_gguf_find(file, "u3"));
}

static void reads_arrays(const gb_gguf *file) {
    gb_gguf_value item, inner;
    gb_gguf_items items = gb_gguf_items_of(gb_gguf_find(file, "texts"));
    assert_true(gb_gguf_next(&items, &item));
    assert_int_equal(item.size, 0);
    assert_true(gb_gguf_next(&items, &item));
    assert_memory_equal(item.data, "two", 3);
    assert_true(gb_gguf_next(&items, &item));
    assert_false(gb_gguf_next(&items, &item));
    const gb_gguf_value *nested = gb_gguf_find(file, "nested");
    assert_int_equal(nested->item_type, GB_GGUF_ARRAY);
    items = gb_gguf_items_of(nested);
    assert_true(gb_gguf_next(&items, &item));
    assert_int_equal(item.count, 2);
    gb_gguf_items inner_items = gb_gguf_items_of(&item);
    assert_true(gb_gguf_next(&inner_items, &inner) && gb_gguf_next(&inner_items, &inner));
    assert_memory_equal(inner.data, "bc", 2);
    assert_true(gb_gguf_next(&items, &item));
    assert_int_equal(item.count, 0);
    assert_false(gb_gguf_next(&items, &item));
}

static void reads_tensors(const gb_gguf *file) {
    assert_int_equal(file->tensor_count, 5);
    const gb_tensor *matrix = &file->tensors[0], *blocks = &file->tensors[2];
    assert_string_equal(matrix->name, "matrix");
    assert_int_equal(matrix->dtype, GB_F32);
    assert_int_equal(matrix->rank, 2);
    assert_int_equal(matrix->dims[0], 2);
    assert_int_equal(matrix->dims[1], 3);
    assert_memory_equal(matrix->data, VALUES, 24);
    assert_int_equal(file->tensors[1].dtype, GB_BF16);
    assert_ptr_equal(file->tensors[1].data, matrix->data + 32);
    assert_string_equal(blocks->dtype_name, "Q4_K");
    assert_int_equal(blocks->dtype, GB_DTYPE_NONE);
    assert_int_equal(blocks->blocks->number, GB_GGML_Q4_K);
    assert_int_equal(blocks->size, 864);
    assert_int_equal(file->tensors[3].dims[2], 32);
    assert_string_equal(file->tensors[4].dtype_name, "IQ1_S");
}

static void reads_everything(void **state) {
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        gguf_writer writer = complete_file(version);
        gb_gguf file;
        gumbel_error error;
        uint8_t *bytes = NULL;
        assert_ok(parse(&writer, &file, &bytes, &error), &error);
        reads_numbers(&file);
        reads_arrays(&file);
        reads_tensors(&file);
        gb_gguf_close(&file);
        gb_gguf_close(&file);
        free(bytes);
    }
}

static void keeps_the_alignment(void **state) {
    (void)state;
    gguf_writer w = {.version = 3, .alignment = 256};
    gguf_add_u32(&w, "general.alignment", 256);
    gguf_add_tensor(&w, "a", GB_GGML_F32, 1, ONE, VALUES, 4);
    gguf_add_tensor(&w, "b", GB_GGML_F32, 1, ONE, VALUES + 1, 4);
    gb_gguf file;
    gumbel_error error;
    uint8_t *bytes = NULL;
    assert_ok(parse(&w, &file, &bytes, &error), &error);
    assert_int_equal((file.tensors[0].data - bytes) % 256, 0);
    assert_memory_equal(file.tensors[1].data, VALUES + 1, 4);
    gb_gguf_close(&file);
    free(bytes);
}

/* A file without tensors may end right after the last key. */
static void reads_a_vocabulary_alone(void **state) {
    (void)state;
    gguf_writer w = {.version = 3};
    gguf_add_u32(&w, "a", 1);
    gb_gguf file;
    gumbel_error error;
    uint8_t *bytes = NULL;
    assert_ok(parse(&w, &file, &bytes, &error), &error);
    assert_int_equal(file.tensor_count, 0);
    gb_gguf_close(&file);
    free(bytes);
}

static void refuses_other_versions(void **state) {
    (void)state;
    refuses(&(gguf_writer){.version = 1}, GUMBEL_ERROR_UNSUPPORTED, "GGUF version 1; expected 2 or 3");
    refuses(&(gguf_writer){.version = 4}, GUMBEL_ERROR_UNSUPPORTED, "GGUF version 4");
    refuses(&(gguf_writer){.version = 3u << 24}, GUMBEL_ERROR_UNSUPPORTED,
            "GGUF version 3 in big-endian byte order");
}

static void refuses_counts(void **state) {
    (void)state;
    static const uint64_t counts[] = {1, 2, 1u << 20, UINT64_C(1) << 32, UINT64_C(1) << 60, UINT64_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        refuses(&(gguf_writer){.version = 3, .key_count = counts[i]}, GUMBEL_ERROR_FORMAT,
                "keys, expected at most 0");
        refuses(&(gguf_writer){.version = 3, .tensor_count = counts[i]}, GUMBEL_ERROR_FORMAT,
                "tensors, expected at most");
    }
}

static void refuses_names(void **state) {
    (void)state;
    gguf_writer w = {.version = 3};
    gguf_add_u32(&w, "a", 1);
    gguf_add_u32(&w, "b", 1);
    gguf_add_u32(&w, "a", 1);
    refuses(&w, GUMBEL_ERROR_FORMAT, "file: a: the key stands twice");
    w = (gguf_writer){.version = 3};
    gguf_add_u32(&w, "", 1);
    gguf_add_u32(&w, "longer than one", 1);
    refuses(&w, GUMBEL_ERROR_FORMAT, "key 0: a name of 0 bytes");
    w = (gguf_writer){.version = 3, .key_count = 1};
    put_u64(&w.keys, 3);
    put_bytes(&w.keys, "a\0b\4\0\0\0\0\0\0\0", 11);
    refuses(&w, GUMBEL_ERROR_FORMAT, "key 0: a name with a zero byte");
    w = (gguf_writer){.version = 3, .key_count = 1};
    put_u64(&w.keys, UINT64_MAX);
    put_bytes(&w.keys, NULL, 16);
    refuses(&w, GUMBEL_ERROR_FORMAT, "key 0: a name of 18446744073709551615 bytes");
    w = (gguf_writer){.version = 3};
    gguf_add_tensor(&w, "t", GB_GGML_F32, 1, ONE, NULL, 4);
    gguf_add_tensor(&w, "t", GB_GGML_F32, 1, ONE, NULL, 4);
    refuses(&w, GUMBEL_ERROR_FORMAT, "tensor t: the name stands twice");
}

/* An array of depth arrays within arrays, the innermost empty. */
static void add_nested(gguf_writer *w, const char *key, int depth) {
    gguf_bytes bytes = {0};
    for (int i = 1; i < depth; i++) {
        put_u32(&bytes, 9);
        put_u64(&bytes, 1);
    }
    put_u32(&bytes, 4);
    put_u64(&bytes, 0);
    gguf_add_raw(w, key, 9, bytes.data, bytes.size);
    free(bytes.data);
}

static void refuses_values(void **state) {
    (void)state;
    gguf_writer w = {.version = 3};
    gguf_add_raw(&w, "k", 13, "\0\0\0\0", 4);
    refuses(&w, GUMBEL_ERROR_FORMAT, "file: k: a value of type 13, expected 0 to 12");
    w = (gguf_writer){.version = 3};
    gguf_add_raw(&w, "k", 9, "\377\0\0\0\0\0\0\0\0\0\0\0", 12);
    refuses(&w, GUMBEL_ERROR_FORMAT, "k: an array of type 255");
    w = (gguf_writer){.version = 3};
    gguf_add_raw(&w, "k", 9, "\12\0\0\0\1\0\0\0\0\0\0\40", 12); /* 2^61 + 1 items of 8 bytes */
    refuses(&w, GUMBEL_ERROR_FORMAT, "k: an array of 2305843009213693953 items of uint64");
    w = (gguf_writer){.version = 3};
    gguf_add_raw(&w, "k", 9, "\10\0\0\0\377\377\377\377\377\377\377\377", 12);
    refuses(&w, GUMBEL_ERROR_FORMAT, "k: the file ends within the value");
    w = (gguf_writer){.version = 3};
    gguf_add_raw(&w, "k", 8, "\377\377\377\377\377\377\377\377", 8);
    refuses(&w, GUMBEL_ERROR_FORMAT, "k: the file ends within the value");
    w = (gguf_writer){.version = 3};
    add_nested(&w, "k", 5);
    refuses(&w, GUMBEL_ERROR_FORMAT, "k: arrays within arrays, expected at most 4");
    w = (gguf_writer){.version = 3};
    add_nested(&w, "k", 2000);
    refuses(&w, GUMBEL_ERROR_FORMAT, "k: arrays within arrays");
    w = (gguf_writer){.version = 3};
    add_nested(&w, "k", 4);
    gb_gguf file;
    gumbel_error error;
    uint8_t *bytes = NULL;
    assert_ok(parse(&w, &file, &bytes, &error), &error);
    gb_gguf_close(&file);
    free(bytes);
}

static void refuses_alignments(void **state) {
    (void)state;
    static const uint32_t bad[] = {0, 3, 48, 1u << 21, 1u << 31};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        gguf_writer w = {.version = 3};
        gguf_add_u32(&w, "general.alignment", bad[i]);
        refuses(&w, GUMBEL_ERROR_FORMAT, "general.alignment: ");
    }
    gguf_writer w = {.version = 3};
    gguf_add_text(&w, "general.alignment", "32");
    refuses(&w, GUMBEL_ERROR_FORMAT, "general.alignment: expected a uint32, found a value of type string");
}

/* One tensor with this description, and data_size bytes of data. */
static void refuses_tensor(uint32_t type, uint32_t rank, const uint64_t *sizes, uint64_t offset,
                           size_t data_size, gumbel_status status, const char *part) {
    gguf_writer w = {.version = 3, .tensor_count = 1};
    put_text(&w.tensors, "t");
    put_u32(&w.tensors, rank);
    for (uint32_t i = 0; i < rank && sizes; i++)
        put_u64(&w.tensors, sizes[i]);
    put_u32(&w.tensors, type);
    put_u64(&w.tensors, offset);
    put_bytes(&w.data, NULL, data_size);
    refuses(&w, status, part);
}

static void refuses_tensors(void **state) {
    (void)state;
    const gumbel_status format = GUMBEL_ERROR_FORMAT;
    const uint64_t four[] = {4}, odd[] = {33}, many[] = {UINT64_C(1) << 32, UINT64_C(1) << 31, 1, 1},
                   negative[] = {UINT64_MAX}, large[] = {UINT64_C(1) << 61};
    refuses_tensor(0, 1, four, 0, 15, format, "tensor t: 16 bytes from 64 on, in a file of 79");
    refuses_tensor(0, 1, four, 32, 64, format, "tensor t: its data begins at 32, expected 0");
    refuses_tensor(0, 1, four, UINT64_MAX, 64, format, "tensor t: its data begins at 18446744073709551615");
    refuses_tensor(0, 5, NULL, 0, 64, format, "tensor t: 5 dimensions, expected at most 4");
    refuses_tensor(0, UINT32_MAX, NULL, 0, 64, format, "tensor t: 4294967295 dimensions");
    refuses_tensor(0, 4, many, 0, 16, format, "tensor t: more than 2^63 elements");
    refuses_tensor(0, 1, negative, 0, 16, format, "tensor t: more than 2^63 elements");
    refuses_tensor(28, 1, large, 0, 16, format, "tensor t: more than 2^64 bytes");
    refuses_tensor(2, 1, odd, 0, 64, format, "rows of 33 elements, expected a multiple of the 32");
    refuses_tensor(4, 1, four, 0, 64, GUMBEL_ERROR_UNSUPPORTED, "tensor t: type 4, which");
    refuses_tensor(99, 1, four, 0, 64, GUMBEL_ERROR_UNSUPPORTED, "tensor t: type 99, which");
}

static void refuses_every_truncation(void **state) {
    (void)state;
    size_t size = 0;
    gguf_writer writer = complete_file(3);
    uint8_t *bytes = gguf_finish(&writer, &size);
    for (size_t length = 0; length < size - 14; length++) { /* 14 bytes after the last tensor are padding */
        gb_gguf file;
        gumbel_error error;
        uint8_t *cut = malloc(length + 1);
        assert_non_null(cut);
        memcpy(cut, bytes, length);
        cut = realloc(cut, length ? length : 1);
        assert_non_null(cut);
        gumbel_status status = gb_gguf_parse("file", cut, length, &file, &error);
        if (status == GUMBEL_OK)
            fail_msg("the first %zu of %zu bytes are accepted", length, size);
        assert_non_null(strstr(error.message, "file: "));
        free(cut);
    }
    free(bytes);
}

static void refuses_what_follows(void **state) {
    (void)state;
    size_t size = 0;
    gguf_writer writer = complete_file(3);
    uint8_t *bytes = gguf_finish(&writer, &size), *twice = malloc(2 * size);
    assert_non_null(twice);
    memcpy(twice, bytes, size);
    memcpy(twice + size, bytes, size);
    for (size_t more = 0; more <= size; more += more == 0 ? 1 : size - 1) {
        gb_gguf file;
        gumbel_error error;
        char part[96];
        snprintf(part, sizeof part, "file: %zu bytes follow the last tensor, whose data ends at %zu", more,
                 size);
        gumbel_status status = gb_gguf_parse("file", twice, size + more, &file, &error);
        if (more == 0)
            assert_ok(status, &error);
        else
            assert_fails(status, GUMBEL_ERROR_FORMAT, &error, part);
        gb_gguf_close(&file);
    }
    free(twice);
    free(bytes);
}

/* A flipped bit may give another valid file; whatever is accepted lies inside. */
static void survives_every_flipped_bit(void **state) {
    (void)state;
    size_t size = 0, accepted = 0;
    gguf_writer writer = complete_file(3);
    uint8_t *bytes = gguf_finish(&writer, &size);
    for (size_t bit = 0; bit < 8 * (size - 1200); bit++) {
        gb_gguf file;
        gumbel_error error;
        bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        if (gb_gguf_parse("file", bytes, size, &file, &error) == GUMBEL_OK) {
            accepted++;
            for (size_t i = 0; i < file.tensor_count; i++)
                assert_true(file.tensors[i].data >= bytes &&
                            file.tensors[i].data + file.tensors[i].size <= bytes + size);
            gb_gguf_close(&file);
        }
        bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    assert_true(accepted > 0 && accepted < 8 * size);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_everything),         cmocka_unit_test(keeps_the_alignment),
        cmocka_unit_test(reads_a_vocabulary_alone), cmocka_unit_test(refuses_other_versions),
        cmocka_unit_test(refuses_counts),           cmocka_unit_test(refuses_names),
        cmocka_unit_test(refuses_values),           cmocka_unit_test(refuses_alignments),
        cmocka_unit_test(refuses_tensors),          cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(refuses_what_follows),     cmocka_unit_test(survives_every_flipped_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
