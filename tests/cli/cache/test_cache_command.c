/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel cache: what it lists, and what it removes.
 */
#include "cli/cache/cache_fixture.h"

#include <time.h>

static char checkpoint[4096];

static int set_up(void **state) {
    (void)state;
    snprintf(checkpoint, sizeof checkpoint, "%s", make_checkpoint("model"));
    use_cache();
    return 0;
}

static void make_program(const char *path) {
    command_result result = answer(path);
    assert_says(&result, "exporting ");
}

static void assert_state(const char *state) {
    char quoted[64], *list = output_of(GUMBEL(NULL, "cache", "list", "--json"));
    snprintf(quoted, sizeof quoted, "\"state\": \"%s\"", state);
    assert_has(list, quoted);
    free(list);
}

static void assert_prints(command_result result, const char *part) {
    char *output = output_of(result);
    assert_has(output, part);
    free(output);
}

/* The entry was used so many days ago. */
static void age(const char *model, long days) {
    char path[4200];
    snprintf(path, sizeof path, "%s/entry", entry_of(model));
    struct timespec then;
    clock_gettime(CLOCK_REALTIME, &then);
    then.tv_sec -= days * 86400;
    assert_int_equal(utimensat(AT_FDCWD, path, (const struct timespec[]){then, then}, 0), 0);
}

static void an_empty_cache_has_no_programs(void **state) {
    (void)state;
    assert_prints(GUMBEL(NULL, "cache"), "no programs in ");
    char *list = output_of(GUMBEL(NULL, "cache", "--json"));
    assert_string_equal(list, "[]");
    free(list);
    assert_prints(GUMBEL(NULL, "cache", "rm", "--all"), "freed 0 bytes");
    assert_int_equal(access(cache, F_OK), -1);
}

static void lists_what_a_program_is_made_from(void **state) {
    (void)state;
    command_result result = GUMBEL(NULL, "run", checkpoint, "--quantize", "int4", ANSWER);
    assert_says(&result, "exporting ");
    char *list = output_of(GUMBEL(NULL, "cache", "list"));
    assert_has(list, "NAME ");
    assert_has(list, "model-");
    assert_has(list, " current ");
    assert_has(list, " int4 ");
    assert_has(list, checkpoint);
    assert_has(list, "1 program, 2.2 MB in ");
    free(list);
    list = output_of(GUMBEL(NULL, "cache", "--json"));
    assert_has(list, "\"model\": \"model\"");
    assert_has(list, "\"recipe\": \"int4\"");
    assert_has(list, "\"max_context\": 0");
    assert_has(list, checkpoint);
    free(list);
}

static void tells_states_apart(void **state) {
    (void)state;
    const char *away = temporary_path("away");
    make_program(checkpoint);
    assert_state("current");
    write_text(temporary_path("model/added.json"), "{}");
    assert_state("stale");
    assert_int_equal(unlink(temporary_path("model/added.json")), 0);
    assert_state("current");
    assert_int_equal(rename(checkpoint, away), 0);
    assert_state("orphaned");
    assert_int_equal(rename(away, checkpoint), 0);
    assert_int_equal(truncate(program_of("model"), 5000), 0);
    assert_state("unreadable");
    command_result result = GUMBEL(NULL, "cache");
    assert_says(&result, "truncated");
    assert_int_equal(unlink(program_of("model")), 0);
    assert_state("unfinished");
    char path[4200];
    snprintf(path, sizeof path, "%s/entry", entry_of("model"));
    write_text(path, "{}");
    assert_state("unreadable");
}

/* A stale one beside a current one: prune takes the first. */
static void prunes_what_is_of_no_use(void **state) {
    (void)state;
    make_checkpoint("other");
    make_program(checkpoint);
    make_program(temporary_path("other"));
    assert_prints(GUMBEL(NULL, "cache", "prune"), "freed 0 bytes");
    write_text(temporary_path("other/added.json"), "{}");
    assert_prints(GUMBEL(NULL, "cache", "prune", "--dry-run"), "would remove other-");
    assert_int_equal(count_entries(), 2);
    assert_prints(GUMBEL(NULL, "cache", "prune"), "removed other-");
    assert_int_equal(count_entries(), 1);
    command_result result = answer(checkpoint);
    assert_quiet(&result);
    assert_int_equal(unlink(temporary_path("other/added.json")), 0);
}

static void prunes_what_was_not_used_for_long(void **state) {
    (void)state;
    make_checkpoint("other");
    make_program(checkpoint);
    make_program(temporary_path("other"));
    age("model", 40);
    age("other", 40);
    command_result result = answer(checkpoint); /* is a use */
    assert_quiet(&result);
    assert_prints(GUMBEL(NULL, "cache", "prune", "--older-than", "41"), "freed 0 bytes");
    assert_prints(GUMBEL(NULL, "cache", "prune", "--older-than", "30"), "removed other-");
    assert_int_equal(count_entries(), 1);
    entry_of("model-");
}

static void prunes_to_a_size(void **state) {
    (void)state;
    make_checkpoint("other");
    make_program(checkpoint);
    make_program(temporary_path("other"));
    age("model", 1);
    assert_prints(GUMBEL(NULL, "cache", "prune", "--max-size", "16MB"), "freed 0 bytes");
    assert_prints(GUMBEL(NULL, "cache", "prune", "--max-size", "15MB"), "removed model-");
    assert_int_equal(count_entries(), 1);
    assert_prints(GUMBEL(NULL, "cache", "prune", "--keep-bytes", "1"), "removed other-");
    assert_int_equal(count_entries(), 0);
}

static void removes_by_name(void **state) {
    (void)state;
    make_checkpoint("other");
    make_program(checkpoint);
    make_program(temporary_path("other"));
    command_result result = GUMBEL(NULL, "run", checkpoint, "--quantize", "int8", ANSWER);
    assert_says(&result, "exporting ");
    assert_refuses(GUMBEL(NULL, "cache", "rm", "model", "nothing"),
                   "nothing: there is no such entry or model");
    assert_int_equal(count_entries(), 3);
    assert_prints(GUMBEL(NULL, "cache", "rm", "model", strrchr(entry_of("other-"), '/') + 1),
                  "removed other-");
    assert_int_equal(count_entries(), 0);
    make_program(checkpoint);
    assert_prints(GUMBEL(NULL, "cache", "rm", checkpoint), "removed model-");
    assert_int_equal(count_entries(), 0);
}

/* What runs keeps its file; the next one makes it again. */
static void a_removed_program_is_made_again(void **state) {
    (void)state;
    make_program(checkpoint);
    assert_prints(GUMBEL(NULL, "cache", "rm", "--all"), "removed model-");
    make_program(checkpoint);
}

static void assert_usage(command_result result, const char *part) {
    assert_status(result, 2);
    assert_one_error_line(&result, part);
    free_result(&result);
}

static void refuses_what_makes_no_sense(void **state) {
    (void)state;
    assert_usage(GUMBEL(NULL, "cache", "lits"), "expected list, rm or prune");
    assert_usage(GUMBEL(NULL, "cache", "list", "model"), "takes no names");
    assert_usage(GUMBEL(NULL, "cache", "rm"), "needs the NAMEs");
    assert_usage(GUMBEL(NULL, "cache", "rm", "model", "--all"), "needs the NAMEs");
    assert_usage(GUMBEL(NULL, "cache", "prune", "--all"), "option of cache rm");
    assert_usage(GUMBEL(NULL, "cache", "rm", "model", "--json"), "option of cache list");
    assert_usage(GUMBEL(NULL, "cache", "rm", "model", "--max-size", "1"), "options of cache prune");
    assert_usage(GUMBEL(NULL, "cache", "list", "--dry-run"), "option of cache rm and cache prune");
    assert_usage(GUMBEL(NULL, "cache", "prune", "--max-size", "1x"), "expected a size");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_empty_cache_has_no_programs, empty_cache),
        cmocka_unit_test_setup(lists_what_a_program_is_made_from, empty_cache),
        cmocka_unit_test_setup(tells_states_apart, empty_cache),
        cmocka_unit_test_setup(prunes_what_is_of_no_use, empty_cache),
        cmocka_unit_test_setup(prunes_what_was_not_used_for_long, empty_cache),
        cmocka_unit_test_setup(prunes_to_a_size, empty_cache),
        cmocka_unit_test_setup(removes_by_name, empty_cache),
        cmocka_unit_test_setup(a_removed_program_is_made_again, empty_cache),
        cmocka_unit_test_setup(refuses_what_makes_no_sense, empty_cache),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
