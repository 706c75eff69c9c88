/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static bool is_zero(const unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (bytes[i])
            return false;
    }
    return true;
}

static void memory_is_zeroed_and_aligned(void **state) {
    (void)state;
    unsigned char *plain = gb_allocate(33, 3), *aligned = gb_allocate_aligned(33, 3);
    assert_true(plain && is_zero(plain, 99));
    assert_true(aligned && is_zero(aligned, 99));
    assert_int_equal((uintptr_t)aligned % 64, 0);
    gb_free(plain);
    gb_free(aligned);
    void *empty = gb_allocate(0, 8), *empty_aligned = gb_allocate_aligned(0, 8);
    assert_non_null(empty);
    assert_non_null(empty_aligned);
    gb_free(empty);
    gb_free(empty_aligned);
    gb_free(NULL);
}

static void sizes_that_overflow_are_refused(void **state) {
    (void)state;
    assert_null(gb_allocate(SIZE_MAX / 2 + 1, 2));
    assert_null(gb_allocate_aligned(SIZE_MAX, SIZE_MAX));
    char *block = gb_allocate(4, 1);
    assert_null(gb_reallocate(block, SIZE_MAX / 8, 16));
    block[3] = 1; /* still ours */
    gb_free(block);
    assert_null(gb_copy_string("x", SIZE_MAX));
}

static void strings_are_copied(void **state) {
    (void)state;
    char *copy = gb_copy_string("gumbel", 3);
    assert_string_equal(copy, "gum");
    gb_free(copy);
}

static void arrays_grow_by_doubling(void **state) {
    (void)state;
    void *items = NULL;
    size_t capacity = 0;
    assert_true(gb_grow(&items, &capacity, 1, sizeof(int)));
    assert_int_equal(capacity, 16);
    ((int *)items)[15] = 7;
    void *before = items;
    assert_true(gb_grow(&items, &capacity, 16, sizeof(int)));
    assert_ptr_equal(items, before);
    assert_true(gb_grow(&items, &capacity, 33, sizeof(int)));
    assert_int_equal(capacity, 64);
    assert_int_equal(((int *)items)[15], 7);
    assert_false(gb_grow(&items, &capacity, SIZE_MAX, sizeof(int)));
    assert_false(gb_grow(&items, &capacity, SIZE_MAX / 2, sizeof(int)));
    assert_int_equal(capacity, 64);
    gb_free(items);
}

static void sizes_are_checked(void **state) {
    (void)state;
    uint64_t result = 5;
    assert_true(gb_add_size(UINT64_MAX - 1, 1, &result) && result == UINT64_MAX);
    assert_false(gb_add_size(UINT64_MAX, 1, &result));
    assert_true(gb_multiply_size(UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1, &result));
    assert_false(gb_multiply_size(UINT64_C(1) << 32, UINT64_C(1) << 32, &result));
    assert_true(gb_align_size(0, 64, &result) && result == 0);
    assert_true(gb_align_size(65, 64, &result) && result == 128);
    assert_true(gb_align_size(UINT64_MAX - 63, 64, &result) && result == UINT64_MAX - 63);
    assert_false(gb_align_size(UINT64_MAX - 62, 64, &result));
}

typedef struct allowance {
    int left;
    size_t asked;
} allowance;

static bool allow(void *user, size_t bytes) {
    allowance *given = user;
    given->asked += bytes;
    return given->left-- > 0;
}

static void the_hook_sees_and_refuses(void **state) {
    (void)state;
    allowance given = {.left = 2};
    gb_set_allocation_hook(allow, &given);
    void *first = gb_allocate(10, 2), *second = gb_allocate_aligned(3, 5), *third = gb_allocate(1, 1);
    void *grown = gb_reallocate(first, 100, 1);
    gb_set_allocation_hook(NULL, NULL);
    assert_true(first && second);
    assert_null(third);
    assert_null(grown);
    assert_int_equal(given.asked, 20 + 15 + 1 + 100);
    gb_free(first);
    gb_free(second);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_aligned),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(strings_are_copied),
        cmocka_unit_test(arrays_grow_by_doubling),
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(the_hook_sees_and_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
