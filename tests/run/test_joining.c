/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes of a launch find each other, at a socket's file and over TCP; whoever is missing, there twice, of
 * another launch or no process of one at all is named or turned away.
 */
#include "base/clock.h"
#include "gumbel.h"
#include "support/assertions.h"
#include "support/paths.h"
#include "support/processes.h"
#include "support/temporary.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE = 60, REFUSED = 40 };

static unsigned launches;
static char job[24]; /* of all processes, whichever forks which */

/* ---- Launches ------------------------------------------------------------------------------------------ */

/* Of one host, or of two with a process each. */
typedef struct launch {
    bool uses_tcp;
    unsigned port; /* of TCP; otherwise a number that names the launch */
} launch;

static unsigned find_port(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int made = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(made, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(made, (struct sockaddr *)&address, &size), 0);
    close(made);
    return ntohs(address.sin_port);
}

/* Processes that are forked have this one's folder. */
static launch new_launch(bool uses_tcp) {
    assert_int_equal(count_files(temporary_directory()), 0);
    snprintf(job, sizeof job, "%ld", (long)getpid());
    launches++;
    return (launch){uses_tcp, uses_tcp ? find_port() : launches};
}

/* Says that this process is of it. */
static void enter(const launch *l, uint32_t rank, uint32_t count) {
    set_launch(rank, count, l->port);
    setenv("TMPDIR", temporary_directory(), 1);
    setenv("TORCHELASTIC_RUN_ID", job, 1);
    unsetenv("TORCHELASTIC_USE_AGENT_STORE");
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    if (l->uses_tcp)
        setenv("LOCAL_WORLD_SIZE", "1", 1);
}

/* What another process does: joins, and ends with 0 where it could, otherwise with REFUSED + the status. */
static _Noreturn void join_and_end(const launch *l, uint32_t rank, uint32_t count, uint32_t seconds) {
    gumbel_process_group *group;
    gumbel_error error;
    enter(l, rank, count);
    const gumbel_status status = gumbel_process_group_join(seconds, &group, &error);
    gumbel_process_group_leave(group);
    _exit(status == GUMBEL_OK ? 0 : REFUSED + (int)status);
}

static pid_t fork_rank(const launch *l, uint32_t rank, uint32_t count, uint32_t seconds) {
    fflush(NULL);
    const pid_t made = fork();
    assert_true(made >= 0);
    if (made == 0)
        join_and_end(l, rank, count, seconds);
    return made;
}

static int status_of(pid_t process) {
    int status = 0;
    assert_int_equal(waitpid(process, &status, 0), process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static gumbel_status join(const launch *l, uint32_t rank, uint32_t count, uint32_t seconds,
                          gumbel_error *error) {
    gumbel_process_group *group;
    enter(l, rank, count);
    const gumbel_status status = gumbel_process_group_join(seconds, &group, error);
    gumbel_process_group_leave(group);
    return status;
}

static void check_all_join(const launch *l) {
    gumbel_error error;
    const pid_t one = fork_rank(l, 1, 3, PATIENCE), two = fork_rank(l, 2, 3, PATIENCE);
    assert_ok(join(l, 0, 3, PATIENCE, &error), &error);
    assert_int_equal(status_of(one), 0);
    assert_int_equal(status_of(two), 0);
}

/* A test at a socket's file and over TCP; after it the place is free again. */
static void check_both(void (*check)(const launch *l)) {
    for (int kind = 0; kind < 2; kind++) {
        const launch l = new_launch(kind == 1);
        check(&l);
        check_all_join(&l);
        assert_int_equal(count_files(temporary_directory()), 0);
    }
}

static void all_join(void **unused) {
    (void)unused;
    check_both(check_all_join);
}

static void one_process_is_alone(void **unused) {
    (void)unused;
    const launch l = new_launch(false);
    gumbel_error error;
    assert_ok(join(&l, 0, 1, 1, &error), &error);
}

/* ---- Who is missing ------------------------------------------------------------------------------------ */

/* Those who have come are told. */
static void check_missing(const launch *l) {
    gumbel_error error;
    const pid_t one = fork_rank(l, 1, 3, PATIENCE);
    assert_fails(join(l, 0, 3, 2, &error), GUMBEL_ERROR_IO, &error, "rank 2 has not come within 2 seconds");
    assert_int_equal(status_of(one), REFUSED + GUMBEL_ERROR_IO);
}

static void a_missing_rank_is_named(void **unused) {
    (void)unused;
    check_both(check_missing);
}

static void check_without_first(const launch *l) {
    gumbel_error error;
    const double begin = gb_seconds();
    assert_fails(join(l, 1, 2, 1, &error), GUMBEL_ERROR_IO, &error, "rank 0 does not answer at ");
    assert_true(gb_seconds() - begin < PATIENCE);
}

static void rank_0_never_comes(void **unused) {
    (void)unused;
    check_both(check_without_first);
}

/* What it was killed by leaves its socket's file behind. */
static pid_t fork_first_that_is_killed(const launch *l) {
    fflush(NULL);
    const pid_t made = fork();
    assert_true(made >= 0);
    if (made == 0) {
        alarm(2);
        join_and_end(l, 0, 3, PATIENCE);
    }
    return made;
}

static void check_gone_first(const launch *l) {
    gumbel_error error;
    const pid_t first = fork_first_that_is_killed(l);
    assert_fails(join(l, 1, 3, PATIENCE, &error), GUMBEL_ERROR_IO, &error, "rank 0 has ended");
    assert_int_equal(status_of(first), -SIGALRM);
}

static void rank_0_ends_before_all_are_there(void **unused) {
    (void)unused;
    check_both(check_gone_first);
}

/* ---- Who is wrong -------------------------------------------------------------------------------------- */

/* Both are refused at once, and told why. */
static void check_twice(const launch *l) {
    gumbel_error error;
    const double begin = gb_seconds();
    const pid_t a = fork_rank(l, 1, 3, PATIENCE), b = fork_rank(l, 1, 3, PATIENCE);
    assert_fails(join(l, 0, 3, PATIENCE, &error), GUMBEL_ERROR_ARGUMENT, &error, "is there twice: rank 1 (");
    const int statuses[] = {status_of(a), status_of(b)};
    assert_int_equal(statuses[0] + statuses[1], 2 * REFUSED + 2 * GUMBEL_ERROR_ARGUMENT);
    assert_true(gb_seconds() - begin < PATIENCE / 2);
}

static void the_same_rank_twice(void **unused) {
    (void)unused;
    check_both(check_twice);
}

static void check_count(const launch *l) {
    gumbel_error error;
    const pid_t one = fork_rank(l, 1, 2, PATIENCE);
    assert_fails(join(l, 0, 3, PATIENCE, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 ") of 2: rank 0 is one of 3");
    assert_int_equal(status_of(one), REFUSED + GUMBEL_ERROR_ARGUMENT);
}

static void another_count(void **unused) {
    (void)unused;
    check_both(check_count);
}

/* ---- Strangers ----------------------------------------------------------------------------------------- */

static int connect_at(const struct sockaddr *address, socklen_t size) {
    const int made = socket(address->sa_family, SOCK_STREAM, 0);
    if (connect(made, address, size) == 0)
        return made;
    close(made);
    return -1;
}

static int connect_once(const launch *l) {
    const struct sockaddr_in port = {.sin_family = AF_INET,
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                     .sin_port = htons((uint16_t)l->port)};
    struct sockaddr_un file = {.sun_family = AF_UNIX};
    snprintf(file.sun_path, sizeof file.sun_path, "%s/gumbel-%lu-%s-%s", getenv("TMPDIR"),
             (unsigned long)getuid(), getenv("TORCHELASTIC_RUN_ID"), getenv("MASTER_PORT"));
    return l->uses_tcp ? connect_at((const struct sockaddr *)&port, sizeof port)
                       : connect_at((const struct sockaddr *)&file, sizeof file);
}

/* Says so many bytes to rank 0 once that listens, and stays. */
static void be_strange(const launch *l, const void *bytes, size_t size) {
    const struct timespec pause = {.tv_nsec = 10000000};
    int made = -1;
    for (int i = 0; i < 1000 && made < 0; i++) {
        nanosleep(&pause, NULL);
        made = connect_once(l);
    }
    if (made < 0 || send(made, bytes, size, 0) != (ssize_t)size)
        _exit(1);
}

/* A process that connects as a stranger before it joins: with another protocol, and with less than all. */
static pid_t fork_after_strangers(const launch *l) {
    static const char garbage[1000] = "GET / HTTP/1.1\r\n\r\n", beginning[] = "gumbel\n";
    fflush(NULL);
    const pid_t made = fork();
    assert_true(made >= 0);
    if (made > 0)
        return made;
    enter(l, 1, 3);
    be_strange(l, garbage, sizeof garbage);
    be_strange(l, beginning, l->uses_tcp ? sizeof beginning - 1 : 0);
    join_and_end(l, 1, 3, PATIENCE);
}

/* They are waited for, for some seconds each. */
static void check_strangers(const launch *l) {
    gumbel_error error;
    const double begin = gb_seconds();
    const pid_t one = fork_after_strangers(l), two = fork_rank(l, 2, 3, PATIENCE);
    assert_ok(join(l, 0, 3, PATIENCE, &error), &error);
    assert_int_equal(status_of(one), 0);
    assert_int_equal(status_of(two), 0);
    assert_true(gb_seconds() - begin < PATIENCE / 2);
}

static void strangers_are_turned_away(void **unused) {
    (void)unused;
    check_both(check_strangers);
}

/* ---- Programs ------------------------------------------------------------------------------------------ */

static gumbel_program *open_program(uint64_t seed, const char *cache) {
    char config[512];
    gumbel_error error;
    gumbel_program *program;
    const gumbel_export_options options = {
        .size = sizeof options, .random_weights = true, .random_seed = seed};
    const char *path = temporary_path("joining.gumbel");
    snprintf(config, sizeof config, "%s/export/agreement/released.json", test_data_folder);
    assert_ok(gumbel_export(config, path, &options, &error), &error);
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    if (cache)
        assert_ok(gumbel_program_set_cache(program, cache, &error), &error);
    remove(path);
    return program;
}

/* An engine whose other rank has opened the other program; it is refused, and both are told. */
static void refuse_pair(const gumbel_program *own, const gumbel_program *other, const char *why) {
    gumbel_engine_options options = {.size = sizeof options, .threads = 1, .least_sharded_weights = 1};
    gumbel_process_group *group;
    gumbel_engine *engine;
    gumbel_error error;
    pid_t processes[2];
    const unsigned number = ++launches;
    unsetenv("MASTER_ADDR");
    fork_followers(other, &options, 2, number, processes);
    set_launch(0, 2, number);
    assert_ok(gumbel_process_group_join(PATIENCE, &group, &error), &error);
    options.process_group = group;
    assert_fails(gumbel_engine_create(own, &options, &engine, &error), GUMBEL_ERROR_ARGUMENT, &error, why);
    gumbel_process_group_leave(group);
    await_followers(processes, 2, GUMBEL_ERROR_ARGUMENT);
}

static void another_program(void **unused) {
    (void)unused;
    gumbel_program *own = open_program(1, NULL), *other = open_program(2, NULL);
    refuse_pair(own, other, "another program");
    gumbel_program_close(own);
    gumbel_program_close(other);
}

static void another_cache(void **unused) {
    (void)unused;
    gumbel_program *own = open_program(1, NULL), *other = open_program(1, "bfloat16");
    refuse_pair(own, other, "--cache");
    gumbel_program_close(own);
    gumbel_program_close(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_join),
        cmocka_unit_test(one_process_is_alone),
        cmocka_unit_test(a_missing_rank_is_named),
        cmocka_unit_test(rank_0_never_comes),
        cmocka_unit_test(rank_0_ends_before_all_are_there),
        cmocka_unit_test(the_same_rank_twice),
        cmocka_unit_test(another_count),
        cmocka_unit_test(strangers_are_turned_away),
        cmocka_unit_test(another_program),
        cmocka_unit_test(another_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
