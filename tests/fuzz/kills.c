/* SPDX-License-Identifier: Apache-2.0
 *
 * A process is killed before the n-th call of the system on a file or on memory in a life, for every n of
 * every life, where files without a name can be made and where they cannot: outputs are the old ones or
 * whole, and what else is left goes with the next writer.
 */
#include "base/output_file.h"
#include "cases.h"
#include "failing_calls.h"
#include "lives.h"
#include "outputs.h"
#include "support/temporary.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KILLED, WITH_REST, TO_THE_END };
enum { WAYS = 2 }; /* with files without a name, or only such with one */

static size_t calls[MOST_LIVES * WAYS];
static life_outputs whole[MOST_LIVES];

static gumbel_status live(size_t list, size_t nth, size_t *seen, gumbel_error *error) {
    uint64_t made = 0;
    allow_files_without_name(list % WAYS == 0);
    begin_call_fault(CALL_KILLS, nth);
    gumbel_status status = lives.run(list / WAYS, &made, error);
    *seen = end_call_fault();
    return status;
}

static void count_calls(void) {
    lives.prepare();
    for (size_t i = 0; i < lives.count * WAYS; i++) {
        gumbel_error error;
        if (live(i, 0, &calls[i], &error) != GUMBEL_OK)
            fail_case("%s: %s", lives.name_of(i / WAYS), error.message);
        whole[i / WAYS] = read_outputs();
    }
}

static uint64_t count_cases(void) {
    return count_turns(calls, lives.count * WAYS);
}

/* Returns whether it was killed. Threads may make fewer calls than they did at first. */
static bool live_and_be_killed(size_t list, size_t nth, const char *name) {
    int status;
    fflush(NULL);
    pid_t process = fork();
    if (process == 0) {
        size_t seen;
        gumbel_error error;
        _exit(live(list, nth, &seen, &error) == GUMBEL_OK ? 0 : 1);
    }
    if (process < 0 || waitpid(process, &status, 0) != process)
        fail_case("%s %zu: no process", name, nth);
    const bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (!is_killed && status != 0)
        fail_case("%s %zu: ended with %d", name, nth, status);
    return is_killed;
}

/* As the next command in the folder does that writes there. */
static void begin_an_output(void) {
    char buffer[64];
    gb_output_file file;
    gumbel_error error;
    allow_files_without_name(true);
    if (gb_output_create(&file, temporary_path("next"), NULL, buffer, sizeof buffer, &error) != GUMBEL_OK)
        fail_case("%s", error.message);
    gb_output_close(&file);
}

static void kill_life(uint64_t seed, uint64_t *counts) {
    char name[128];
    size_t list, item;
    if (!choose_item(seed, calls, lives.count * WAYS, &list, &item))
        return;
    snprintf(name, sizeof name, "%s%s: killed before call", lives.name_of(list / WAYS),
             list % WAYS ? " with named files" : "");
    const life_outputs before = read_outputs();
    const bool is_killed = live_and_be_killed(list, item + 1, name);
    const size_t left = count_files(temporary_directory());
    begin_an_output();
    check_outputs(&before, &whole[list / WAYS], name, item + 1);
    counts[is_killed ? KILLED : TO_THE_END]++;
    counts[WITH_REST] += count_files(temporary_directory()) < left;
}

int main(int argument_count, char **arguments) {
    static const harness h = {.name = "kills",
                              .counted = {"killed", "left a temporary file", "ran to the end"},
                              .prepare = count_calls,
                              .case_count = count_cases,
                              .run_case = kill_life};
    return run_harness(&h, argument_count, arguments);
}
