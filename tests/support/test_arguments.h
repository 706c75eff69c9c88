/* SPDX-License-Identifier: Apache-2.0
 *
 * A test program's arguments, for tools under which each launch takes long:
 *
 *     test_program [NAMES [short]]
 *
 * NAMES are those of the tests that run (* and ? stand for others); short, or GUMBEL_SHORT_TESTS in the
 * environment (tests that tests/Long.cmake lists): with fewer tokens or cases.
 */
#ifndef GUMBEL_TESTS_TEST_ARGUMENTS_H
#define GUMBEL_TESTS_TEST_ARGUMENTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Also where a program reads no arguments. */
static inline bool is_short_run(void) {
    static int is_short = -1;
    if (is_short < 0)
        is_short = getenv("GUMBEL_SHORT_TESTS") != NULL;
    return is_short > 0;
}

/* Ends the program with status 2 where they are others. */
static inline void read_test_arguments(int argument_count, char **arguments) {
    if (argument_count > 1)
        cmocka_set_test_filter(arguments[1]);
    const bool is_short = argument_count > 2 && strcmp(arguments[2], "short") == 0;
    if (is_short)
        setenv("GUMBEL_SHORT_TESTS", "1", 1);
    if (argument_count > (is_short ? 3 : 2)) {
        fprintf(stderr, "usage: %s [NAMES [short]]\n", arguments[0]);
        exit(2);
    }
}

/* Of tokens or cases: all, or so few in a short run. */
static inline int shortened(int all, int few) {
    return is_short_run() && few < all ? few : all;
}

#endif
