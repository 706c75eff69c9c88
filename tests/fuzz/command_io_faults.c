/* SPDX-License-Identifier: Apache-2.0
 *
 * The n-th call of the system on a file or on memory fails in a command, for every n from main() on and each
 * way to fail: it ends with a message, or with the output that it has otherwise, as it always does after a
 * call that was interrupted or short. Never by a signal.
 */
#include "cases.h"
#include "failing_calls.h"
#include "outputs.h"
#include "support/temporary.h"
#include "tried_commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAULTS_MADE, REFUSED, DONE_ALL_THE_SAME };
enum { SUCCESS = 0, FAILURE = 1, KINDS = CALL_KILLS };

static const char *const kinds[KINDS] = {"failed call", "call on a full disk", "interrupted call",
                                         "short call"};
static const char *count_file;
static size_t calls[TRIED_COMMANDS * KINDS]; /* of each command, for each kind */
static char *expected[TRIED_COMMANDS];
static life_outputs whole[TRIED_COMMANDS];

static command_result run_failing(size_t list, size_t nth) {
    char text[64];
    snprintf(text, sizeof text, "%zu %zu", list % KINDS, nth);
    setenv("GUMBEL_FAILING_CALL", text, 1);
    unlink(count_file);
    command_result result = run_tried(list / KINDS, GUMBEL_FAILING_COMMAND);
    unsetenv("GUMBEL_FAILING_CALL");
    return result;
}

/* The second time: the first one makes the program in the cache. */
static void count_calls(void) {
    prepare_commands();
    count_file = temporary_path("calls");
    setenv("GUMBEL_CALL_COUNT", count_file, 1);
    for (size_t i = 0; i < (size_t)TRIED_COMMANDS * KINDS; i++)
        for (int time = 0; time < 2; time++) {
            command_result result = run_failing(i, 0);
            if (result.status != SUCCESS)
                fail_case("%s: status %d: %s", name_of_command(i / KINDS), result.status, result.errors);
            calls[i] = read_fault_count(count_file);
            free(expected[i / KINDS]);
            expected[i / KINDS] = result.output;
            free(result.errors);
            whole[i / KINDS] = read_outputs();
        }
}

static uint64_t count_cases(void) {
    return count_turns(calls, (size_t)TRIED_COMMANDS * KINDS);
}

static void check_files(size_t list, size_t nth, const life_outputs *before, bool is_done) {
    char name[128];
    const size_t which = list / KINDS;
    snprintf(name, sizeof name, "%s (%zu): %s", name_of_command(which), which, kinds[list % KINDS]);
    check_outputs(before, &whole[which], name, nth);
    if (is_done)
        check_written(&whole[which], name, nth);
}

/* A chat goes on after an error of /save and says so. */
static bool says_error(size_t list, const command_result *result) {
    const size_t kind = list % KINDS;
    return strcmp(name_of_command(list / KINDS), "chat") == 0 && kind != CALL_IS_INTERRUPTED &&
           kind != CALL_IS_SHORT && result->errors && strstr(result->errors, "gumbel: ");
}

static void check_result(size_t list, size_t nth, const command_result *result) {
    const size_t which = list / KINDS, kind = list % KINDS;
    const char *output = result->output ? result->output : "", *errors = result->errors ? result->errors : "";
    const char *otherwise = expected[which] ? expected[which] : "", *name = name_of_command(which);
    const bool changes_nothing = kind == CALL_IS_INTERRUPTED || kind == CALL_IS_SHORT;
    if (result->status != SUCCESS && (result->status != FAILURE || !strstr(errors, "gumbel: ")))
        fail_case("%s (%zu): %s %zu; status %d, \"%s\"", name, which, kinds[kind], nth, result->status,
                  errors);
    if (result->status != SUCCESS && changes_nothing)
        fail_case("%s (%zu): %s %zu is an error: %s", name, which, kinds[kind], nth, errors);
    if (result->status == SUCCESS && strcmp(output, otherwise) != 0 && !says_error(list, result))
        fail_case("%s (%zu): %s %zu without an error, and it says \"%s\"; expected \"%s\"; %s", name, which,
                  kinds[kind], nth, output, otherwise, errors);
}

static void fail_call(uint64_t seed, uint64_t *counts) {
    size_t item, list;
    if (!choose_item(seed, calls, (size_t)TRIED_COMMANDS * KINDS, &list, &item))
        return;
    const size_t nth = item + 1;
    const life_outputs before = read_outputs();
    command_result result = run_failing(list, nth);
    counts[FAULTS_MADE]++;
    counts[result.status == SUCCESS ? DONE_ALL_THE_SAME : REFUSED]++;
    check_result(list, nth, &result);
    check_files(list, nth, &before, result.status == SUCCESS && !says_error(list, &result));
    if (result.errors && getenv("GUMBEL_SHOW_ERRORS"))
        fprintf(stderr, "%s (%zu): %s %zu: %s\n", name_of_command(list / KINDS), list / KINDS,
                kinds[list % KINDS], nth, result.errors);
    free_result(&result);
}

int main(int argument_count, char **arguments) {
    static const harness h = {.name = "command_io_faults",
                              .counted = {"faults", "refused", "done all the same"},
                              .prepare = count_calls,
                              .case_count = count_cases,
                              .run_case = fail_call};
    return run_harness(&h, argument_count, arguments);
}
