/* SPDX-License-Identifier: Apache-2.0
 *
 * The safetensors reader: what it reads, and that hostile files end in one clear error.
 */
#include "export/checkpoint/safetensors.h"
#include "support/assertions.h"
#include "support/checkpoints/safetensors_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TENSOR(shape, begin, end)                                                                            \
    "{\"w\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}}"

/* Parses a file of this header and data_size zero bytes from an allocation of just its size, so that the
 * sanitizer sees any byte read past it. */
static gumbel_status parse(const char *header, size_t data_size, gb_safetensors *file, gumbel_error *error,
                           uint8_t **bytes) {
    size_t size = 0;
    *bytes = make_safetensors(header, data_size, &size);
    return gb_safetensors_parse("file", *bytes, size, file, error);
}

static void refuses(const char *header, size_t data_size, const char *part) {
    gb_safetensors file;
    gumbel_error error;
    uint8_t *bytes = NULL;
    assert_fails(parse(header, data_size, &file, &error, &bytes), GUMBEL_ERROR_FORMAT, &error, part);
    assert_null(file.tensors);
    free(bytes);
}

static void reads_tensors(void **state) {
    (void)state;
    gb_safetensors file;
    gumbel_error error;
    uint8_t *bytes = NULL;
    const char *header = "{\"__metadata__\":{\"format\":\"pt\"},"
                         "\"late\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[8,20]},"
                         "\"early\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                         "\"scalar\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[20,22]},"
                         "\"empty\":{\"dtype\":\"F32\",\"shape\":[0,4],\"data_offsets\":[22,22]},"
                         "\"other\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[22,30]},"
                         "\"future\":{\"dtype\":\"Q3\",\"shape\":[5],\"data_offsets\":[22,24]}}   ";
    assert_ok(parse(header, 30, &file, &error, &bytes), &error);
    assert_int_equal(file.tensor_count, 6);
    const gb_tensor *late = &file.tensors[0];
    assert_string_equal(late->name, "late");
    assert_int_equal(late->dtype, GB_BF16);
    assert_int_equal(late->rank, 2);
    assert_int_equal(late->dims[0], 2);
    assert_int_equal(late->dims[1], 3);
    assert_ptr_equal(late->data, bytes + 8 + strlen(header) + 8);
    assert_int_equal(late->size, 12);
    assert_int_equal(file.tensors[2].rank, 0);
    assert_int_equal(file.tensors[3].size, 0);
    assert_int_equal(file.tensors[4].dtype, GB_DTYPE_NONE);
    assert_string_equal(file.tensors[5].dtype_name, "Q3");
    assert_int_equal(file.tensors[5].dtype, GB_DTYPE_NONE);
    gb_safetensors_close(&file);
    gb_safetensors_close(&file);
    free(bytes);
}

static void refuses_bad_headers(void **state) {
    (void)state;
    refuses("", 0, "header");
    refuses("[]", 0, "expected a JSON object");
    refuses("{\"w\":", 0, "header");
    refuses("{\"w\":1}", 0, "tensor w: expected an object");
    refuses("{\"w\":{}}", 0, "dtype");
    refuses("{\"w\":{\"dtype\":3}}", 0, "dtype");
    refuses("{\"w\":{\"dtype\":\"F32\"}}", 0, "shape");
    refuses("{\"w\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "data_offsets");
    refuses(TENSOR("[1]", "0", "4") "x", 4, "header");
    refuses("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
            "\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
            4, "duplicate");
    refuses("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "duplicate");
}

/* A hostile name cannot break the message's one line. */
static void keeps_messages_on_one_line(void **state) {
    (void)state;
    refuses("{\"a\\nb\\u001b[31m\":1}", 0, "tensor a\\nb\\x1b[31m: expected an object");
}

static void refuses_bad_shapes(void **state) {
    (void)state;
    refuses(TENSOR("1", "0", "4"), 4, "shape");
    refuses(TENSOR("[-1]", "0", "4"), 4, "0 or more");
    refuses(TENSOR("[1.0]", "0", "4"), 4, "0 or more");
    refuses(TENSOR("[\"1\"]", "0", "4"), 4, "0 or more");
    refuses(TENSOR("[null]", "0", "4"), 4, "0 or more");
    refuses(TENSOR("[2]", "0", "4"), 4, "expected 2 elements of F32");
    refuses(TENSOR("[1,1,1,1,1,1,1,1,1]", "0", "4"), 4, "9 dimensions");
    refuses(TENSOR("[4294967296,4294967296]", "0", "4"), 4, "2^64");
    refuses(TENSOR("[4611686018427387904]", "0", "0"), 4, "elements"); /* times 4 is 2^64 */
    refuses(TENSOR("[9223372036854775808]", "0", "4"), 4, "header");
}

static void refuses_bad_offsets(void **state) {
    (void)state;
    refuses(TENSOR("[1]", "0", "5"), 4, "data_offsets");
    refuses(TENSOR("[1]", "4", "0"), 4, "data_offsets");
    refuses(TENSOR("[1]", "-4", "0"), 4, "data_offsets");
    refuses(TENSOR("[1]", "4", "8"), 4, "within the 4 bytes of data: the file is cut short");
    refuses(TENSOR("[1]", "0", "9223372036854775807"), 4, "data_offsets");
    refuses(TENSOR("[1]", "0.0", "4"), 4, "two integers");
    refuses("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "two integers");
    refuses("{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":{}}}", 4, "two integers");
}

static void refuses_bad_lengths(void **state) {
    (void)state;
    static const uint64_t lengths[] = {3, 100000001, UINT64_MAX, UINT64_MAX - 7, (uint64_t)1 << 63};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        uint8_t bytes[10] = {[8] = '{', [9] = '}'};
        for (size_t j = 0; j < 8; j++)
            bytes[j] = (uint8_t)(lengths[i] >> (8 * j));
        gb_safetensors file;
        gumbel_error error;
        assert_fails(gb_safetensors_parse("file", bytes, sizeof bytes, &file, &error), GUMBEL_ERROR_FORMAT,
                     &error, "header of");
    }
}

/* Every prefix of a good file is refused: its last tensor ends at the last byte. */
static void refuses_every_truncation(void **state) {
    (void)state;
    size_t size = 0;
    uint8_t *whole = make_safetensors(TENSOR("[2,2]", "0", "16"), 16, &size);
    for (size_t length = 0; length < size; length++) {
        uint8_t *bytes = malloc(length ? length : 1);
        memcpy(bytes, whole, length);
        gb_safetensors file;
        gumbel_error error;
        assert_fails(gb_safetensors_parse("file", bytes, length, &file, &error), GUMBEL_ERROR_FORMAT, &error,
                     "file: ");
        free(bytes);
    }
    free(whole);
}

/* A flipped bit may leave a readable file, but never one with a tensor outside of it. */
static void survives_every_bit_flip(void **state) {
    (void)state;
    size_t size = 0;
    uint8_t *bytes = make_safetensors(TENSOR("[2,2]", "0", "16"), 16, &size);
    for (size_t bit = 0; bit < size * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        gb_safetensors file;
        gumbel_error error;
        if (gb_safetensors_parse("file", bytes, size, &file, &error) == GUMBEL_OK) {
            for (size_t i = 0; i < file.tensor_count; i++) {
                assert_true(file.tensors[i].data >= bytes);
                assert_true(file.tensors[i].size <= size - (size_t)(file.tensors[i].data - bytes));
            }
            gb_safetensors_close(&file);
        }
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_tensors),           cmocka_unit_test(refuses_bad_headers),
        cmocka_unit_test(refuses_bad_shapes),      cmocka_unit_test(refuses_bad_offsets),
        cmocka_unit_test(refuses_bad_lengths),     cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(survives_every_bit_flip), cmocka_unit_test(keeps_messages_on_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
