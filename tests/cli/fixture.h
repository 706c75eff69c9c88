/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the built program share: a checkpoint of random weights with a real tokenizer and chat
 * format, exported by the program itself, and short ways to call it.
 */
#ifndef GUMBEL_TESTS_CLI_FIXTURE_H
#define GUMBEL_TESTS_CLI_FIXTURE_H

#include "cli/program_path.h"
#include "support/paths.h"
#include "support/run_command.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Runs gumbel with the given words and input (NULL: none). */
#define GUMBEL(input, ...) run_command((const char *const[]){gumbel_command_path, __VA_ARGS__, NULL}, (input))

static inline void copy_file(const char *from, const char *to) {
    FILE *file = fopen(from, "rb");
    assert_non_null(file);
    static char bytes[1 << 20];
    size_t size = fread(bytes, 1, sizeof bytes, file);
    assert_true(feof(file));
    fclose(file);
    write_file(to, bytes, size);
}

/* A directory like a checkpoint's, but without weights: the config of tests/data/cli, and the tokenizer and
 * chat template of the bundled model. */
static inline const char *checkpoint_directory(void) {
    static char path[4096];
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"};
    if (path[0])
        return path;
    copy_file(test_data("cli/config.json"), temporary_path("checkpoint/config.json"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char from[4096], to[64];
        snprintf(from, sizeof from, "%s/gemma4-tiny/%s", test_models_folder, names[i]);
        snprintf(to, sizeof to, "checkpoint/%s", names[i]);
        copy_file(from, temporary_path(to));
    }
    snprintf(path, sizeof path, "%s", temporary_path("checkpoint"));
    return path;
}

/* The path of a program made from it. context: positions, as text. */
static inline const char *export_program(const char *name, const char *context, bool logits) {
    static char paths[4][4096];
    static size_t next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s", temporary_path(name));
    command_result result = GUMBEL(NULL, "export", checkpoint_directory(), "--random-weights", "7", "-o",
                                   path, "--max-context", context, logits ? "--logits" : NULL);
    assert_status(result, 0);
    free_result(&result);
    return path;
}

/* The standard output of a command that must succeed, without its last newline. Free with free(). */
static inline char *output_of(command_result result) {
    assert_status(result, 0);
    char *output = strdup(result.output ? result.output : "");
    size_t length = strlen(output);
    if (length > 0 && output[length - 1] == '\n')
        output[length - 1] = '\0';
    free_result(&result);
    return output;
}

static inline void assert_has(const char *text, const char *part) {
    if (!text || !strstr(text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, text ? text : "");
}

/* Exactly one line, which begins with "gumbel: " and has part. */
static inline void assert_one_error_line(const command_result *result, const char *part) {
    const char *errors = result->errors ? result->errors : "";
    assert_int_equal(strncmp(errors, "gumbel: ", 8), 0);
    assert_int_equal(strcspn(errors, "\n") + 1, strlen(errors));
    assert_has(errors, part);
}

#endif
