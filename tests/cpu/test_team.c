/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/team.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { ROUNDS = 300, MAX_THREADS = 9 };

typedef struct relay {
    gb_team *team;
    unsigned count;
    unsigned values[MAX_THREADS]; /* each written by its thread, read by the next one after a barrier */
    unsigned mistakes[MAX_THREADS];
} relay;

static void pass_on(void *user, unsigned index) {
    relay *r = user;
    for (unsigned round = 1; round <= ROUNDS; round++) {
        r->values[index] = round * 100 + index;
        gb_team_wait(r->team);
        unsigned next = (index + 1) % r->count;
        if (r->values[next] != round * 100 + next)
            r->mistakes[index]++;
        gb_team_wait(r->team);
    }
}

/* Also with more threads than the machine has cores. */
static void barriers_separate(void **unused) {
    (void)unused;
    static const unsigned counts[] = {1, 2, 3, MAX_THREADS};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        relay r = {.count = counts[i]};
        gumbel_error error;
        assert_int_equal(gb_team_create(counts[i], &r.team, &error), GUMBEL_OK);
        for (int run = 0; run < 20; run++)
            gb_team_run(r.team, pass_on, &r);
        for (unsigned t = 0; t < counts[i]; t++)
            assert_int_equal(r.mistakes[t], 0);
        gb_team_destroy(r.team);
    }
}

static void unused_team_ends(void **unused) {
    (void)unused;
    gb_team *team;
    assert_int_equal(gb_team_create(4, &team, NULL), GUMBEL_OK);
    gb_team_destroy(team);
    gb_team_destroy(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(barriers_separate),
        cmocka_unit_test(unused_team_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
