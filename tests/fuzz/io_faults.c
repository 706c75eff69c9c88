/* SPDX-License-Identifier: Apache-2.0
 *
 * The n-th call of the system on a file or on memory fails in a life, for every n of every life and each way
 * to fail: there is an error with a reason or what comes out is the same, outputs are the old ones or whole,
 * and no block, descriptor or temporary file is left. A call that was interrupted or short changes nothing.
 */
#include "cases.h"
#include "failing_calls.h"
#include "failing_malloc.h"
#include "lives.h"
#include "outputs.h"

#include <stdio.h>
#include <stdlib.h>

enum { FAULTS_MADE, REFUSED, DONE_ALL_THE_SAME };
enum { KINDS = CALL_KILLS, WAYS = 2 * KINDS, REPEATS = 3 }; /* ways: with nameless files or without */

static const char *const kinds[KINDS] = {"failed call", "call on a full disk", "interrupted call",
                                         "short call"};
static size_t calls[MOST_LIVES * WAYS]; /* of each life, for each way */
static uint64_t expected[MOST_LIVES];
static life_outputs whole[MOST_LIVES];

typedef struct faulty_life {
    size_t which;
    call_fault kind;
    bool is_named; /* the file system has no files without a name */
    size_t nth;
    char name[128]; /* "pack: short call" */
} faulty_life;

static gumbel_status live(const faulty_life *life, uint64_t *made, size_t *seen, gumbel_error *error) {
    *made = 0xcbf29ce484222325u;
    *error = (gumbel_error){0};
    allow_files_without_name(!life->is_named);
    begin_call_fault(life->kind, life->nth);
    gumbel_status status = lives.run(life->which, made, error);
    *seen = end_call_fault();
    return status;
}

static faulty_life life_of(size_t list, size_t nth) {
    faulty_life life = {.which = list / WAYS,
                        .kind = (call_fault)(list % KINDS),
                        .is_named = list % WAYS >= KINDS,
                        .nth = nth};
    snprintf(life.name, sizeof life.name, "%s: %s%s", lives.name_of(life.which),
             life.is_named ? "named files, " : "", kinds[life.kind]);
    return life;
}

static void count_calls(void) {
    lives.prepare();
    for (size_t i = 0; i < lives.count * WAYS; i++) {
        const faulty_life life = life_of(i, 0);
        gumbel_error error;
        if (live(&life, &expected[life.which], &calls[i], &error) != GUMBEL_OK)
            fail_case("%s: %s", life.name, error.message);
        whole[life.which] = read_outputs();
    }
}

static uint64_t count_cases(void) {
    return count_turns(calls, lives.count * WAYS);
}

/* What the first time leaves may be the C library's: only what grows each time is a leak. */
static bool leaves_something(const faulty_life *life) {
    for (int time = 0; time < REPEATS; time++) {
        const size_t blocks = blocks_in_use(), descriptors = open_descriptors();
        gumbel_error error;
        uint64_t made;
        size_t seen;
        live(life, &made, &seen, &error);
        if (open_descriptors() > descriptors)
            return true;
        if (blocks_in_use() <= blocks)
            return false;
    }
    return true;
}

static void check_outcome(const faulty_life *life, gumbel_status status, uint64_t made,
                          const gumbel_error *error) {
    const bool changes_nothing = life->kind == CALL_IS_INTERRUPTED || life->kind == CALL_IS_SHORT;
    if (status == GUMBEL_OK && made != expected[life->which])
        fail_case("%s %zu: no error, and something else came out", life->name, life->nth);
    if (status != GUMBEL_OK && (error->status != status || error->message[0] == '\0'))
        fail_case("%s %zu: status %d with error %d \"%s\"", life->name, life->nth, (int)status,
                  (int)error->status, error->message);
    if (status != GUMBEL_OK && changes_nothing)
        fail_case("%s %zu: %s", life->name, life->nth, error->message);
    if (status != GUMBEL_OK && getenv("GUMBEL_SHOW_ERRORS"))
        fprintf(stderr, "%s %zu: %s\n", life->name, life->nth, error->message);
}

static void fail_call(uint64_t seed, uint64_t *counts) {
    size_t list, item, seen;
    uint64_t made;
    gumbel_error error;
    if (!choose_item(seed, calls, lives.count * WAYS, &list, &item))
        return;
    const faulty_life life = life_of(list, item + 1);
    const life_outputs before = read_outputs();
    const size_t blocks = blocks_in_use(), descriptors = open_descriptors();
    gumbel_status status = live(&life, &made, &seen, &error);
    check_outcome(&life, status, made, &error);
    check_outputs(&before, &whole[life.which], life.name, life.nth);
    counts[FAULTS_MADE] += seen >= life.nth;
    counts[status == GUMBEL_OK ? DONE_ALL_THE_SAME : REFUSED]++;
    if ((blocks_in_use() > blocks || open_descriptors() > descriptors) && leaves_something(&life))
        fail_case("%s %zu: blocks or descriptors are left", life.name, life.nth);
}

int main(int argument_count, char **arguments) {
    static const harness h = {.name = "io_faults",
                              .counted = {"faults", "refused", "done all the same"},
                              .prepare = count_calls,
                              .case_count = count_cases,
                              .run_case = fail_call};
    return run_harness(&h, argument_count, arguments);
}
