/* SPDX-License-Identifier: Apache-2.0
 *
 * Masks of many steps, made by workers and by whoever waits for them: each once, and done when the step goes
 * on.
 */
#include "base/memory.h"
#include "run/mask_workers.h"
#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

enum { ROWS = 24, STEPS = 400, WORKERS = 3 };

/* A row's mask, one word long: its value in each step, and how often it was made. */
typedef struct row {
    uint32_t value, made;
    bool is_slow;
} row;

static void make(void *user, uint32_t *words, uint32_t rows) {
    row *of = user;
    assert_int_equal(rows, 1);
    if (of->is_slow)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    *words = of->value;
    of->made++;
}

static void run_steps(gb_late_masks *masks, gb_mask_workers *workers) {
    row rows[ROWS] = {{0}};
    uint32_t words[ROWS];
    for (uint32_t step = 0; step < STEPS; step++) {
        const uint32_t count = step * 7 % (ROWS + 1);
        gb_late_masks_clear(masks);
        for (uint32_t i = 0; i < count; i++) {
            rows[i] = (row){.value = step * ROWS + i, .is_slow = (step + i) % 64 == 0};
            gb_late_masks_add(masks, (gb_mask_source){make, &rows[i]}, &words[i], 1);
        }
        assert_int_equal(gb_late_masks_any(masks), count > 0);
        if (workers)
            gb_mask_workers_wake(workers);
        gb_late_masks_finish(masks);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(words[i], step * ROWS + i);
            assert_int_equal(rows[i].made, 1);
        }
    }
}

static void each_mask_is_made_once(void **state) {
    (void)state;
    gumbel_error error;
    gb_mask_workers *workers;
    gb_late_masks *masks = gb_late_masks_create(ROWS);
    assert_non_null(masks);
    run_steps(masks, NULL);
    assert_ok(gb_mask_workers_create(WORKERS, masks, &workers, &error), &error);
    run_steps(masks, workers);
    gb_mask_workers_destroy(workers);
    gb_late_masks_destroy(masks);
}

/* Workers that are ended while a step has masks leave them, or have made them. */
static void workers_end_at_any_time(void **state) {
    (void)state;
    gumbel_error error;
    for (uint32_t i = 0; i < 20; i++) {
        gb_mask_workers *workers;
        gb_late_masks *masks = gb_late_masks_create(1);
        row one = {.value = i, .is_slow = i % 2};
        uint32_t word;
        assert_ok(gb_mask_workers_create(WORKERS, masks, &workers, &error), &error);
        gb_late_masks_add(masks, (gb_mask_source){make, &one}, &word, 1);
        gb_mask_workers_wake(workers);
        gb_mask_workers_destroy(workers);
        gb_late_masks_finish(masks);
        assert_true(word == i && one.made == 1);
        gb_late_masks_destroy(masks);
    }
}

static bool refuse(void *user, size_t bytes) {
    int *left = user;
    return (*left)-- > 0 || bytes == 0;
}

static void without_memory_there_are_none(void **state) {
    (void)state;
    for (int allowed = 0; allowed < 2; allowed++) {
        int left = allowed;
        gb_set_allocation_hook(refuse, &left);
        assert_null(gb_late_masks_create(4));
        gb_set_allocation_hook(NULL, NULL);
    }
    int none = 0;
    gumbel_error error;
    gb_mask_workers *workers;
    gb_late_masks *masks = gb_late_masks_create(4);
    gb_set_allocation_hook(refuse, &none);
    assert_int_equal(gb_mask_workers_create(2, masks, &workers, &error), GUMBEL_ERROR_MEMORY);
    gb_set_allocation_hook(NULL, NULL);
    gb_late_masks_destroy(masks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mask_is_made_once),
        cmocka_unit_test(workers_end_at_any_time),
        cmocka_unit_test(without_memory_there_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
