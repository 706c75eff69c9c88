/* SPDX-License-Identifier: Apache-2.0
 *
 * The n-th allocation of a life fails, for every n of every life: there is an error with a reason or what
 * comes out is the same, and no block is left. Allocations of the C library and of others count, too.
 */
#include "cases.h"
#include "failing_malloc.h"
#include "lives.h"

#include <stdio.h>
#include <stdlib.h>

enum { FAILED_ALLOCATIONS, OUT_OF_MEMORY, OTHER_ERRORS, DONE_ALL_THE_SAME };
enum { REPEATS = 3 };

static size_t allocations[MOST_LIVES]; /* of each life */
static uint64_t expected[MOST_LIVES];  /* what comes out of it */

static gumbel_status live(size_t which, size_t failing, uint64_t *made, size_t *seen, gumbel_error *error) {
    *made = 0xcbf29ce484222325u;
    *error = (gumbel_error){0};
    begin_failing(failing);
    gumbel_status status = lives.run(which, made, error);
    *seen = end_failing();
    return status;
}

/* The second time: what the first one leaves is the C library's, such as buffers and stacks of threads. */
static void count_allocations(void) {
    lives.prepare();
    for (size_t i = 0; i < lives.count; i++)
        for (int time = 0; time < 2; time++) {
            gumbel_error error;
            if (live(i, 0, &expected[i], &allocations[i], &error) != GUMBEL_OK)
                fail_case("%s: %s", lives.name_of(i), error.message);
        }
}

static uint64_t count_cases(void) {
    return count_turns(allocations, lives.count);
}

/* Threads that end may leave their stacks to the next ones: only what grows each time is a leak. */
static bool leaves_blocks(size_t which, size_t nth) {
    for (int time = 0; time < REPEATS; time++) {
        gumbel_error error;
        uint64_t made;
        size_t seen, before = blocks_in_use();
        live(which, nth, &made, &seen, &error);
        if (blocks_in_use() <= before)
            return false;
    }
    return true;
}

static void check_outcome(size_t which, size_t nth, gumbel_status status, uint64_t made,
                          const gumbel_error *error) {
    if (status == GUMBEL_OK && made != expected[which])
        fail_case("%s: allocation %zu failed without an error, and something else came out",
                  lives.name_of(which), nth);
    if (status != GUMBEL_OK && (error->status != status || error->message[0] == '\0'))
        fail_case("%s: allocation %zu failed; status %d with error %d \"%s\"", lives.name_of(which), nth,
                  (int)status, (int)error->status, error->message);
    if (status != GUMBEL_OK && status != GUMBEL_ERROR_MEMORY && lives.is_short_alone)
        fail_case("%s: allocation %zu failed, and the error is \"%s\"", lives.name_of(which), nth,
                  error->message);
    if (status != GUMBEL_OK && status != GUMBEL_ERROR_MEMORY && getenv("GUMBEL_SHOW_ERRORS"))
        fprintf(stderr, "%s: allocation %zu: %s\n", lives.name_of(which), nth, error->message);
}

static void fail_allocation(uint64_t seed, uint64_t *counts) {
    size_t nth, which, seen, before = blocks_in_use();
    uint64_t made;
    gumbel_error error;
    if (!choose_item(seed, allocations, lives.count, &which, &nth))
        return;
    nth++; /* from 1 */
    gumbel_status status = live(which, nth, &made, &seen, &error);
    check_outcome(which, nth, status, made, &error);
    counts[FAILED_ALLOCATIONS] += seen >= nth;
    counts[status == GUMBEL_OK             ? DONE_ALL_THE_SAME
           : status == GUMBEL_ERROR_MEMORY ? OUT_OF_MEMORY
                                           : OTHER_ERRORS]++;
    if (blocks_in_use() > before && leaves_blocks(which, nth))
        fail_case("%s: blocks are left after allocation %zu failed", lives.name_of(which), nth);
}

int main(int argument_count, char **arguments) {
    const harness h = {
        .name = lives.harness,
        .counted = {"allocations failed", "errors of memory", "other errors", "done all the same"},
        .prepare = count_allocations,
        .case_count = count_cases,
        .run_case = fail_allocation};
    return run_harness(&h, argument_count, arguments);
}
