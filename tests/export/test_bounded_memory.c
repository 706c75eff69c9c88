/* SPDX-License-Identifier: Apache-2.0
 *
 * An export needs far less memory than its checkpoint has bytes: 275 MB of weights pass through a process
 * that may not have half of that. The statistics of the export are checked on the way.
 */
#include "base/memory.h"
#include "gumbel.h"
#include "support/checkpoints/large_checkpoint.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { VOCABULARY = 32768, LAYERS = 4 };
static const uint64_t MEMORY_LIMIT = 96 << 20; /* bytes */

#if defined(__SANITIZE_ADDRESS__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif
#ifndef HAS_SANITIZER
#define HAS_SANITIZER 0 /* with one, memory is the sanitizer's: only allocations are looked at */
#endif

/* What the process that exports tells. */
typedef struct outcome {
    gumbel_error error;
    gumbel_export_stats stats;
    size_t largest_allocation;
} outcome;

static bool note_allocation(void *user, size_t bytes) {
    outcome *told = user;
    if (bytes > told->largest_allocation)
        told->largest_allocation = bytes;
    return true;
}

static void export_and_tell(const char *checkpoint, const char *program, const char *recipe, int pipe_end) {
    outcome told = {.stats.size = sizeof told.stats};
    struct rlimit limit = {MEMORY_LIMIT, MEMORY_LIMIT};
    gumbel_export_options options = {.size = sizeof options, .quantize = recipe, .stats = &told.stats};
    if (!HAS_SANITIZER)
        setrlimit(RLIMIT_DATA, &limit);
    gb_set_allocation_hook(note_allocation, &told);
    gumbel_export(checkpoint, program, &options, &told.error);
    bool good = write(pipe_end, &told, sizeof told) == (ssize_t)sizeof told;
    _exit(good ? 0 : 1);
}

static outcome export_within_limit(const char *checkpoint, const char *program, const char *recipe) {
    outcome told;
    int ends[2], status = 0;
    struct rusage usage;
    assert_int_equal(pipe(ends), 0);
    pid_t process = fork();
    assert_true(process >= 0);
    if (process == 0)
        export_and_tell(checkpoint, program, recipe, ends[1]);
    close(ends[1]);
    assert_int_equal(read(ends[0], &told, sizeof told), sizeof told);
    close(ends[0]);
    assert_int_equal(wait4(process, &status, 0, &usage), process);
    if (told.error.status != GUMBEL_OK)
        fail_msg("%s", told.error.message);
#if defined(__APPLE__)
    uint64_t peak = (uint64_t)usage.ru_maxrss;
#else
    uint64_t peak = (uint64_t)usage.ru_maxrss * 1024;
#endif
    if (!HAS_SANITIZER && peak > MEMORY_LIMIT)
        fail_msg("peak memory of %.1f MB", (double)peak / 1e6);
    print_message("%s: peak memory %.1f MB, largest allocation %.1f MB, %.1f s\n", recipe, (double)peak / 1e6,
                  (double)told.largest_allocation / 1e6, told.stats.seconds);
    return told;
}

static void passes_through_little_memory(void **state) {
    (void)state;
    char checkpoint[512];
    write_text(temporary_path("large/empty"), "");
    snprintf(checkpoint, sizeof checkpoint, "%s", temporary_path("large"));
    const char *program = temporary_path("program.gumbel");
    uint64_t bytes = write_large_checkpoint(checkpoint, VOCABULARY, LAYERS);
    assert_true(bytes > 2 * MEMORY_LIMIT);
    static const char *const recipes[] = {"none", "int8"};
    for (size_t i = 0; i < 2; i++) {
        outcome told = export_within_limit(checkpoint, program, recipes[i]);
        struct stat file;
        assert_int_equal(stat(program, &file), 0);
        assert_true(told.stats.bytes_written == (uint64_t)file.st_size);
        assert_true(told.stats.bytes_read >= bytes && told.stats.bytes_read < bytes + bytes / 2);
        assert_true(told.stats.threads >= 1);
        assert_true(told.stats.write_seconds > 0 && told.stats.write_seconds < told.stats.seconds);
        assert_true(told.largest_allocation <= 32 << 20);
        assert_int_equal(unlink(program), 0);
    }
}

static void stats_need_a_size(void **state) {
    (void)state;
    gumbel_export_stats stats = {0};
    gumbel_export_options options = {.size = sizeof options, .stats = &stats};
    gumbel_error error;
    assert_int_equal(gumbel_export("/no/such", "/no/such", &options, &error), GUMBEL_ERROR_ARGUMENT);
    assert_string_equal(error.message, "export stats: the field size is 0, expected its sizeof");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_through_little_memory),
        cmocka_unit_test(stats_need_a_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
