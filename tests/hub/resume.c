/* SPDX-License-Identifier: Apache-2.0
 *
 * A blob that arrives in ranges, in any order and with interruptions, as src/hub/partial.h keeps it.
 */
#include "hub/partial.h"
#include "support/assertions.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIZE = 5 * HUB_CHUNK + 77 };
static unsigned char bytes[SIZE];
static hub_file file;
static gumbel_error error;

/* A blob's path; valid until the next call. */
static const char *blob_path(const char *ending) {
    static char path[HUB_PATH];
    snprintf(path, sizeof path, "%s/%.64s%s", temporary_directory(), file.hash, ending);
    return path;
}

static int set_up(void **state) {
    (void)state;
    static char name[] = "a.gguf";
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (unsigned char)(i * 2654435761U >> 13);
    file = (hub_file){.name = name, .size = SIZE};
    memset(file.hash, '0', HUB_SHA256);
    hub_hash *hash = hub_hash_begin(&file);
    assert_true(hash && hub_hash_add(hash, bytes, SIZE));
    hub_hash_end(hash, file.hash);
    empty_temporary_directory();
    return 0;
}

static void open_partial(hub_partial *partial) {
    assert_ok(hub_partial_open(temporary_directory(), &file, partial, &error), &error);
}

static void write_to(hub_partial *partial, hub_range *range, uint64_t end) {
    assert_ok(hub_partial_write(partial, range, bytes + range->offset, (size_t)(end - range->offset), &error),
              &error);
}

static void finish(hub_partial *partial) {
    bool is_done = false;
    while (!is_done)
        assert_ok(hub_partial_hash(partial, 2, &is_done, &error), &error);
    assert_ok(hub_partial_finish(partial, &error), &error);
    struct stat information;
    assert_int_equal(stat(blob_path(""), &information), 0);
    assert_int_equal(information.st_size, SIZE);
    assert_int_not_equal(access(blob_path(HUB_INCOMPLETE), F_OK), 0);
    hub_partial_close(partial);
}

/* What one process left is kept but for the chunk that it did not finish. */
static void goes_on_after_an_end(void **state) {
    (void)state;
    hub_partial partial;
    hub_range first, second, third;
    open_partial(&partial);
    assert_true(hub_partial_claim(&partial, 2, &first) && hub_partial_claim(&partial, 3, &second));
    assert_true(second.offset == 2 * HUB_CHUNK && second.end == 5 * HUB_CHUNK);
    assert_true(hub_partial_claim(&partial, 9, &third));
    assert_true(third.offset == 5 * HUB_CHUNK && third.end == SIZE);
    assert_false(hub_partial_claim(&partial, 9, &(hub_range){0}));
    write_to(&partial, &second, 2 * HUB_CHUNK + 10);
    write_to(&partial, &second, 4 * HUB_CHUNK - 1);
    write_to(&partial, &third, SIZE);
    assert_true(partial.bytes == HUB_CHUNK + 77);
    hub_partial_close(&partial);
    assert_true(hub_partial_bytes_there(temporary_directory(), &file) == HUB_CHUNK + 77);
    open_partial(&partial);
    assert_true(partial.is_resumed && partial.bytes == HUB_CHUNK + 77);
    assert_true(hub_partial_claim(&partial, 9, &first) && first.offset == 0 && first.end == 2 * HUB_CHUNK);
    assert_true(hub_partial_claim(&partial, 9, &second) && second.offset == 3 * HUB_CHUNK);
    write_to(&partial, &second, second.end);
    write_to(&partial, &first, first.end);
    finish(&partial);
}

/* The end came between the cut to its size and the new name. */
static void a_complete_file_keeps_its_bytes(void **state) {
    (void)state;
    hub_partial partial;
    write_file(blob_path(HUB_INCOMPLETE), bytes, SIZE);
    open_partial(&partial);
    assert_true(partial.bytes == SIZE);
    finish(&partial);
}

static void a_file_of_another_size_begins_anew(void **state) {
    (void)state;
    hub_partial partial;
    write_file(blob_path(HUB_INCOMPLETE), bytes, SIZE - 1);
    open_partial(&partial);
    assert_true(partial.bytes == 0 && !partial.is_resumed);
    hub_partial_close(&partial);
}

static void what_is_given_back_is_claimed_again(void **state) {
    (void)state;
    hub_partial partial;
    hub_range range, again;
    open_partial(&partial);
    assert_true(hub_partial_claim(&partial, 3, &range));
    write_to(&partial, &range, HUB_CHUNK + 5);
    hub_partial_release(&partial, 0, &range);
    assert_true(hub_partial_claim(&partial, 9, &again) && again.offset == HUB_CHUNK && again.end == SIZE);
    partial.is_whole = true;
    assert_false(hub_partial_claim(&partial, 9, &range));
    hub_partial_release(&partial, HUB_CHUNK, &again);
    assert_true(hub_partial_claim(&partial, 9, &range) && range.offset == 0 && range.end == SIZE);
    write_to(&partial, &range, SIZE);
    finish(&partial);
}

static void a_wrong_hash_leaves_nothing(void **state) {
    (void)state;
    hub_partial partial;
    bool is_done;
    write_file(blob_path(HUB_INCOMPLETE), bytes, SIZE);
    file.hash[0] = file.hash[0] == '0' ? '1' : '0';
    write_file(blob_path(HUB_INCOMPLETE), bytes, SIZE);
    open_partial(&partial);
    assert_ok(hub_partial_hash(&partial, 99, &is_done, &error), &error);
    assert_true(is_done);
    assert_fails(hub_partial_finish(&partial, &error), GUMBEL_ERROR_FORMAT, &error,
                 "a.gguf: what came has the SHA-256");
    assert_int_not_equal(access(blob_path(""), F_OK), 0);
    assert_int_not_equal(access(blob_path(HUB_INCOMPLETE), F_OK), 0);
    hub_partial_close(&partial);
}

static void knows_the_hashes_of_git(void **state) {
    (void)state;
    char digits[HUB_HASH], text[] = "hello\n";
    hub_file small = {.name = text, .size = 6};
    memset(small.hash, '0', HUB_SHA1);
    hub_hash *hash = hub_hash_begin(&small);
    assert_true(hash && hub_hash_add(hash, text, 6));
    hub_hash_end(hash, digits);
    assert_string_equal(digits, "ce013625030ba8dba906f756967f9e9ca394464a");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(goes_on_after_an_end, set_up),
        cmocka_unit_test_setup(a_complete_file_keeps_its_bytes, set_up),
        cmocka_unit_test_setup(a_file_of_another_size_begins_anew, set_up),
        cmocka_unit_test_setup(what_is_given_back_is_claimed_again, set_up),
        cmocka_unit_test_setup(a_wrong_hash_leaves_nothing, set_up),
        cmocka_unit_test(knows_the_hashes_of_git),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
