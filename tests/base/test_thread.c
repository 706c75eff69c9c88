/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void *read_mask(void *argument) {
    pthread_sigmask(SIG_SETMASK, NULL, argument);
    return NULL;
}

/* A handler of SIGBUS says which file was cut short, whichever thread read it. */
static void faults_of_a_thread_reach_their_handlers(void **state) {
    (void)state;
    static const int faults[] = {SIGBUS, SIGFPE, SIGILL, SIGSEGV};
    static const int sent[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGUSR1, SIGWINCH};
    pthread_t thread;
    sigset_t mask;
    assert_true(gb_start_thread(&thread, read_mask, &mask));
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        assert_int_equal(sigismember(&mask, faults[i]), 0);
    for (size_t i = 0; i < sizeof sent / sizeof *sent; i++)
        assert_int_equal(sigismember(&mask, sent[i]), 1);
}

static void the_mask_of_the_caller_stays(void **state) {
    (void)state;
    pthread_t thread;
    sigset_t before, after;
    sigemptyset(&before);
    sigaddset(&before, SIGUSR1);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    assert_true(gb_start_thread(&thread, read_mask, &after));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
    assert_int_equal(sigismember(&after, SIGUSR1), 1);
    assert_int_equal(sigismember(&after, SIGTERM), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_of_a_thread_reach_their_handlers),
        cmocka_unit_test(the_mask_of_the_caller_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
