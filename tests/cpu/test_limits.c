/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops that find a machine's limits do the work that they count.
 */
#include "base/memory.h"
#include "run/cpu/int8_peak.h"
#include "run/cpu/kernels/vector/vector_kernels.h"
#include "run/cpu/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void loops_count_their_products(void **state) {
    (void)state;
    const gb_vector_kernels *kernels;
    for (size_t i = 0; (kernels = gb_available_vector_kernels(i)); i++) {
        gb_int8_loop loop = gb_int8_peak_loop(kernels->name);
        uint64_t products;
        uint32_t sum = loop(1000, &products);
        assert_true(products >= 8000);
        assert_true(sum == (uint32_t)(2 * products));
        assert_true(loop(2000, &products) == 2 * sum);
    }
}

static void sets_that_are_unknown_get_the_best(void **state) {
    (void)state;
    const gb_vector_kernels *best = NULL, *kernels;
    for (size_t i = 0; (kernels = gb_available_vector_kernels(i)); i++)
        best = kernels;
    assert_true(gb_int8_peak_loop("a set of tomorrow") == gb_int8_peak_loop(best->name));
}

static bool refuse_large(void *user, size_t bytes) {
    (void)user;
    return bytes < 1 << 20;
}

static void rates_are_measured(void **state) {
    (void)state;
    gb_team *team;
    gumbel_error error;
    gumbel_machine_limits limits = {0};
    assert_int_equal(gb_team_create(2, &team, &error), GUMBEL_OK);
    assert_int_equal(gb_measure_limits(team, 2, "portable", &limits, &error), GUMBEL_OK);
    assert_true(limits.read_bytes_per_second > 1e6 && limits.read_bytes_per_second < 1e13);
    assert_true(limits.int8_products_per_second > 1e6);
    gb_set_allocation_hook(refuse_large, NULL);
    assert_int_equal(gb_measure_limits(team, 2, "portable", &limits, &error), GUMBEL_ERROR_MEMORY);
    gb_set_allocation_hook(NULL, NULL);
    gb_team_destroy(team);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_count_their_products),
        cmocka_unit_test(sets_that_are_unknown_get_the_best),
        cmocka_unit_test(rates_are_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
