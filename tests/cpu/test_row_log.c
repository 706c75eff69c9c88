/* SPDX-License-Identifier: Apache-2.0
 *
 * The log of drafts: what it has room for, which tokens a slot may forget, and what it refuses.
 */
#include "backends/cpu/kernels/vector/vector_kernels.h"
#include "backends/cpu/row_log.h"
#include "base/memory.h"
#include "support/assertions.h"
#include "support/programs/tiny_program.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { SLOTS = 3, DRAFTS = 4 };

static gumbel_error error;

/* A token of slot 0 and two of slot 2, which have one and two drafts behind them, at positions 7 and 20. */
static const int32_t slots[] = {0, 0, 2, 2, 2, 2};
static const int32_t positions[] = {7, 8, 20, 21, 22, 23};
static const bool draft[] = {false, true, false, false, true, true};
static const gb_batch batch = {.token_count = 6, .slots = slots, .positions = positions, .draft = draft};

static void of_slots(void **unused) {
    (void)unused;
    gb_program *program = tiny_recurrent_build(true);
    gb_row_log log;
    assert_ok(gb_row_log_create(program, SLOTS, DRAFTS, &log, &error), &error);
    gb_row_log_reset(&log, 1, 33);
    gb_row_log_advance(&log, &batch);
    assert_int_equal(log.drafts[0].count, 1);
    assert_int_equal(log.drafts[2].count, 2);
    assert_false(gb_row_log_truncate(&log, 0, 7)); /* the token before the draft has been taken in */
    assert_false(gb_row_log_truncate(&log, 0, 10));
    assert_true(gb_row_log_truncate(&log, 0, 8));
    assert_int_equal(log.drafts[0].count, 0);
    assert_false(gb_row_log_truncate(&log, 0, 9)); /* it is forgotten */
    assert_true(gb_row_log_truncate(&log, 2, 24));
    assert_true(gb_row_log_truncate(&log, 2, 23));
    assert_int_equal(log.drafts[2].count, 1);
    assert_true(gb_row_log_truncate(&log, 1, 33));
    assert_false(gb_row_log_truncate(&log, 1, 32));
    const gb_state_log *first = &log.states[0];
    const float *rows = gb_logged_rows(first, 2);
    assert_true(rows != gb_rows_to_log(first, 2));
    gb_row_log_advance(&log, &batch);
    assert_true(rows == gb_rows_to_log(first, 2)); /* by turns */
    gb_row_log_destroy(&log);
    gb_program_destroy(program);
}

/* Of a program whose states forget by themselves. */
static void of_caches(void **unused) {
    (void)unused;
    gb_program *program = tiny_program_build(true);
    gb_row_log log;
    assert_ok(gb_row_log_create(program, SLOTS, DRAFTS, &log, &error), &error);
    gb_row_log_advance(&log, &batch);
    assert_true(gb_row_log_truncate(&log, 0, 0));
    gb_row_log_destroy(&log);
    gb_program_destroy(program);
}

static void long_keys_are_refused(void **unused) {
    (void)unused;
    enum { KEY = 1 };
    gb_program *program = tiny_recurrent_build(true);
    gb_row_log log;
    for (uint32_t i = 0; i < program->node_count; i++)
        if (program->nodes[i].op == GB_OP_GATED_DELTA)
            program->values[program->nodes[i].operands[KEY]].type.shape.dims[2] = GB_DELTA_DISCARDED + 1;
    assert_fails(gb_row_log_create(program, SLOTS, DRAFTS, &log, &error), GUMBEL_ERROR_UNSUPPORTED, &error,
                 "keys of 2049 elements: the cpu backend takes drafts with at most 2048");
    gb_row_log_destroy(&log);
    assert_ok(gb_row_log_create(program, SLOTS, 0, &log, &error),
              &error); /* without drafts it does not matter */
    gb_row_log_destroy(&log);
    gb_program_destroy(program);
}

static size_t allowed;

static bool allow_some(void *unused, size_t bytes) {
    (void)unused;
    (void)bytes;
    return allowed > 0 ? allowed-- > 0 : false;
}

static void memory_may_be_short(void **unused) {
    (void)unused;
    gb_program *program = tiny_recurrent_build(true);
    for (size_t i = 0; i < 3; i++) {
        gb_row_log log;
        allowed = i;
        gb_set_allocation_hook(allow_some, NULL);
        const gumbel_status status = gb_row_log_create(program, SLOTS, DRAFTS, &log, &error);
        gb_set_allocation_hook(NULL, NULL);
        assert_fails(status, GUMBEL_ERROR_MEMORY, &error, "of 3 slots");
        gb_row_log_destroy(&log);
    }
    gb_row_log log; /* the last of its blocks would have terabytes */
    allowed = 2;
    gb_set_allocation_hook(allow_some, NULL);
    const gumbel_status status = gb_row_log_create(program, SLOTS, UINT32_MAX, &log, &error);
    gb_set_allocation_hook(NULL, NULL);
    assert_fails(status, GUMBEL_ERROR_MEMORY, &error, "no memory for 4294967295 draft tokens");
    gb_row_log_destroy(&log);
    gb_program_destroy(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_slots),
        cmocka_unit_test(of_caches),
        cmocka_unit_test(long_keys_are_refused),
        cmocka_unit_test(memory_may_be_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
