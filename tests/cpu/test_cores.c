/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__linux__)
#define _GNU_SOURCE /* sched_setaffinity */
#endif
#include "backends/threads/cores.h"
#include "support/temporary.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { THREADS = 8 };

static void describe(const char *directory, size_t thread, const char *siblings) {
    char path[512];
    snprintf(path, sizeof path, "%s/cpu%zu", directory, thread);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/cpu%zu/topology", directory, thread);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/cpu%zu/topology/thread_siblings_list", directory, thread);
    write_text(path, siblings);
}

static void check(const char *directory, const char *allowed, unsigned expected) {
    bool is_allowed[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        is_allowed[i] = allowed[i] == 'x';
    assert_int_equal(gb_count_cores(directory, is_allowed, THREADS), expected);
}

/* Threads 0 and 4, 1 and 5 share cores, so do 2 and 3; 6 has one for itself, and of 7 nothing is known. */
static void siblings_count_once(void **unused) {
    (void)unused;
    static const char *const siblings[] = {"0,4\n", "1,5\n", "2-3\n", "2-3\n", "0,4\n", "1,5\n", "6\n"};
    const char *directory = temporary_directory();
    for (size_t i = 0; i < sizeof siblings / sizeof *siblings; i++)
        describe(directory, i, siblings[i]);
    check(directory, "xxxxxxxx", 5);
    check(directory, "xxx.....", 3);
    check(directory, "....xx..", 2);
    check(directory, "x...x...", 1);
    check(directory, "..xx....", 1);
    check(directory, "...x..xx", 3);
    check(directory, "........", 1);
    check("/there/is/no/such/directory", "xxxx....", 4);
}

static void this_machine_has_some(void **unused) {
    (void)unused;
    assert_in_range(gb_available_cores(), 1, gb_available_threads());
}

#if defined(__linux__)
/* What a process finds that its parent has left alone, or has bound to a thread of its own. */
static bool child_has_own_cores(bool is_bound) {
    int status = 0;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        cpu_set_t all, one;
        size_t first = 0;
        sched_getaffinity(0, sizeof all, &all);
        while (first < CPU_SETSIZE && !CPU_ISSET(first, &all))
            first++;
        CPU_ZERO(&one);
        CPU_SET(first, &one);
        if (is_bound)
            sched_setaffinity(0, sizeof one, &one);
        _exit(gb_has_own_cores());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status) != 0;
}

static void bound_processes_have_their_own(void **unused) {
    (void)unused;
    assert_false(child_has_own_cores(false));
    if (gb_available_threads() > 1)
        assert_true(child_has_own_cores(true));
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(siblings_count_once),
        cmocka_unit_test(this_machine_has_some),
#if defined(__linux__)
        cmocka_unit_test(bound_processes_have_their_own),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
