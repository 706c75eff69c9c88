/* SPDX-License-Identifier: Apache-2.0
 *
 * Several processes that want one program at the same time, and those that are killed while they make it.
 */
#include "cli/cache/cache_fixture.h"
#include "cli/writing.h"

#include "support/checkpoints/large_checkpoint.h"

#include <signal.h>
#include <sys/file.h>
#include <time.h>

static char checkpoint[4096], large[4096];

static int set_up(void **state) {
    (void)state;
    snprintf(checkpoint, sizeof checkpoint, "%s", make_checkpoint("model"));
    snprintf(large, sizeof large, "%s", temporary_path("large"));
    mkdir(large, 0777);
    write_large_checkpoint(large, 512, 2);
    use_cache();
    return 0;
}

static void start_answer(running_command *started) {
    const char *const words[] = {gumbel_command_path, "run", checkpoint, ANSWER, NULL};
    start_command(started, words);
    feed_command(started, NULL);
}

/* Makes the entry without its program and takes its lock, as a process does that exports. */
static int hold_entry(void) {
    char path[4200];
    command_result result = answer(checkpoint);
    assert_says(&result, "exporting ");
    assert_int_equal(unlink(program_of("model")), 0);
    snprintf(path, sizeof path, "%s/.%s", cache, strrchr(entry_of("model"), '/') + 1);
    int lock = open(path, O_RDWR | O_CLOEXEC);
    assert_true(lock >= 0);
    assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
    return lock;
}

static size_t count_lines(const char *text, const char *part) {
    size_t count = 0;
    for (; text && (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

/* Both wait for the third; then one of them exports, and the other takes what it made. */
static void two_first_runs_export_once(void **state) {
    (void)state;
    enum { RUNS = 2 };
    running_command started[RUNS];
    command_result results[RUNS];
    size_t exports = 0;
    int lock = hold_entry();
    for (size_t i = 0; i < RUNS; i++)
        start_answer(&started[i]);
    for (size_t i = 0; i < RUNS; i++)
        await_errors(&started[i], "another gumbel exports ", 60);
    close(lock);
    for (size_t i = 0; i < RUNS; i++) {
        results[i] = finish_command(&started[i], 60);
        assert_status(results[i], 0);
        assert_int_equal(count_lines(results[i].errors, "waiting for it"), 1);
        exports += count_lines(results[i].errors, "gumbel: wrote ");
    }
    assert_int_equal(exports, 1);
    assert_string_equal(results[0].output, results[1].output);
    for (size_t i = 0; i < RUNS; i++)
        free_result(&results[i]);
}

static void waiting_can_be_interrupted(void **state) {
    (void)state;
    running_command started;
    int lock = hold_entry();
    start_answer(&started);
    await_errors(&started, "waiting for it", 60);
    assert_int_equal(kill(started.process, SIGINT), 0);
    command_result result = finish_command(&started, 60);
    assert_status(result, 130);
    assert_has(result.errors, "model: cancelled while another gumbel exports it");
    free_result(&result);
    close(lock);
}

/* Without anything that is held: whoever comes second, before or after the first is done, exports nothing. */
static void two_at_once(void **state) {
    (void)state;
    running_command started[2];
    size_t exports = 0;
    for (size_t i = 0; i < 2; i++)
        start_answer(&started[i]);
    for (size_t i = 0; i < 2; i++) {
        command_result result = finish_command(&started[i], 60);
        exports += count_lines(result.errors, "gumbel: exporting ");
        assert_status(result, 0);
        free_result(&result);
    }
    assert_int_equal(exports, 1);
    assert_int_equal(count_entries(), 1);
}

static void what_is_being_made_is_not_removed(void **state) {
    (void)state;
    int lock = hold_entry();
    char *list = output_of(GUMBEL(NULL, "cache", "--json"));
    assert_has(list, "\"state\": \"exporting\"");
    free(list);
    list = output_of(GUMBEL(NULL, "cache", "prune", "--max-size", "0"));
    assert_string_equal(list, "freed 0 bytes");
    free(list);
    assert_refuses(GUMBEL(NULL, "cache", "rm", "--all"), "is being exported; it stays");
    assert_int_equal(count_entries(), 1);
    close(lock);
    list = output_of(GUMBEL(NULL, "cache", "rm", "--all"));
    assert_has(list, "removed model-");
    free(list);
    assert_int_equal(count_entries(), 0);
}

static bool has_record(const char *entry) {
    char path[4200];
    snprintf(path, sizeof path, "%s/entry", entry);
    return access(path, F_OK) == 0;
}

/* Waits until an export has begun to write: the entry has a record. */
static void await_export(pid_t process) {
    for (int i = 0; i < 6000; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        if (access(cache, F_OK) == 0 && count_entries() == 1 && has_record(entry_of("large"))) {
            await_writing(process, cache, 60);
            return;
        }
    }
    fail_msg("no export began");
}

static void a_killed_export_blocks_nobody(void **state) {
    (void)state;
    const char *const words[] = {gumbel_command_path, "inspect", large, "--quantize", "int4", NULL};
    running_command started;
    start_command(&started, words);
    feed_command(&started, NULL);
    await_export(started.process);
    assert_int_equal(kill(started.process, SIGKILL), 0);
    command_result result = finish_command(&started, 60);
    assert_status(result, 128 + SIGKILL);
    free_result(&result);
    char *list = output_of(GUMBEL(NULL, "cache", "list", "--json"));
    assert_has(list, "\"state\": \"unfinished\"");
    free(list);

    result = run_command(words, NULL);
    assert_lacks(result.errors, "waiting");
    assert_says(&result, "an earlier export was not finished; exporting ");
    assert_int_equal(count_files(entry_of("large")), 2);
    assert_int_equal(count_entries(), 1);
}

/* The lock goes with the process, and whoever waits makes the program himself. */
static void who_waits_for_a_killed_export_takes_over(void **state) {
    (void)state;
    const char *const words[] = {gumbel_command_path, "inspect", large, "--quantize", "int4", NULL};
    running_command first, second;
    start_command(&first, words);
    feed_command(&first, NULL);
    await_export(first.process);
    assert_int_equal(kill(first.process, SIGSTOP), 0);
    start_command(&second, words);
    feed_command(&second, NULL);
    await_errors(&second, "waiting for it", 60);
    assert_int_equal(kill(first.process, SIGKILL), 0);
    command_result result = finish_command(&first, 60);
    assert_status(result, 128 + SIGKILL);
    free_result(&result);
    result = finish_command(&second, 60);
    assert_says(&result, "gumbel: wrote ");
    assert_int_equal(count_files(entry_of("large")), 2);
}

/* Runs gumbel beside what a killed export has left, where the file system has no files without a name. */
static void assert_tidies(const char *const *words) {
    char left[4200];
    snprintf(left, sizeof left, "%s/.gumbel-temporary-0000", entry_of("model"));
    write_text(left, "half a program");
    assert_int_equal(count_files(entry_of("model")), 3);
    free(output_of(run_command(words, NULL)));
    assert_int_equal(count_files(entry_of("model")), 2);
}

static void what_a_killed_export_left_goes_with_the_next_command(void **state) {
    (void)state;
    char program[4200];
    command_result result = answer(checkpoint);
    free_result(&result);
    snprintf(program, sizeof program, "%s", program_of("model"));
    assert_tidies((const char *const[]){gumbel_command_path, "cache", NULL});
    assert_tidies((const char *const[]){gumbel_command_path, "inspect", checkpoint, NULL});
    assert_tidies((const char *const[]){gumbel_command_path, "inspect", program, NULL});
    assert_tidies((const char *const[]){gumbel_command_path, "tokenize", program, "text", NULL});
}

static void what_a_killed_export_leaves_can_be_pruned(void **state) {
    (void)state;
    int lock = hold_entry();
    char path[4200];
    snprintf(path, sizeof path, "%s/.part", entry_of("model"));
    write_text(path, "half a program");
    close(lock);
    char *list = output_of(GUMBEL(NULL, "cache", "prune"));
    assert_has(list, ": unfinished, ");
    free(list);
    assert_int_equal(count_entries(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(two_first_runs_export_once, empty_cache),
        cmocka_unit_test_setup(waiting_can_be_interrupted, empty_cache),
        cmocka_unit_test_setup(two_at_once, empty_cache),
        cmocka_unit_test_setup(what_is_being_made_is_not_removed, empty_cache),
        cmocka_unit_test_setup(a_killed_export_blocks_nobody, empty_cache),
        cmocka_unit_test_setup(who_waits_for_a_killed_export_takes_over, empty_cache),
        cmocka_unit_test_setup(what_a_killed_export_left_goes_with_the_next_command, empty_cache),
        cmocka_unit_test_setup(what_a_killed_export_leaves_can_be_pruned, empty_cache),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
