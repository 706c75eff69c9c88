/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the cache share: checkpoints made of a bundled model, a cache of their own, and short
 * ways to look at it.
 */
#ifndef GUMBEL_TESTS_CLI_CACHE_CACHE_FIXTURE_H
#define GUMBEL_TESTS_CLI_CACHE_CACHE_FIXTURE_H

#include "cli/fixture.h"
#include "support/paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* $XDG_CACHE_HOME/gumbel; set by use_cache. */
static char cache[4096];

static inline void use_cache(void) {
    snprintf(cache, sizeof cache, "%s", temporary_path("caches/gumbel"));
    assert_int_equal(setenv("XDG_CACHE_HOME", temporary_path("caches"), 1), 0);
}

static inline void run_plainly(const char *const *words) {
    command_result result = run_command(words, NULL);
    assert_status(result, 0);
    free_result(&result);
}

/* Begins with an empty cache; for cmocka_unit_test_setup. */
static inline int empty_cache(void **state) {
    (void)state;
    run_plainly((const char *const[]){"/bin/rm", "-rf", cache, NULL});
    return 0;
}

/* A folder in the temporary directory with the bundled Gemma 4: links, and a config.json of its own. */
static inline const char *make_checkpoint(const char *name) {
    static const char *const linked[] = {"model.safetensors", "tokenizer.json", "tokenizer_config.json",
                                         "chat_template.jinja", "generation_config.json"};
    char from[4096], to[128];
    for (size_t i = 0; i < sizeof linked / sizeof *linked; i++) {
        snprintf(from, sizeof from, "%s/gemma4-tiny/%s", test_models_folder, linked[i]);
        snprintf(to, sizeof to, "%s/%s", name, linked[i]);
        unlink(temporary_path(to));
        assert_int_equal(symlink(from, temporary_path(to)), 0);
    }
    snprintf(to, sizeof to, "%s/config.json", name);
    copy_file(bundled_model("gemma4-tiny/config.json"), temporary_path(to));
    return temporary_path(name);
}

#define ANSWER "--tokens", "2,17,99", "--print-tokens", "-n", "8", "--temp", "0"

static inline command_result answer(const char *model) {
    return GUMBEL(NULL, "run", model, ANSWER);
}

/* The command went well and said nothing on standard error but, of an answer, why it ended. */
static inline void assert_quiet(command_result *result) {
    const char *errors = result->errors ? result->errors : "";
    assert_status(*result, 0);
    if (strcmp(errors, "gumbel: stopped at 8 tokens (-n)\n") != 0)
        assert_string_equal(errors, "");
    free_result(result);
}

/* Standard error has a part, and the command went well. */
static inline void assert_says(command_result *result, const char *part) {
    assert_status(*result, 0);
    assert_has(result->errors, part);
    free_result(result);
}

/* It failed with one line that has the part. */
static inline void assert_refuses(command_result result, const char *part) {
    assert_status(result, 1);
    assert_one_error_line(&result, part);
    free_result(&result);
}

static inline void assert_lacks(const char *text, const char *part) {
    if (text && strstr(text, part))
        fail_msg("\"%s\" is in \"%s\"", part, text);
}

enum { PATH_BYTES = 4096 };

/* Finds the one name in folder that begins and ends so; its path. */
static inline void find_name(const char *folder, const char *beginning, const char *ending,
                             char path[PATH_BYTES]) {
    DIR *names = opendir(folder);
    assert_non_null(names);
    path[0] = '\0';
    for (const struct dirent *name; (name = readdir(names));) {
        size_t length = strlen(name->d_name), tail = strlen(ending);
        if (length > tail && name->d_name[0] != '.' && strcmp(name->d_name + length - tail, ending) == 0 &&
            strncmp(name->d_name, beginning, strlen(beginning)) == 0) {
            assert_int_equal(path[0], '\0');
            snprintf(path, PATH_BYTES, "%.2000s/%.2000s", folder, name->d_name);
        }
    }
    closedir(names);
    assert_int_not_equal(path[0], '\0');
}

/* Names in the cache but for those of locks, which stay and begin with a dot. */
static inline size_t count_entries(void) {
    size_t count = 0;
    DIR *names = opendir(cache);
    assert_non_null(names);
    for (const struct dirent *name; (name = readdir(names));)
        count += name->d_name[0] != '.';
    closedir(names);
    return count;
}

/* The folder of the one entry whose name begins so; valid until the next call. */
static inline const char *entry_of(const char *model) {
    static char path[PATH_BYTES];
    find_name(cache, model, "", path);
    return path;
}

/* Its one program; valid until the next call. */
static inline const char *program_of(const char *model) {
    static char path[PATH_BYTES];
    find_name(entry_of(model), "", ".gumbel", path);
    return path;
}

#endif
