/* SPDX-License-Identifier: Apache-2.0 */
#include "base/versioned.h"
#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* Three versions of one structure; the library's is the second. */
typedef struct first {
    size_t size;
    int64_t a;
} first;

typedef struct second {
    size_t size;
    int64_t a, b;
} second;

typedef struct third {
    size_t size;
    int64_t a, b, c;
} third;

static gumbel_error error;

static gumbel_status read_it(const void *given, second *ours) {
    return gb_read_versioned(given, "thing", ours, sizeof *ours, &error);
}

static void what_a_shorter_one_lacks_is_zero(void **state) {
    (void)state;
    second ours = {.b = 9};
    const first given = {sizeof given, 3};
    assert_ok(read_it(&given, &ours), &error);
    assert_int_equal(ours.size, sizeof ours);
    assert_int_equal(ours.a, 3);
    assert_int_equal(ours.b, 0);
}

static void null_gives_zeros(void **state) {
    (void)state;
    second ours = {.a = 9, .b = 9};
    assert_ok(read_it(NULL, &ours), &error);
    assert_int_equal(ours.size, sizeof ours);
    assert_true(ours.a == 0 && ours.b == 0);
}

/* A field of a newer version is taken only where it asks for nothing. */
static void a_longer_one_is_taken_where_its_end_is_zero(void **state) {
    (void)state;
    second ours;
    third given = {.size = sizeof given, .a = 3, .b = 4};
    assert_ok(read_it(&given, &ours), &error);
    assert_true(ours.size == sizeof ours && ours.a == 3 && ours.b == 4);
    given.c = (int64_t)1 << 56;
    assert_fails(read_it(&given, &ours), GUMBEL_ERROR_UNSUPPORTED, &error, "thing: a field at byte 31");
}

static void a_size_that_is_not_set_is_refused(void **state) {
    (void)state;
    second ours;
    for (size_t size = 0; size < sizeof size; size++) {
        const second given = {.size = size, .a = 3};
        assert_fails(read_it(&given, &ours), GUMBEL_ERROR_ARGUMENT, &error, "thing: the field size");
        assert_fails(gb_check_versioned(&given, "thing", &error), GUMBEL_ERROR_ARGUMENT, &error, "size");
    }
    assert_fails(gb_check_versioned(NULL, "thing", &error), GUMBEL_ERROR_ARGUMENT, &error, "thing: NULL");
}

/* What follows a shorter structure is somebody else's; what ours lacks of a longer one is zero. */
static void writing_keeps_to_the_callers_size(void **state) {
    (void)state;
    const second ours = {sizeof ours, 3, 4};
    third given = {.size = sizeof(first), .b = 77, .c = 78};
    gb_write_versioned(&ours, sizeof ours, &given);
    assert_true(given.size == sizeof(first) && given.a == 3 && given.b == 77 && given.c == 78);
    given = (third){.size = sizeof given, .c = 78};
    gb_write_versioned(&ours, sizeof ours, &given);
    assert_true(given.size == sizeof given && given.a == 3 && given.b == 4 && given.c == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_shorter_one_lacks_is_zero),
        cmocka_unit_test(null_gives_zeros),
        cmocka_unit_test(a_longer_one_is_taken_where_its_end_is_zero),
        cmocka_unit_test(a_size_that_is_not_set_is_refused),
        cmocka_unit_test(writing_keeps_to_the_callers_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
