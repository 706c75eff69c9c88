/* SPDX-License-Identifier: Apache-2.0
 *
 * The n-th allocation of a command fails, for every n from the start of its process: it ends with a message,
 * or with the output that it has otherwise. Never by a signal.
 */
#include "cases.h"
#include "support/temporary.h"
#include "tried_commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAILED_ALLOCATIONS, REFUSED, DONE_ALL_THE_SAME };
enum { SUCCESS = 0, FAILURE = 1 };

static const char *count_file;
static size_t allocations[TRIED_COMMANDS];
static char *expected[TRIED_COMMANDS];

static command_result run_failing(size_t which, size_t nth) {
    char number[32];
    snprintf(number, sizeof number, "%zu", nth);
    setenv("GUMBEL_FAILING_ALLOCATION", number, 1);
    unlink(count_file);
    command_result result = run_tried(which, GUMBEL_FAILING_COMMAND);
    unsetenv("GUMBEL_FAILING_ALLOCATION");
    return result;
}

static void count_allocations(void) {
    prepare_commands();
    count_file = temporary_path("allocations");
    setenv("GUMBEL_ALLOCATION_COUNT", count_file, 1);
    for (size_t i = 0; i < TRIED_COMMANDS; i++) {
        command_result result = run_failing(i, 0);
        if (result.status != SUCCESS)
            fail_case("%s: status %d: %s", name_of_command(i), result.status, result.errors);
        allocations[i] = read_fault_count(count_file);
        expected[i] = result.output;
        free(result.errors);
    }
}

static uint64_t count_cases(void) {
    return count_turns(allocations, TRIED_COMMANDS);
}

static void fail_allocation(uint64_t seed, uint64_t *counts) {
    size_t nth, which;
    if (!choose_item(seed, allocations, TRIED_COMMANDS, &which, &nth))
        return;
    nth++; /* from 1 */
    command_result result = run_failing(which, nth);
    const char *name = name_of_command(which), *output = result.output ? result.output : "";
    const char *errors = result.errors ? result.errors : "";
    counts[FAILED_ALLOCATIONS]++;
    counts[result.status == SUCCESS ? DONE_ALL_THE_SAME : REFUSED]++;
    if (result.status != SUCCESS && (result.status != FAILURE || !strstr(errors, "gumbel: ")))
        fail_case("%s (%zu): allocation %zu failed; status %d, \"%s\"", name, which, nth, result.status,
                  errors);
    if (result.status == SUCCESS && strcmp(output, expected[which] ? expected[which] : "") != 0)
        fail_case("%s (%zu): allocation %zu failed without an error, and it says \"%s\"; expected \"%s\"",
                  name, which, nth, output, expected[which]);
    if (result.status != SUCCESS && getenv("GUMBEL_SHOW_ERRORS"))
        fprintf(stderr, "%s (%zu): allocation %zu: %s", name, which, nth, errors);
    free_result(&result);
}

int main(int argument_count, char **arguments) {
    static const harness h = {.name = "command_allocation",
                              .counted = {"allocations failed", "refused", "done all the same"},
                              .prepare = count_allocations,
                              .case_count = count_cases,
                              .run_case = fail_allocation};
    return run_harness(&h, argument_count, arguments);
}
