/* SPDX-License-Identifier: Apache-2.0
 *
 * Each unit of a queue is given to one thread, whichever threads come, and those that have nothing left help
 * the others.
 */
#include "backends/cpu/kernels/work_queue.h"
#include "backends/threads/team.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_THREADS = 5, MOST_UNITS = 3000 };

static gb_work_part parts[MOST_THREADS];

typedef struct shared_work {
    gb_work_queue queue;
    gb_team *team;
    atomic_uchar taken[MOST_UNITS];
} shared_work;

static void take_all(void *user, unsigned index) {
    shared_work *work = user;
    size_t first, end;
    while (gb_work_queue_take(&work->queue, index, &first, &end))
        for (size_t i = first; i < end; i++)
            atomic_fetch_add(&work->taken[i], 1);
}

static void each_unit_is_taken_once(void **unused) {
    (void)unused;
    static const uint32_t units[] = {0, 1, 4, 17, 1000, MOST_UNITS};
    static shared_work work;
    for (unsigned threads = 1; threads <= MOST_THREADS; threads++) {
        gumbel_error error;
        assert_int_equal(gb_team_create(threads, &work.team, &error), GUMBEL_OK);
        for (size_t i = 0; i < 60; i++) {
            work.queue = (gb_work_queue){parts, threads, units[i % 6], 1 + (uint32_t)i % 4};
            memset(work.taken, 0, sizeof work.taken);
            gb_work_queue_fill(&work.queue);
            gb_team_run(work.team, take_all, &work);
            for (size_t u = 0; u < MOST_UNITS; u++)
                assert_int_equal(work.taken[u], u < work.queue.units);
        }
        gb_team_destroy(work.team);
    }
}

/* The others never come. */
static void one_thread_takes_all(void **unused) {
    (void)unused;
    gb_work_queue queue = {parts, 3, 100, 4};
    gb_work_queue_fill(&queue);
    size_t first, end, sum = 0;
    assert_true(gb_work_queue_take(&queue, 1, &first, &end));
    assert_int_equal(first, 33); /* its own range is 33 .. 65 */
    assert_int_equal(end, 33 + 8);
    for (sum = end - first; gb_work_queue_take(&queue, 1, &first, &end); sum += end - first)
        assert_true(first < end && end <= 100);
    assert_int_equal(sum, 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_unit_is_taken_once),
        cmocka_unit_test(one_thread_takes_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
