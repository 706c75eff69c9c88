/* SPDX-License-Identifier: Apache-2.0
 *
 * Assertions on a gumbel_status and its message.
 */
#ifndef GUMBEL_TESTS_ASSERTIONS_H
#define GUMBEL_TESTS_ASSERTIONS_H

#include "gumbel.h"

/* Ends the test with the error's message unless status is GUMBEL_OK. */
#define assert_ok(status, error) assert_ok_at((status), (error), __FILE__, __LINE__)
void assert_ok_at(gumbel_status status, const gumbel_error *error, const char *file, int line);

/* Ends the test unless status is the expected one and the message contains part. */
#define assert_fails(status, expected, error, part)                                                          \
    assert_fails_at((status), (expected), (error), (part), __FILE__, __LINE__)
void assert_fails_at(gumbel_status status, gumbel_status expected, const gumbel_error *error,
                     const char *part, const char *file, int line);

#endif
