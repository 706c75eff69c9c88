/* SPDX-License-Identifier: Apache-2.0
 *
 * A batch's arrays, made from roles.def: where they lie, what a row's neutral values are, and where the
 * arrays of rows begin after some of them are skipped.
 */
#include "backends/batch/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { TOKENS = 5, ROWS = 3, BIASES = 4, VOCABULARY = 70, WORDS = 3 };

static gb_batch_arrays arrays;
static gb_batch batch;

static int reserve(void **state) {
    (void)state;
    const gb_metadata metadata = {.max_bias = BIASES, .vocab_size = VOCABULARY};
    batch = (gb_batch){.token_count = TOKENS, .row_count = ROWS};
    if (!gb_batch_arrays_reserve(&metadata, TOKENS, ROWS, &arrays))
        return -1;
    gb_batch_use(&arrays, &batch);
    return 0;
}

static int release(void **state) {
    (void)state;
    gb_batch_arrays_free(&arrays);
    return 0;
}

/* Elements of the input's array, and of one row of it (0: of tokens). */
static size_t count_of(const gb_role_info *role, size_t *of_row) {
    *of_row = role->dims[0] == 'N' ? 0 : role->dims[1] == 'L' ? BIASES : role->dims[1] == 'W' ? WORDS : 1;
    return role->dims[0] == 'N' ? TOKENS : ROWS * *of_row;
}

/* Each input has an array of its own, which can be written to its end. */
static void arrays_do_not_overlap(void **state) {
    (void)state;
    for (uint32_t number = 1; number < GB_ROLE_LIMIT; number++) {
        const gb_role_info *role = gb_role_find(number);
        size_t of_row;
        if (role && role->direction == GB_ROLE_INPUT)
            memset((void *)(uintptr_t)gb_batch_input(&batch, role->role), (int)number,
                   count_of(role, &of_row) * gb_dtype_size(role->dtype));
    }
    memset(arrays.generated, 1, TOKENS * sizeof *arrays.generated);
    memset(arrays.next, 99, ROWS * sizeof *arrays.next);
    for (uint32_t number = 1; number < GB_ROLE_LIMIT; number++) {
        const gb_role_info *role = gb_role_find(number);
        size_t of_row;
        if (!role || role->direction != GB_ROLE_INPUT) {
            assert_null(gb_batch_input(&batch, (gb_role)number));
            continue;
        }
        const uint8_t *bytes = gb_batch_input(&batch, role->role);
        for (size_t i = 0; i < count_of(role, &of_row) * gb_dtype_size(role->dtype); i++)
            assert_int_equal(bytes[i], number);
    }
}

static void a_cleared_row_is_neutral(void **state) {
    (void)state;
    memset(arrays.bias_ids, 7, ROWS * BIASES * sizeof *arrays.bias_ids);
    arrays.masked[0] = arrays.masked[1] = true;
    arrays.top_k[0] = arrays.top_k[1] = arrays.tokens[1] = 7;
    gb_batch_clear_row(&arrays, 1);
#define GB_SETTING(number, NAME, name, dtype, neutral, ...) assert_true(arrays.name[1] == (neutral));
#include "program/roles.def"
    assert_true(arrays.seed[1] == 0 && !arrays.want_logprobs[1] && arrays.penalize_prompt[1] == 0);
    assert_true(arrays.masked[0] && !arrays.masked[1] && gb_batch_has_mask(&batch));
    assert_int_equal(arrays.generated_from[1], -1);
    assert_int_equal(gb_batch_bias_count(&batch, 0, BIASES), BIASES);
    assert_int_equal(gb_batch_bias_count(&batch, 1, BIASES), 0);
    assert_true(arrays.top_k[0] == 7 && arrays.tokens[1] == 7);
}

static void skipping_moves_the_arrays_of_rows(void **state) {
    (void)state;
    gb_batch skipped = batch;
    gb_batch_skip_rows(&skipped, 2, &arrays.widths);
    for (uint32_t number = 1; number < GB_ROLE_LIMIT; number++) {
        const gb_role_info *role = gb_role_find(number);
        size_t of_row;
        if (!role || role->direction != GB_ROLE_INPUT)
            continue;
        count_of(role, &of_row);
        const uint8_t *before = gb_batch_input(&batch, role->role),
                      *after = gb_batch_input(&skipped, role->role);
        assert_int_equal(after - before, 2 * of_row * gb_dtype_size(role->dtype));
    }
    assert_ptr_equal(skipped.next, batch.next + 2);
}

static void too_many_biases_are_no_memory(void **state) {
    (void)state;
    const gb_metadata metadata = {.max_bias = UINT32_MAX};
    gb_batch_arrays large;
    assert_false(gb_batch_arrays_reserve(&metadata, UINT32_MAX, UINT32_MAX, &large));
    gb_batch_arrays_free(&large);
}

#define each(test) cmocka_unit_test_setup_teardown(test, reserve, release)

int main(void) {
    const struct CMUnitTest tests[] = {
        each(arrays_do_not_overlap),
        each(a_cleared_row_is_neutral),
        each(skipping_moves_the_arrays_of_rows),
        cmocka_unit_test(too_many_biases_are_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
