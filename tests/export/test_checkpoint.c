/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoint directories: single files, shards with an index, hostile indices, tensor look-up.
 */
#include "export/checkpoint/checkpoint.h"
#include "support/assertions.h"
#include "support/checkpoints/safetensors_writer.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const float VALUES[] = {1, 2, 3, 4, 5, 6};

static test_tensor tensor(const char *name, const char *dtype, int64_t rows, int64_t columns, size_t size) {
    return (test_tensor){
        .name = name, .dtype = dtype, .rank = 2, .dims = {rows, columns}, .data = VALUES, .size = size};
}

static int start_empty(void **state) {
    (void)state;
    empty_temporary_directory();
    return 0;
}

static void write_one(const char *file, const char *name) {
    test_tensor only = tensor(name, "F32", 2, 3, 24);
    write_safetensors(temporary_path(file), &only, 1);
}

static void reads_single_file(void **state) {
    (void)state;
    test_tensor tensors[] = {tensor("b", "F32", 2, 3, 24), tensor("a", "BF16", 2, 2, 8),
                             tensor("c", "I32", 1, 2, 8)};
    write_safetensors(temporary_path("model.safetensors"), tensors, 3);
    gb_checkpoint *checkpoint = NULL;
    const gb_tensor *found = NULL;
    gumbel_error error;
    assert_ok(gb_checkpoint_open(temporary_directory(), &checkpoint, &error), &error);
    assert_int_equal(gb_checkpoint_count(checkpoint), 3);
    assert_string_equal(gb_checkpoint_at(checkpoint, 0)->name, "a");
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(gb_checkpoint_index(checkpoint, gb_checkpoint_at(checkpoint, i)), i);
    assert_int_equal(gb_checkpoint_index(checkpoint, &(gb_tensor){.name = "d"}), 3);
    assert_int_equal(gb_checkpoint_index(checkpoint, &(gb_tensor){.name = "b"}), 3);
    assert_null(gb_checkpoint_find(checkpoint, "d"));
    assert_ok(gb_checkpoint_get(checkpoint, "b", 2, (const int64_t[]){2, 3}, &found, &error), &error);
    assert_memory_equal(found->data, VALUES, sizeof VALUES);
    assert_fails(gb_checkpoint_get(checkpoint, "b", 2, (const int64_t[]){3, 2}, &found, &error),
                 GUMBEL_ERROR_FORMAT, &error, "tensor b has shape [2, 3], expected [3, 2]");
    assert_fails(gb_checkpoint_get(checkpoint, "b", 1, (const int64_t[]){6}, &found, &error),
                 GUMBEL_ERROR_FORMAT, &error, "tensor b has shape [2, 3], expected [6]");
    assert_fails(gb_checkpoint_get(checkpoint, "d", 2, (const int64_t[]){3, 2}, &found, &error),
                 GUMBEL_ERROR_FORMAT, &error, "tensor d is missing, expected shape [3, 2]");
    assert_fails(gb_checkpoint_get(checkpoint, "c", 2, (const int64_t[]){1, 2}, &found, &error),
                 GUMBEL_ERROR_UNSUPPORTED, &error, "tensor c has dtype I32");
    gb_checkpoint_close(checkpoint);
}

static void reads_shards(void **state) {
    (void)state;
    write_one("first.safetensors", "a");
    test_tensor second[] = {tensor("b", "F32", 2, 3, 24), tensor("a", "F32", 1, 1, 4),
                            tensor("unlisted", "F32", 2, 3, 24)};
    write_safetensors(temporary_path("second.safetensors"), second, 3);
    write_text(temporary_path("model.safetensors.index.json"),
               "{\"metadata\":{},\"weight_map\":{\"b\":\"second.safetensors\",\"a\":\"first.safetensors\"}}");
    gb_checkpoint *checkpoint = NULL;
    const gb_tensor *found = NULL;
    gumbel_error error;
    assert_ok(gb_checkpoint_open(temporary_directory(), &checkpoint, &error), &error);
    assert_int_equal(gb_checkpoint_count(checkpoint), 2);
    assert_ok(gb_checkpoint_get(checkpoint, "a", 2, (const int64_t[]){2, 3}, &found, &error), &error);
    assert_ok(gb_checkpoint_get(checkpoint, "b", 2, (const int64_t[]){2, 3}, &found, &error), &error);
    gb_checkpoint_close(checkpoint);
}

static void open_parsed(const char *name, test_tensor only, gb_checkpoint **checkpoint) {
    gumbel_error error;
    empty_temporary_directory();
    write_safetensors(temporary_path("model.safetensors"), &only, 1);
    assert_ok(gb_checkpoint_open(temporary_directory(), checkpoint, &error), &error);
    assert_non_null(gb_checkpoint_find(*checkpoint, name));
}

/* The other's tensors are found under their new names; what stands twice is refused. */
static void joins_two(void **state) {
    (void)state;
    gb_checkpoint *first = NULL, *other = NULL, *both = NULL, *none = NULL;
    const gb_tensor *found = NULL;
    gumbel_error error;
    open_parsed("b.weight", tensor("b.weight", "F32", 2, 3, 24), &first);
    open_parsed("weight", tensor("weight", "F32", 3, 2, 24), &other);
    assert_ok(gb_checkpoint_join(first, "a.", other, &both, &error), &error);
    assert_int_equal(gb_checkpoint_count(both), 2);
    assert_string_equal(gb_checkpoint_at(both, 0)->name, "a.weight");
    assert_string_equal(gb_checkpoint_at(both, 1)->name, "b.weight");
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(gb_checkpoint_index(both, gb_checkpoint_at(both, i)), i);
    assert_ok(gb_checkpoint_get(both, "a.weight", 2, (const int64_t[]){3, 2}, &found, &error), &error);
    assert_memory_equal(found->data, VALUES, sizeof VALUES);
    assert_null(gb_checkpoint_find(both, "weight"));
    assert_fails(gb_checkpoint_join(first, "b.", other, &none, &error), GUMBEL_ERROR_FORMAT, &error,
                 "tensor b.weight stands twice");
    assert_null(none);
    gb_checkpoint_close(both);
    gb_checkpoint_close(other);
    gb_checkpoint_close(first);
}

static void refuses_index(const char *index, gumbel_status status, const char *part) {
    gb_checkpoint *checkpoint = NULL;
    gumbel_error error;
    write_text(temporary_path("model.safetensors.index.json"), index);
    assert_fails(gb_checkpoint_open(temporary_directory(), &checkpoint, &error), status, &error, part);
    assert_null(checkpoint);
}

static void refuses_bad_indices(void **state) {
    (void)state;
    write_one("one.safetensors", "a");
    const gumbel_status format = GUMBEL_ERROR_FORMAT;
    refuses_index("", format, "index.json: line");
    refuses_index("[]", format, "expected a JSON object");
    refuses_index("{}", format, "weight_map");
    refuses_index("{\"weight_map\":[]}", format, "weight_map");
    refuses_index("{\"weight_map\":{\"a\":1}}", format, "weight_map: a: expected the name of a file");
    refuses_index("{\"weight_map\":{\"a\":\"../one.safetensors\"}}", format, "../one.safetensors");
    refuses_index("{\"weight_map\":{\"a\":\"/etc/passwd\"}}", format, "/etc/passwd");
    refuses_index("{\"weight_map\":{\"a\":\"\"}}", format, "weight_map: a");
    refuses_index("{\"weight_map\":{\"a\":\"..\"}}", format, "weight_map: a");
    refuses_index("{\"weight_map\":{\"a\":\"none.safetensors\"}}", GUMBEL_ERROR_IO, "none.safetensors");
    refuses_index("{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"one.safetensors\"}}", format,
                  "tensor b is not in one.safetensors");
    refuses_index("{\"weight_map\":{\"a\":\"one.safetensors\",\"a\":\"one.safetensors\"}}", format,
                  "duplicate");
}

static void refuses_every_index_truncation(void **state) {
    (void)state;
    write_one("one.safetensors", "a");
    const char *index = "{\"weight_map\":{\"a\":\"one.safetensors\"}}";
    for (size_t length = 0; length < strlen(index); length++) {
        char cut[64];
        snprintf(cut, sizeof cut, "%.*s", (int)length, index);
        refuses_index(cut, GUMBEL_ERROR_FORMAT, "index.json");
    }
}

static void refuses_directories_without_weights(void **state) {
    (void)state;
    gb_checkpoint *checkpoint = NULL;
    gumbel_error error;
    assert_fails(gb_checkpoint_open(temporary_directory(), &checkpoint, &error), GUMBEL_ERROR_IO, &error,
                 "model.safetensors");
    write_text(temporary_path("model.safetensors"), "");
    assert_fails(gb_checkpoint_open(temporary_directory(), &checkpoint, &error), GUMBEL_ERROR_FORMAT, &error,
                 "model.safetensors: 0 bytes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(reads_single_file, start_empty),
        cmocka_unit_test_setup(reads_shards, start_empty),
        cmocka_unit_test(joins_two),
        cmocka_unit_test_setup(refuses_bad_indices, start_empty),
        cmocka_unit_test_setup(refuses_every_index_truncation, start_empty),
        cmocka_unit_test_setup(refuses_directories_without_weights, start_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
