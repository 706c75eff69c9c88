/* SPDX-License-Identifier: Apache-2.0
 *
 * Running some of a program's tests: those whose names match its argument (* and ? stand for others), if it
 * has one. For tests that take long under tools that slow them down.
 */
#ifndef GUMBEL_TESTS_FILTER_H
#define GUMBEL_TESTS_FILTER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static inline void filter_tests(int argument_count, char **arguments) {
    if (argument_count > 1)
        cmocka_set_test_filter(arguments[1]);
}

#endif
