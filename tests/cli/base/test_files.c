/* SPDX-License-Identifier: Apache-2.0
 *
 * Files as users name them: outputs that are inputs, devices or links, inputs that nobody writes, files that
 * are cut short while a command reads them, and what killed exports leave.
 */
#include "cli/fixture.h"
#include "cli/writing.h"

#include "base/temporary_file.h"

#include "support/checkpoints/large_checkpoint.h"
#include "support/paths.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LAST_SECONDS = 60 };

static char program[4096], fifo[4096];

static int set_up(void **state) {
    (void)state;
    snprintf(program, sizeof program, "%s", export_program("model.gumbel", "32768", false));
    snprintf(fifo, sizeof fifo, "%s", temporary_path("special/fifo"));
    return mkfifo(fifo, 0600);
}

static void assert_refused(command_result result, const char *part) {
    assert_status(result, 1);
    assert_one_error_line(&result, part);
    free_result(&result);
}

/* The bytes of a file as one number. */
static uint64_t sum_of(const char *path) {
    uint64_t sum = 0;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    for (int byte; (byte = getc(file)) != EOF;)
        sum = sum * 31 + (uint64_t)byte;
    fclose(file);
    return sum;
}

/* ---- Outputs ------------------------------------------------------------------------------------------- */

static void outputs_are_regular_files(void **state) {
    (void)state;
    char lines[9000];
    const char *device = temporary_path("special/device");
    assert_int_equal(symlink("/dev/null", device), 0);
    assert_refused(GUMBEL(NULL, "export", checkpoint_directory(), "--random-weights", "7", "-o", fifo),
                   "special/fifo: is a FIFO, expected a regular file or a new name");
    assert_refused(GUMBEL(NULL, "export", checkpoint_directory(), "--random-weights", "7", "-o", device),
                   "special/device: is a character device, expected a regular file or a new name");
    assert_refused(GUMBEL(NULL, "pack", program, "-o", device), "special/device: is a character device");
    assert_refused(GUMBEL(NULL, "pack", program, "-o", temporary_directory()), ": is a directory, expected");
    assert_refused(GUMBEL(NULL, "pack", program, "-o", ""), "the output's name is empty");
    snprintf(lines, sizeof lines, "/save %s\n", fifo);
    assert_refused(GUMBEL(lines, "chat", program, "--temp", "0"), "special/fifo: is a FIFO");
    snprintf(lines, sizeof lines, "/save %s\n", device);
    assert_refused(GUMBEL(lines, "chat", program, "--temp", "0"), "special/device: is a character device");
    struct stat file;
    assert_int_equal(stat(device, &file), 0);
    assert_true(S_ISCHR(file.st_mode));
    assert_int_equal(stat(fifo, &file), 0);
    assert_true(S_ISFIFO(file.st_mode));
    assert_int_equal(count_files(temporary_path("special")), 2);
}

/* A copy of the bundled model in "copy", which the test may damage. */
static const char *copy_model(void) {
    char from[4096];
    snprintf(from, sizeof from, "%s/gemma4-tiny/.", test_models_folder);
    const char *to = temporary_path("copy");
    command_result result = run_command((const char *const[]){"/bin/cp", "-r", from, to, NULL}, NULL);
    assert_status(result, 0);
    free_result(&result);
    return to;
}

static void outputs_are_no_inputs(void **state) {
    (void)state;
    static const char *const names[] = {"config.json", "model.safetensors", "tokenizer.json",
                                        "tokenizer_config.json", "chat_template.jinja"};
    const char *model = copy_model();
    setenv("XDG_CACHE_HOME", temporary_path("caches"), 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64];
        snprintf(name, sizeof name, "copy/%s", names[i]);
        const char *output = temporary_path(name);
        uint64_t before = sum_of(output);
        assert_refused(GUMBEL(NULL, "export", model, "-q", "-o", output),
                       "is one of the files that are read");
        /* of the checkpoint's program in the cache, too, which is only looked up after the first time */
        command_result result = GUMBEL(NULL, "logits", model, "--tokens", "2", "-o", output);
        assert_status(result, 1);
        assert_has(result.errors, name);
        assert_has(result.errors, ": is one of the files that are read");
        free_result(&result);
        assert_true(sum_of(output) == before);
    }
}

static void a_program_survives_what_runs_it(void **state) {
    (void)state;
    char lines[9000];
    const char *scores = export_program("scores.gumbel", "256", true);
    assert_int_equal(link(program, temporary_path("hard.gumbel")), 0);
    assert_int_equal(symlink("model.gumbel", temporary_path("soft.gumbel")), 0);
    uint64_t before = sum_of(program), scores_before = sum_of(scores);
    assert_refused(GUMBEL(NULL, "logits", scores, "--tokens", "2", "-o", scores),
                   "scores.gumbel: is one of the files that are read");
    const char *const names[] = {program, temporary_path("hard.gumbel"), temporary_path("soft.gumbel")};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(lines, sizeof lines, "/save %s\n", names[i]);
        assert_refused(GUMBEL(lines, "chat", program, "--temp", "0"), "is one of the files that are read");
    }
    assert_true(sum_of(program) == before && sum_of(scores) == scores_before);
}

static void an_array_follows_a_link(void **state) {
    (void)state;
    const char *scores = export_program("scores.gumbel", "256", true), *link = temporary_path("link.npy");
    assert_int_equal(symlink("arrays/row.npy", link), 0);
    const char *row = temporary_path("arrays/row.npy");
    for (int i = 0; i < 2; i++) { /* made, and replaced */
        free(output_of(GUMBEL(NULL, "logits", scores, "--tokens", "2", "-o", link)));
        struct stat file;
        assert_int_equal(lstat(link, &file), 0);
        assert_true(S_ISLNK(file.st_mode));
        assert_int_equal(lstat(row, &file), 0);
        assert_true(S_ISREG(file.st_mode));
    }
    assert_int_equal(count_files(temporary_path("arrays")), 1);
}

/* ---- Inputs -------------------------------------------------------------------------------------------- */

static void nobody_waits_for_a_fifo(void **state) {
    (void)state;
    static const char part[] = "special/fifo: is a FIFO, expected a regular file";
    char lines[4200];
    assert_refused(GUMBEL(NULL, "run", fifo, "-p", "x"), part);
    assert_refused(GUMBEL(NULL, "inspect", fifo), part);
    assert_refused(GUMBEL(NULL, "pack", fifo, "-o", temporary_path("packed")), part);
    assert_refused(GUMBEL(NULL, "run", program, "-p", "x", "--chat-template-file", fifo), part);
    assert_refused(GUMBEL(NULL, "export", checkpoint_directory(), "--random-weights", "7", "--quantize", fifo,
                          "-o", temporary_path("quantized")),
                   part);
    const char *gguf = temporary_path("waits/model.gguf");
    assert_int_equal(mkfifo(gguf, 0600), 0);
    assert_refused(GUMBEL(NULL, "export", gguf, "-o", temporary_path("program")), "model.gguf: is a FIFO");
    snprintf(lines, sizeof lines, "/load %s\n", fifo);
    assert_refused(GUMBEL(lines, "chat", program, "--temp", "0"), part);
}

/* -f <(command) of a shell is one. */
static void a_prompt_may_come_from_a_fifo(void **state) {
    (void)state;
    char line[20000];
    char *expected = output_of(GUMBEL(NULL, "run", program, "-p", "Hello", "--temp", "0", "-n", "4"));
    snprintf(line, sizeof line, "echo Hello >'%s' & exec '%s' run '%s' -f '%s' --temp 0 -n 4", fifo,
             gumbel_command_path, program, fifo);
    char *found = output_of(run_command((const char *const[]){"/bin/sh", "-c", line, NULL}, NULL));
    assert_string_equal(found, expected);
    free(expected), free(found);
}

/* ---- Files that become shorter ------------------------------------------------------------------------- */

/* Copies the program, and feeds the command that runs the copy until it has answered; then cuts it short. */
static command_result cut_while_running(const char *const *words, const char *copy, const char *input,
                                        const char *more) {
    running_command started;
    copy_file(program, copy);
    start_command(&started, words);
    if (input)
        assert_int_equal(write(started.input, input, strlen(input)), strlen(input));
    await_output(&started, 1, LAST_SECONDS);
    assert_int_equal(truncate(copy, 4096), 0);
    feed_command(&started, more);
    return finish_command(&started, LAST_SECONDS);
}

static void assert_named(command_result result, const char *part) {
    assert_status(result, 1);
    assert_has(result.errors, "gumbel: /");
    assert_has(result.errors, part);
    free_result(&result);
}

static void a_program_cut_short_is_named(void **state) {
    (void)state;
    const char *copy = temporary_path("cut me.gumbel");
    static const char part[] = "/cut me.gumbel: was cut short while it was in use";
    assert_named(cut_while_running(
                     (const char *const[]){gumbel_command_path, "chat", copy, "--temp", "0", "-n", "3", NULL},
                     copy, "Hello\n", "Again\n"),
                 part);
    assert_named(cut_while_running((const char *const[]){gumbel_command_path, "run", copy, "-p", "Hello",
                                                         "--temp", "0", "-n", "-1", "--ignore-eos", NULL},
                                   copy, NULL, NULL),
                 part);
}

/* ---- Killed exports ------------------------------------------------------------------------------------ */

static bool has_nameless_files(const char *folder) {
    int directory = open(folder, O_RDONLY | O_DIRECTORY);
    int descriptor = gb_create_nameless(directory, 0600);
    if (descriptor >= 0)
        close(descriptor);
    close(directory);
    return descriptor >= 0;
}

/* Kills an export to output as soon as it has begun to write. Where a file needs a name, that is left. */
static void kill_export(const char *checkpoint, const char *output, const char *folder) {
    running_command started;
    size_t before = count_files(folder);
    start_command(&started, (const char *const[]){gumbel_command_path, "export", checkpoint, "-o", output,
                                                  "--quantize", "int4", NULL});
    feed_command(&started, NULL);
    await_writing(started.process, folder, LAST_SECONDS);
    assert_int_equal(kill(started.process, SIGKILL), 0);
    command_result result = finish_command(&started, LAST_SECONDS);
    assert_status(result, 128 + SIGKILL);
    free_result(&result);
    assert_int_equal(count_files(folder), before + !has_nameless_files(folder));
}

static void what_a_killed_export_left_is_removed(void **state) {
    (void)state;
    char checkpoint[4096], folder[4096], first[4096], second[4096];
    snprintf(folder, sizeof folder, "%s", temporary_path("output"));
    snprintf(first, sizeof first, "%s", temporary_path("output/first.gumbel"));
    snprintf(second, sizeof second, "%s", temporary_path("output/second.gumbel"));
    snprintf(checkpoint, sizeof checkpoint, "%s", temporary_path("large"));
    write_text(temporary_path("large/empty"), "");
    write_large_checkpoint(checkpoint, 16384, 1);
    kill_export(checkpoint, first, folder);
    write_text(temporary_path("output/.gumbel-temporary-0000"), "half a program"); /* without such files */
    command_result result = GUMBEL(NULL, "pack", program, "-o", first);
    assert_status(result, 0);
    free_result(&result);
    assert_int_equal(count_files(folder), 1);
    kill_export(checkpoint, second, folder);
    write_text(temporary_path("output/.gumbel-temporary-0000"), "half a program");
    result = GUMBEL(NULL, "pack", program, "-o", first); /* another output of that directory */
    assert_status(result, 0);
    free_result(&result);
    assert_int_equal(count_files(folder), 1);
}

/* A long name is no reason to fail: the temporary one does not hold it. */
static void names_may_be_as_long_as_the_system_allows(void **state) {
    (void)state;
    char name[256];
    for (int length = 246; length <= 255; length++) {
        memset(name, 'n', (size_t)length);
        name[length] = '\0';
        command_result result = GUMBEL(NULL, "pack", program, "-o", temporary_path(name));
        assert_status(result, 0);
        free_result(&result);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_regular_files),
        cmocka_unit_test(outputs_are_no_inputs),
        cmocka_unit_test(a_program_survives_what_runs_it),
        cmocka_unit_test(an_array_follows_a_link),
        cmocka_unit_test(nobody_waits_for_a_fifo),
        cmocka_unit_test(a_prompt_may_come_from_a_fifo),
        cmocka_unit_test(a_program_cut_short_is_named),
        cmocka_unit_test(what_a_killed_export_left_is_removed),
        cmocka_unit_test(names_may_be_as_long_as_the_system_allows),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
