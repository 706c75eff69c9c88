/* SPDX-License-Identifier: Apache-2.0
 *
 * The n-th call of the system or the n-th allocation of gumbel pull fails, or it is killed before that call:
 * the cache has no wrong file, and the next pull completes it and leaves no temporary file.
 */
#define _GNU_SOURCE /* nftw */
#include "cases.h"
#include "failing_calls.h"
#include "small_hub.h"
#include "support/run_command.h"
#include "support/temporary.h"

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAULTS_MADE, REFUSED, KILLED, DONE_ALL_THE_SAME };
enum { ALLOCATION = CALL_FAULTS, KINDS }; /* kinds of calls come first */

static const char *const kinds[KINDS] = {"failed call", "call on a full disk", "interrupted call",
                                         "short call",  "killed before call",  "allocation"};
static size_t calls[KINDS];
static char *expected;
static const char *home, *caches, *count_file;
static const char *looked_for; /* by find_temporary, which takes no arguments */

/* ---- Folders ------------------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *information, int type, struct FTW *place) {
    (void)information, (void)type, (void)place;
    return remove(path);
}

static void remove_cache(void) {
    nftw(home, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    nftw(caches, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int find_temporary(const char *path, const struct stat *information, int type, struct FTW *place) {
    (void)information, (void)type;
    const char *name = path + place->base, *end = strrchr(name, '.');
    const bool is_temporary = strstr(name, ".incomplete") || strstr(name, ".gumbel-temporary") ||
                              (end && strcmp(end, ".gumbel") == 0);
    if (is_temporary)
        fail_case("%s: %s is left", looked_for, path);
    return 0;
}

static void check_temporaries(const char *what) {
    looked_for = what;
    nftw(home, find_temporary, 16, FTW_PHYS);
    nftw(caches, find_temporary, 16, FTW_PHYS);
}

/* ---- Pulls --------------------------------------------------------------------------------------------- */

static command_result pull(size_t kind, size_t nth) {
    const char *const words[] = {kind == ALLOCATION ? GUMBEL_FAILING_MALLOC : GUMBEL_FAILING_CALLS, "pull",
                                 "org/name", NULL};
    char call[48], number[32];
    snprintf(call, sizeof call, "%zu %zu", kind, nth);
    snprintf(number, sizeof number, "%zu", nth);
    setenv("GUMBEL_FAILING_CALL", call, 1);
    setenv("GUMBEL_FAILING_ALLOCATION", number, 1);
    return run_command(words, NULL);
}

static void count_one(size_t kind) {
    remove_cache();
    unlink(count_file);
    command_result result = pull(kind, 0);
    if (result.status != 0)
        fail_case("status %d: %s", result.status, result.errors);
    calls[kind] = read_fault_count(count_file);
    check_hub_cache(home, true, kinds[kind], 0);
    check_temporaries("a pull");
    free(expected);
    expected = result.output;
    free(result.errors);
}

static void count_all(void) {
    static const char *const folders[] = {"HOME", "XDG_STATE_HOME", "HF_HOME"};
    home = temporary_path("hf");
    caches = temporary_path("caches");
    count_file = temporary_path("count");
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        setenv(folders[i], home, 1);
    setenv("XDG_CACHE_HOME", caches, 1);
    setenv("no_proxy", "*", 1);
    unsetenv("HF_HUB_CACHE");
    unsetenv("HF_TOKEN");
    unsetenv("HF_HUB_OFFLINE");
    setenv("GUMBEL_CALL_COUNT", count_file, 1);
    setenv("GUMBEL_ALLOCATION_COUNT", count_file, 1);
    start_small_hub();
    for (size_t i = 0; i < KINDS; i++)
        count_one(i);
}

static uint64_t count_cases(void) {
    return count_turns(calls, KINDS);
}

static void check_result(size_t kind, size_t nth, const command_result *result) {
    const bool changes_nothing = kind == CALL_IS_INTERRUPTED || kind == CALL_IS_SHORT;
    const bool is_told = result->status == 1 && result->errors && strstr(result->errors, "gumbel: ");
    const bool is_killed = kind == CALL_KILLS && result->status == 128 + SIGKILL;
    const bool is_done = result->status == 0 && strcmp(result->output ? result->output : "", expected) == 0;
    if (!is_done && !is_killed && (!is_told || changes_nothing))
        fail_case("%s %zu: status %d, \"%s\", \"%s\"", kinds[kind], nth, result->status,
                  result->output ? result->output : "", result->errors ? result->errors : "");
    if (!is_done && getenv("GUMBEL_SHOW_ERRORS"))
        fprintf(stderr, "%s %zu: %s\n", kinds[kind], nth, result->errors ? result->errors : "");
}

static void pull_the_rest(size_t kind, size_t nth) {
    char name[96];
    snprintf(name, sizeof name, "after %s %zu", kinds[kind], nth);
    command_result result = pull(CALL_FAILS, 0);
    if (result.status != 0 || strcmp(result.output ? result.output : "", expected) != 0)
        fail_case("%s: status %d, \"%s\", \"%s\"", name, result.status, result.output ? result.output : "",
                  result.errors ? result.errors : "");
    free_result(&result);
    check_hub_cache(home, true, name, nth);
    check_temporaries(name);
}

static void fail_something(uint64_t seed, uint64_t *counts) {
    size_t kind, item;
    if (!choose_item(seed, calls, KINDS, &kind, &item))
        return;
    const size_t nth = item + 1;
    remove_cache();
    command_result result = pull(kind, nth);
    counts[FAULTS_MADE]++;
    counts[result.status == 0 ? DONE_ALL_THE_SAME : result.status == 1 ? REFUSED : KILLED]++;
    check_result(kind, nth, &result);
    check_hub_cache(home, result.status == 0, kinds[kind], nth);
    free_result(&result);
    pull_the_rest(kind, nth);
}

int main(int argument_count, char **arguments) {
    static const harness h = {.name = "pull_faults",
                              .counted = {"faults", "refused", "killed", "done all the same"},
                              .prepare = count_all,
                              .case_count = count_cases,
                              .run_case = fail_something};
    return run_harness(&h, argument_count, arguments);
}
