/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may write to the cache: a program from it is run, so it must be the user's own.
 */
#include "cli/cache/cache_fixture.h"

static char checkpoint[4096];

static int set_up(void **state) {
    (void)state;
    snprintf(checkpoint, sizeof checkpoint, "%s", make_checkpoint("model"));
    use_cache();
    return 0;
}

/* Begins with a cache that has the program. */
static int fill_cache(void **state) {
    empty_cache(state);
    command_result result = answer(checkpoint);
    assert_says(&result, "exporting ");
    return 0;
}

static mode_t mode_of(const char *path) {
    struct stat file;
    assert_int_equal(stat(path, &file), 0);
    return file.st_mode & 07777;
}

static void is_made_for_the_user_alone(void **state) {
    (void)state;
    mode_t mask = umask(0);
    fill_cache(state);
    umask(mask);
    assert_int_equal(mode_of(cache), 0700);
    assert_int_equal(mode_of(entry_of("model")), 0700);
    assert_int_equal(mode_of(program_of("model")), 0600);
}

static void folders_that_others_write_to_are_refused(void **state) {
    (void)state;
    static const struct {
        mode_t mode;
        const char *shown;
    } bad[] = {{0777, "its mode is 0777"}, {0770, "its mode is 0770"}, {01703, "its mode is 1703"}};
    const char *const folders[] = {cache, entry_of("model")};
    for (size_t f = 0; f < 2; f++) {
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            char advice[4200];
            assert_int_equal(chmod(folders[f], bad[i].mode), 0);
            assert_refuses(answer(checkpoint), bad[i].shown);
            snprintf(advice, sizeof advice, "chmod 700 %s if all in it is yours", folders[f]);
            assert_refuses(answer(checkpoint), advice);
        }
        assert_int_equal(chmod(folders[f], 0755), 0);
        command_result result = answer(checkpoint);
        assert_quiet(&result);
    }
}

static void the_list_refuses_it_too(void **state) {
    (void)state;
    assert_int_equal(chmod(cache, 0777), 0);
    assert_refuses(GUMBEL(NULL, "cache"), "its mode is 0777");
    assert_refuses(GUMBEL(NULL, "cache", "rm", "--all"), "its mode is 0777");
    assert_int_equal(chmod(cache, 0700), 0);
    assert_int_equal(chmod(entry_of("model"), 0777), 0);
    command_result result = GUMBEL(NULL, "cache");
    assert_has(result.output, "unreadable");
    assert_says(&result, "its mode is 0777");
    assert_int_equal(chmod(entry_of("model"), 0700), 0);
}

static void files_that_others_write_to_are_refused(void **state) {
    (void)state;
    char program[4096];
    snprintf(program, sizeof program, "%s", program_of("model"));
    assert_int_equal(chmod(program, 0666), 0);
    assert_refuses(answer(checkpoint), ".gumbel: its mode is 0666");
    assert_int_equal(unlink(program), 0);
    assert_int_equal(symlink("/etc/passwd", program), 0);
    assert_refuses(answer(checkpoint), ".gumbel: it is no regular file");
}

/* Only root can make files of others; for root, too, those are not to be trusted. */
static void what_belongs_to_others_is_refused(void **state) {
    (void)state;
    if (geteuid() != 0)
        skip();
    char program[4096], entry[4096];
    snprintf(program, sizeof program, "%s", program_of("model"));
    snprintf(entry, sizeof entry, "%s", entry_of("model"));
    const char *const paths[] = {cache, entry, program};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(chown(paths[i], 12345, (gid_t)-1), 0);
        assert_refuses(answer(checkpoint), "it belongs to user 12345, and you are user 0");
        assert_int_equal(chown(paths[i], 0, (gid_t)-1), 0);
    }
    command_result result = answer(checkpoint);
    assert_quiet(&result);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_made_for_the_user_alone),
        cmocka_unit_test_setup(folders_that_others_write_to_are_refused, fill_cache),
        cmocka_unit_test_setup(the_list_refuses_it_too, fill_cache),
        cmocka_unit_test_setup(files_that_others_write_to_are_refused, fill_cache),
        cmocka_unit_test_setup(what_belongs_to_others_is_refused, fill_cache),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
