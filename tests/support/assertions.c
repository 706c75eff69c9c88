/* SPDX-License-Identifier: Apache-2.0 */
#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

void assert_ok_at(gumbel_status status, const gumbel_error *error, const char *file, int line) {
    if (status != GUMBEL_OK) {
        print_error("status %d: %s\n", (int)status, error->message);
        _fail(file, line);
    }
}

void assert_fails_at(gumbel_status status, gumbel_status expected, const gumbel_error *error,
                     const char *part, const char *file, int line) {
    if (status != expected) {
        print_error("status %d, expected %d (%s)\n", (int)status, (int)expected,
                    status == GUMBEL_OK ? "no error" : error->message);
        _fail(file, line);
    }
    if (!strstr(error->message, part)) {
        print_error("message \"%s\" lacks \"%s\"\n", error->message, part);
        _fail(file, line);
    }
}
