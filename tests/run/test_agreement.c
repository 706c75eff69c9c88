/* SPDX-License-Identifier: Apache-2.0 */
#include "support/agreement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void agrees(void **state) {
    assert_agrees_with_mlx_lm(*state, "cpu");
}

#define AGREES(name) {name, agrees, NULL, NULL, (void *)(uintptr_t)(name)},

int main(void) {
    const struct CMUnitTest tests[] = {AGREEMENT_CONFIGURATIONS(AGREES)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
