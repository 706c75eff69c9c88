/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process can and cannot do once it has entered the sandbox, each in a child of its own.
 */
#include "cli/sandbox/sandbox.h"
#include "support/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATH_SIZE = 512 };
static const char device[] = "/dev/null";
static char created[PATH_SIZE], absent[PATH_SIZE], other[PATH_SIZE]; /* in the test's own folder */
static int listener, pair[2]; /* sockets from before: one that listens, two that are connected */

static bool writes(void) {
    return open(device, O_WRONLY | O_CLOEXEC) >= 0;
}

static bool creates(void) {
    return open(created, O_RDONLY | O_CREAT | O_CLOEXEC, 0600) >= 0;
}

static bool removes(void) {
    return unlink(absent) == 0 || errno == ENOENT;
}

static bool connects(void) {
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0;
}

static bool connects_locally(void) {
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) >= 0;
}

/* A socket that listened becomes one that connects to others. */
static bool connects_by_sending(void) {
    static const struct sockaddr_in none = {.sin_family = AF_INET};
    return sendto(listener, "x", 1, MSG_FASTOPEN, (const struct sockaddr *)&none, sizeof none) >= 0 ||
           errno != EPERM;
}

static bool connects_by_message(void) {
    struct sockaddr_in none = {.sin_family = AF_INET};
    const struct msghdr message = {.msg_name = &none, .msg_namelen = sizeof none};
    return sendmsg(listener, &message, MSG_FASTOPEN) >= 0 || errno != EPERM;
}

static bool answers(void) {
    return (send(pair[0], "x", 1, MSG_NOSIGNAL) == 1 || errno != EPERM) && write(pair[0], "x", 1) == 1;
}

static bool owns_descriptors(void) {
    return fcntl(pair[0], F_SETOWN, getppid()) == 0;
}

static bool types_at_terminals(void) {
    return ioctl(pair[0], TIOCSTI, "x") == 0 || errno != EPERM;
}

static bool traces(void) {
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0;
}

static bool renames(void) {
    return rename(absent, other) == 0 || errno == ENOENT;
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

static void skip_without_seccomp(void) {
    const uint32_t action = SECCOMP_RET_ERRNO;
    if (!cli_has_sandbox || syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) != 0)
        skip();
}

static int prepare(void **state) {
    (void)state;
    snprintf(created, sizeof created, "%s", temporary_path("created"));
    snprintf(absent, sizeof absent, "%s", temporary_path("absent"));
    snprintf(other, sizeof other, "%s", temporary_path("other"));
    const struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return bind(listener, (const struct sockaddr *)&here, sizeof here) != 0 || listen(listener, 1) != 0 ||
           socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0;
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
    {"rename", renames, false, false, false, true},
    {"connect locally", connects_locally, false, false, false, false},
    {"connect by sending", connects_by_sending, false, false, false, false},
    {"connect by a message", connects_by_message, false, false, false, false},
    {"answer", answers, false, true, false, false},
    {"own a descriptor", owns_descriptors, false, false, false, false},
    {"type at a terminal", types_at_terminals, false, false, false, false},
    {"trace", traces, false, false, false, false},
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
    unlink(created);
}

static void test_off(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_true(can_within(rows[i].action, &(cli_sandbox_needs){0}, true));
    unlink(created);
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
    return cmocka_run_group_tests(tests, prepare, NULL);
}
