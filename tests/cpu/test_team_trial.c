/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/threads/team_trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { WORK = 2000000 };

/* Batches that take so long each with a team and alone; returns how many ran alone. */
static int run_batches(gb_team_trial *trial, int count, double team, double single) {
    int ran_alone = 0;
    for (int i = 0; i < count; i++) {
        const bool is_single = gb_team_trial_is_single(trial);
        ran_alone += is_single;
        gb_team_trial_record(trial, WORK, is_single ? single : team);
    }
    return ran_alone;
}

static void fast_team_is_never_left(void **unused) {
    (void)unused;
    gb_team_trial trial = {0};
    assert_int_equal(run_batches(&trial, 100000, 200e-6, 350e-6), 0);
}

/* Steps that are slow for another reason are tried alone ever more rarely. */
static void slow_team_is_kept_where_one_thread_is_slower(void **unused) {
    (void)unused;
    gb_team_trial trial = {0};
    assert_in_range(run_batches(&trial, 100000, 5e-3, 9e-3), 2, 250);
}

static void disturbed_team_gives_way_and_comes_back(void **unused) {
    (void)unused;
    gb_team_trial trial = {0};
    assert_in_range(run_batches(&trial, 1000, 13e-3, 1e-3), 950, 990);
    run_batches(&trial, 1100, 200e-6, 350e-6);
    assert_int_equal(run_batches(&trial, 1000, 200e-6, 350e-6), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_team_is_never_left),
        cmocka_unit_test(slow_team_is_kept_where_one_thread_is_slower),
        cmocka_unit_test(disturbed_team_gives_way_and_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
