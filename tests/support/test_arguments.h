/* SPDX-License-Identifier: Apache-2.0
 *
 * A test program's arguments, for tools under which each launch takes long:
 *
 *     test_program [NAMES [short]]
 *
 * NAMES are those of the tests that run (* and ? stand for others); short: with fewer tokens or cases.
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

static bool is_short_run;

/* Ends the program with status 2 where they are others. */
static inline void read_test_arguments(int argument_count, char **arguments) {
    if (argument_count > 1)
        cmocka_set_test_filter(arguments[1]);
    is_short_run = argument_count > 2 && strcmp(arguments[2], "short") == 0;
    if (argument_count > (is_short_run ? 3 : 2)) {
        fprintf(stderr, "usage: %s [NAMES [short]]\n", arguments[0]);
        exit(2);
    }
}

/* Of tokens or cases: all, or so few in a short run. */
static inline int shortened(int all, int few) {
    return is_short_run && few < all ? few : all;
}

#endif
