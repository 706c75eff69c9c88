/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops that find a machine's limits do the work that they count.
 */
#include "backends/cpu/kernels/vector/vector_kernels.h"
#include "backends/cpu/limits.h"
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void peaks_count_their_products(void **state) {
    (void)state;
    uint8_t codes[128];
    memset(codes, 3, sizeof codes);
    const gb_vector_kernels *kernels;
    for (size_t i = 0; (kernels = gb_available_vector_kernels(i)); i++) {
        uint64_t products;
        uint32_t sum = kernels->peak(codes, 1000, &products);
        assert_true(products >= 8000);
        assert_true(sum == (uint32_t)(9 * products));
        assert_true(kernels->peak(codes, 2000, &products) == 2 * sum);
    }
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
    assert_int_equal(gb_measure_limits(team, 2, gb_available_vector_kernels(0), &limits, &error), GUMBEL_OK);
    assert_true(limits.read_bytes_per_second > 1e6 && limits.read_bytes_per_second < 1e13);
    assert_true(limits.int8_products_per_second > 1e6);
    gb_set_allocation_hook(refuse_large, NULL);
    assert_int_equal(gb_measure_limits(team, 2, gb_available_vector_kernels(0), &limits, &error),
                     GUMBEL_ERROR_MEMORY);
    gb_set_allocation_hook(NULL, NULL);
    gb_team_destroy(team);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peaks_count_their_products),
        cmocka_unit_test(rates_are_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
