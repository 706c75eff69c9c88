/* SPDX-License-Identifier: Apache-2.0
 *
 * The n-th allocation of a command fails, for every n from the start of its process: it ends with a message,
 * or with the output that it has otherwise. Never by a signal.
 */
#include "bundled.h"
#include "cases.h"
#include "support/paths.h"
#include "support/run_command.h"
#include "support/temporary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAILED_ALLOCATIONS, REFUSED, DONE_ALL_THE_SAME };
enum { COMMANDS = 10, MOST_WORDS = 14, SUCCESS = 0, FAILURE = 1 };

/* Of words, $NAME is a path; what it writes is the same every time. */
typedef struct tried_command {
    const char *words[MOST_WORDS], *input;
} tried_command;

static const tried_command commands[COMMANDS] = {
    {{"--help"}, NULL},
    {{"inspect", "$GEMMA"}, NULL},
    {{"inspect", "$QWEN", "--graph"}, NULL},
    {{"tokenize", "$QWEN", "Why is the sky blue?"}, NULL},
    {{"run", "$GEMMA", "Why?", "--seed", "7", "-n", "6", "--threads", "2"}, NULL},
    {{"run", "$QWEN", "--seed", "7", "-n", "6", "--stop", "xyz", "--print-tokens"}, "Why is the sky blue?"},
    {{"chat", "$GEMMA", "--seed", "7", "-n", "4"},
     "Hello!\n/regen\n/set top-k 5\n/save $SESSION\n/load $SESSION\n"},
    {{"logits", "$LOGITS", "--tokens", "2,17,99", "-o", "$NPY"}, NULL},
    {{"perplexity", "$LOGITS", "-f", "$TEXT"}, NULL},
    {{"export", "$CHECKPOINT", "-o", "$EXPORTED", "--quantize", "int4", "--layers", "4", "--quiet"}, NULL},
};

static const struct {
    const char *name, *file;
} paths[] = {{"$SESSION", "chat.session"},
             {"$NPY", "logits.npy"},
             {"$TEXT", "text.txt"},
             {"$EXPORTED", "exported.gumbel"}};

static const char *count_file;
static size_t allocations[COMMANDS];
static char *expected[COMMANDS];

static const char *path_of(const char *word) {
    if (strcmp(word, "$GEMMA") == 0)
        return bundled_path(BUNDLED_GEMMA_INT4);
    if (strcmp(word, "$QWEN") == 0)
        return bundled_path(BUNDLED_QWEN);
    if (strcmp(word, "$LOGITS") == 0)
        return bundled_path(BUNDLED_QWEN_LOGITS);
    if (strcmp(word, "$CHECKPOINT") == 0)
        return bundled_model("gemma4-tiny");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (strcmp(word, paths[i].name) == 0)
            return temporary_path(paths[i].file);
    return word;
}

/* The input with the session's path in it; valid until the next call. */
static const char *input_of(const tried_command *tried) {
    static char input[2048];
    const char *from = tried->input, *mark;
    if (!from)
        return NULL;
    input[0] = '\0';
    while ((mark = strstr(from, "$SESSION"))) {
        strncat(input, from, (size_t)(mark - from));
        strcat(input, path_of("$SESSION"));
        from = mark + strlen("$SESSION");
    }
    return strcat(input, from);
}

static command_result run_failing(const tried_command *tried, size_t nth) {
    const char *words[MOST_WORDS + 2] = {GUMBEL_FAILING_COMMAND};
    char number[32];
    for (size_t i = 0; i < MOST_WORDS && tried->words[i]; i++)
        words[i + 1] = path_of(tried->words[i]);
    snprintf(number, sizeof number, "%zu", nth);
    setenv("GUMBEL_FAILING_ALLOCATION", number, 1);
    unlink(count_file);
    unlink(path_of("$SESSION"));
    unlink(path_of("$EXPORTED"));
    command_result result = run_command(words, input_of(tried));
    unsetenv("GUMBEL_FAILING_ALLOCATION");
    return result;
}

static size_t read_count(void) {
    size_t count = 0;
    FILE *file = fopen(count_file, "r");
    if (!file || fscanf(file, "%zu", &count) != 1)
        fail_case("%s: no number of allocations", count_file);
    fclose(file);
    return count;
}

/* Nothing of the user's counts: no settings, no history, no cache. */
static void use_scratch_environment(void) {
    static const char *const folders[] = {"HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        setenv(folders[i], temporary_directory(), 1);
    count_file = temporary_path("allocations");
    setenv("GUMBEL_ALLOCATION_COUNT", count_file, 1);
}

static void count_allocations(void) {
    export_bundled();
    use_scratch_environment();
    write_text(path_of("$TEXT"), "The sky is blue because the sea is.\n");
    for (size_t i = 0; i < COMMANDS; i++) {
        command_result result = run_failing(&commands[i], 0);
        if (result.status != SUCCESS)
            fail_case("%s: status %d: %s", commands[i].words[0], result.status, result.errors);
        allocations[i] = read_count();
        expected[i] = result.output;
        free(result.errors);
    }
}

static uint64_t count_cases(void) {
    return count_turns(allocations, COMMANDS);
}

static void fail_allocation(uint64_t seed, uint64_t *counts) {
    size_t nth, which;
    if (!choose_item(seed, allocations, COMMANDS, &which, &nth))
        return;
    nth++; /* from 1 */
    command_result result = run_failing(&commands[which], nth);
    const char *name = commands[which].words[0], *output = result.output ? result.output : "";
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
