/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process can and cannot do once it has entered the sandbox, each in a child of its own.
 */
#include "cli/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char device[] = "/dev/null";

static bool writes(void) {
    return open(device, O_WRONLY | O_CLOEXEC) >= 0;
}

static bool creates(void) {
    return open("/tmp/gumbel-sandbox-test", O_RDONLY | O_CREAT | O_CLOEXEC, 0600) >= 0;
}

static bool removes(void) {
    return unlink("/tmp/gumbel-sandbox-test-none") == 0 || errno == ENOENT;
}

static bool connects(void) {
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0;
}

static bool tells_systemd(void) {
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) >= 0;
}

static bool forks(void) {
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    return child > 0 && waitpid(child, NULL, 0) == child;
}

static bool executes(void) { /* where it may, it ends with 1 as other things that may be done */
    execl("/bin/sh", "sh", "-c", "exit 1", (char *)NULL);
    return false;
}

static bool signals_others(void) {
    return kill(getppid(), 0) == 0;
}

static bool reads(void) {
    char byte;
    const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    return file >= 0 && read(file, &byte, 1) == 1 && close(file) == 0;
}

static void *nothing(void *given) {
    return given;
}

static bool has_threads(void) {
    pthread_t thread;
    return pthread_create(&thread, NULL, nothing, NULL) == 0 && pthread_join(thread, NULL) == 0;
}

static bool maps_code(void) { /* as the compiler of regular expressions does */
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
           MAP_FAILED;
}

static bool raises(void) {
    signal(SIGUSR1, SIG_IGN);
    return raise(SIGUSR1) == 0;
}

static bool can_within(bool (*action)(void), const cli_sandbox_needs *needs, bool is_off) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        cli_sandbox_enter(&(cli_sandbox_options){.is_off = is_off}, needs);
        _exit(action() ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) == 1;
}

/* Where the kernel or the build has no seccomp nothing is refused. */
static void skip_without_seccomp(void) {
    if (can_within(forks, &(cli_sandbox_needs){0}, false))
        skip();
}

static const struct {
    const char *name;
    bool (*action)(void);
    bool in_run, in_serve, on_device, when_loading; /* allowed then */
} rows[] = {
    {"write", writes, false, false, true, true},
    {"create", creates, false, false, false, true},
    {"remove", removes, false, false, false, true},
    {"connect", connects, false, false, false, false},
    {"tell systemd", tells_systemd, false, true, false, false},
    {"fork", forks, false, false, false, false},
    {"execute", executes, false, false, false, false},
    {"signal others", signals_others, false, false, false, false},
    {"read", reads, true, true, true, true},
    {"thread", has_threads, true, true, true, true},
    {"code", maps_code, true, true, true, true},
    {"raise", raises, true, true, true, true},
};

static void assert_can(size_t row, const cli_sandbox_needs *needs, bool expected) {
    if (can_within(rows[row].action, needs, false) != expected)
        fail_msg("%s: %s", rows[row].name, expected ? "refused" : "allowed");
}

static void test_what_is_allowed(void **state) {
    (void)state;
    skip_without_seccomp();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_can(i, &(cli_sandbox_needs){0}, rows[i].in_run);
        assert_can(i, &(cli_sandbox_needs){.accepts = true}, rows[i].in_serve);
        assert_can(i, &(cli_sandbox_needs){.has_device = true}, rows[i].on_device);
        assert_can(i, &(cli_sandbox_needs){.loads_models = true}, rows[i].when_loading);
    }
    unlink("/tmp/gumbel-sandbox-test");
}

static void test_off(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_true(can_within(rows[i].action, &(cli_sandbox_needs){0}, true));
    unlink("/tmp/gumbel-sandbox-test");
}

/* A socket's file goes with the server, and no more than that is allowed for it. */
static void test_socket_file(void **state) {
    (void)state;
    skip_without_seccomp();
    const cli_sandbox_needs needs = {.accepts = true, .removes_socket = true};
    assert_true(can_within(removes, &needs, false));
    assert_false(can_within(creates, &needs, false));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_allowed),
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_socket_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
