/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/threads/cores.h"
#include "backends/threads/team.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
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

typedef struct pastime {
    gb_team *team;
    unsigned rounds, calls;
    atomic_bool was_late;
} pastime;

/* Only a few times is there something left to do. */
static bool pass_time(void *user) {
    pastime *p = user;
    p->calls++;
    atomic_store(&p->was_late, true);
    return p->calls % 10 != 0;
}

/* Thread 1 is late, until thread 0 has begun to pass the time. */
static void wait_with_pastime(void *user, unsigned index) {
    pastime *p = user;
    for (unsigned round = 0; round < p->rounds; round++) {
        if (index == 0) {
            gb_team_wait_with(p->team, pass_time, p);
            atomic_store(&p->was_late, false);
        } else {
            for (unsigned i = 0; i < 1000000 && !atomic_load(&p->was_late); i++)
                sched_yield();
            gb_team_wait(p->team);
        }
        gb_team_wait(p->team);
    }
}

static void who_waits_may_do_something(void **unused) {
    (void)unused;
    pastime p = {.rounds = 20};
    assert_int_equal(gb_team_create(2, &p.team, NULL), GUMBEL_OK);
    gb_team_run(p.team, wait_with_pastime, &p);
    gb_team_destroy(p.team);
    if (gb_available_threads() > 1) /* otherwise a thread that waits sleeps at once */
        assert_true(p.calls >= p.rounds);
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
        cmocka_unit_test(who_waits_may_do_something),
        cmocka_unit_test(unused_team_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
