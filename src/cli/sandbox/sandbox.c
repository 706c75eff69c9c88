/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* CLONE_THREAD */
#include "cli/sandbox/sandbox.h"

#include "cli/base/report.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

/* Memory, threads and time; descriptors that are open; what files say. */
static const int always[] = {SCMP_SYS(brk),
                             SCMP_SYS(mmap),
                             SCMP_SYS(munmap),
                             SCMP_SYS(mprotect),
                             SCMP_SYS(mremap),
                             SCMP_SYS(madvise),
                             SCMP_SYS(mlock),
                             SCMP_SYS(mlock2),
                             SCMP_SYS(munlock),
                             SCMP_SYS(mincore),
                             SCMP_SYS(membarrier),
                             SCMP_SYS(futex),
                             SCMP_SYS(set_robust_list),
                             SCMP_SYS(rseq),
                             SCMP_SYS(sched_yield),
                             SCMP_SYS(gettid),
                             SCMP_SYS(sched_getaffinity),
                             SCMP_SYS(sched_setaffinity),
                             SCMP_SYS(getcpu),
                             SCMP_SYS(exit),
                             SCMP_SYS(exit_group),
                             SCMP_SYS(set_tid_address),
                             SCMP_SYS(arch_prctl),
                             SCMP_SYS(restart_syscall),
                             SCMP_SYS(rt_sigaction),
                             SCMP_SYS(rt_sigprocmask),
                             SCMP_SYS(rt_sigreturn),
                             SCMP_SYS(sigaltstack),
                             SCMP_SYS(rt_sigtimedwait),
                             SCMP_SYS(alarm),
                             SCMP_SYS(setitimer),
                             SCMP_SYS(pause),
                             SCMP_SYS(clock_gettime),
                             SCMP_SYS(clock_getres),
                             SCMP_SYS(clock_nanosleep),
                             SCMP_SYS(nanosleep),
                             SCMP_SYS(gettimeofday),
                             SCMP_SYS(time),
                             SCMP_SYS(times),
                             SCMP_SYS(getrusage),
                             SCMP_SYS(sysinfo),
                             SCMP_SYS(uname),
                             SCMP_SYS(getrandom),
                             SCMP_SYS(getpid),
                             SCMP_SYS(getppid),
                             SCMP_SYS(getuid),
                             SCMP_SYS(geteuid),
                             SCMP_SYS(getgid),
                             SCMP_SYS(getegid),
                             SCMP_SYS(getcwd),
                             SCMP_SYS(read),
                             SCMP_SYS(readv),
                             SCMP_SYS(pread64),
                             SCMP_SYS(preadv),
                             SCMP_SYS(write),
                             SCMP_SYS(writev),
                             SCMP_SYS(lseek),
                             SCMP_SYS(close),
                             SCMP_SYS(close_range),
                             SCMP_SYS(dup),
                             SCMP_SYS(dup2),
                             SCMP_SYS(dup3),
                             SCMP_SYS(flock),
                             SCMP_SYS(poll),
                             SCMP_SYS(ppoll),
                             SCMP_SYS(select),
                             SCMP_SYS(pselect6),
                             SCMP_SYS(epoll_create1),
                             SCMP_SYS(epoll_ctl),
                             SCMP_SYS(epoll_wait),
                             SCMP_SYS(epoll_pwait),
                             SCMP_SYS(eventfd2),
                             SCMP_SYS(pipe),
                             SCMP_SYS(pipe2),
                             SCMP_SYS(fadvise64),
                             SCMP_SYS(readahead),
                             SCMP_SYS(fstat),
                             SCMP_SYS(stat),
                             SCMP_SYS(lstat),
                             SCMP_SYS(newfstatat),
                             SCMP_SYS(statx),
                             SCMP_SYS(statfs),
                             SCMP_SYS(fstatfs),
                             SCMP_SYS(access),
                             SCMP_SYS(faccessat),
                             SCMP_SYS(faccessat2),
                             SCMP_SYS(readlink),
                             SCMP_SYS(readlinkat),
                             SCMP_SYS(getdents64)};

static const int of_connections[] = {SCMP_SYS(accept),      SCMP_SYS(accept4),     SCMP_SYS(listen),
                                     SCMP_SYS(getsockname), SCMP_SYS(getpeername), SCMP_SYS(getsockopt),
                                     SCMP_SYS(setsockopt),  SCMP_SYS(shutdown),    SCMP_SYS(recvfrom),
                                     SCMP_SYS(recvmsg),     SCMP_SYS(sendfile)};

static const int of_devices[] = {SCMP_SYS(memfd_create), SCMP_SYS(ftruncate), SCMP_SYS(get_mempolicy),
                                 SCMP_SYS(set_mempolicy), SCMP_SYS(mbind)};

static const int of_files[] = {
    SCMP_SYS(openat),          SCMP_SYS(open),      SCMP_SYS(mkdir),     SCMP_SYS(mkdirat),
    SCMP_SYS(rename),          SCMP_SYS(renameat),  SCMP_SYS(renameat2), SCMP_SYS(linkat),
    SCMP_SYS(unlink),          SCMP_SYS(unlinkat),  SCMP_SYS(fallocate), SCMP_SYS(ftruncate),
    SCMP_SYS(fsync),           SCMP_SYS(fdatasync), SCMP_SYS(fchmod),    SCMP_SYS(fchown),
    SCMP_SYS(umask),           SCMP_SYS(pwrite64),  SCMP_SYS(pwritev),   SCMP_SYS(copy_file_range),
    SCMP_SYS(sync_file_range), SCMP_SYS(utimensat), SCMP_SYS(symlinkat)};

#define LENGTH(list) (sizeof(list) / sizeof *(list))

static bool allow(scmp_filter_ctx filter, const int *calls, size_t count) {
    bool is_done = true;
    for (size_t i = 0; i < count; i++)
        is_done = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0) == 0 && is_done;
    return is_done;
}

static bool allow_where(scmp_filter_ctx filter, int call, struct scmp_arg_cmp condition) {
    return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, 1, &condition) == 0;
}

/* Threads, but no processes. The C library falls back on clone, whose flags a filter can see. */
static bool allow_threads(scmp_filter_ctx filter) {
    return allow_where(filter, SCMP_SYS(clone), SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD)) &&
           seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) == 0;
}

static bool allow_reading(scmp_filter_ctx filter, scmp_datum_t writing) {
    return allow_where(filter, SCMP_SYS(openat), SCMP_A2(SCMP_CMP_MASKED_EQ, writing, 0)) &&
           allow_where(filter, SCMP_SYS(open), SCMP_A1(SCMP_CMP_MASKED_EQ, writing, 0));
}

static bool allow_each(scmp_filter_ctx filter, int call, unsigned argument, const scmp_datum_t *values,
                       size_t count) {
    bool is_done = true;
    for (size_t i = 0; i < count; i++)
        is_done = allow_where(filter, call, SCMP_CMP(argument, SCMP_CMP_EQ, values[i])) && is_done;
    return is_done;
}

/* Of the kernel's headers, beside which termios.h cannot stand. */
enum { KERNEL_TCGETS2 = 0x2a };
#define TCGETS2_REQUEST _IOR('T', KERNEL_TCGETS2, char[44])

/* What is harmless with some arguments only: names of threads, limits that are asked for, signals to itself,
 * what terminals and sockets are asked. Who owns a descriptor is left out, for it can be sent signals. */
static bool allow_some(scmp_filter_ctx filter) {
    const scmp_datum_t process = (scmp_datum_t)getpid();
    static const scmp_datum_t requests[] = {TCGETS, TCGETS2_REQUEST, TIOCGWINSZ, TIOCOUTQ, FIONREAD, FIONBIO};
    static const scmp_datum_t commands[] = {F_GETFD,         F_SETFD, F_GETFL, F_SETFL, F_DUPFD,
                                            F_DUPFD_CLOEXEC, F_GETLK, F_SETLK, F_SETLKW};
    return allow_where(filter, SCMP_SYS(prctl), SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME)) &&
           allow_where(filter, SCMP_SYS(prlimit64), SCMP_A2(SCMP_CMP_EQ, 0)) &&
           allow_where(filter, SCMP_SYS(tgkill), SCMP_A0(SCMP_CMP_EQ, process)) &&
           allow_where(filter, SCMP_SYS(kill), SCMP_A0(SCMP_CMP_EQ, process)) &&
           allow_each(filter, SCMP_SYS(fcntl), 1, commands, LENGTH(commands)) &&
           allow_each(filter, SCMP_SYS(ioctl), 1, requests, LENGTH(requests));
}

/* Answers go to who is connected: an address would connect a socket that listened, by MSG_FASTOPEN. */
static bool allow_sending(scmp_filter_ctx filter) {
    return allow_where(filter, SCMP_SYS(sendto), SCMP_A4(SCMP_CMP_EQ, 0)) &&
           allow_where(filter, SCMP_SYS(sendmsg), SCMP_A2(SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, 0));
}

static bool allow_serving(scmp_filter_ctx filter, const cli_sandbox_needs *needs) {
    static const int removals[] = {SCMP_SYS(unlink), SCMP_SYS(unlinkat)};
    return !needs->accepts ||
           (allow(filter, of_connections, LENGTH(of_connections)) && allow_sending(filter) &&
            (!needs->removes_socket || allow(filter, removals, LENGTH(removals))));
}

/* With processes that it is connected with already. */
static bool allow_exchanges(scmp_filter_ctx filter, const cli_sandbox_needs *needs) {
    static const int exchanges[] = {SCMP_SYS(recvfrom), SCMP_SYS(shutdown), SCMP_SYS(setsockopt)};
    return !needs->has_processes || (allow(filter, exchanges, LENGTH(exchanges)) && allow_sending(filter));
}

/* NVIDIA's requests are of the kind 'F', those of its unified memory are small numbers and two large ones:
 * not those by which terminals are typed at. */
static bool allow_device(scmp_filter_ctx filter) {
    static const scmp_datum_t begin_and_end[] = {0x30000001, 0x30000002};
    return allow(filter, of_devices, LENGTH(of_devices)) &&
           allow_where(filter, SCMP_SYS(ioctl), SCMP_A1(SCMP_CMP_MASKED_EQ, 0xff00, 'F' << 8)) &&
           allow_where(filter, SCMP_SYS(ioctl), SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffff00, 0)) &&
           allow_each(filter, SCMP_SYS(ioctl), 1, begin_and_end, LENGTH(begin_and_end));
}

/* All threads; the kernel's own reasons; and no brakes on speculation, which some kernels add to a filter. */
static bool set_attributes(scmp_filter_ctx filter) {
    return seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1) == 0 &&
           seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1) == 0 &&
           seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1) == 0;
}

static bool fill(scmp_filter_ctx filter, const cli_sandbox_needs *needs) {
    const scmp_datum_t writing =
        (scmp_datum_t)(needs->has_device ? O_CREAT | O_TRUNC : O_WRONLY | O_RDWR | O_CREAT | O_TRUNC);
    return set_attributes(filter) && allow(filter, always, LENGTH(always)) && allow_some(filter) &&
           allow_threads(filter) && allow_serving(filter, needs) && allow_exchanges(filter, needs) &&
           (!needs->has_device || allow_device(filter)) &&
           (needs->loads_models ? allow(filter, of_files, LENGTH(of_files)) : allow_reading(filter, writing));
}

const bool cli_has_sandbox = true;

void cli_sandbox_enter(const cli_sandbox_options *options, const cli_sandbox_needs *needs) {
    if (options->is_off)
        return;
    const scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter || !fill(filter, needs))
        cli_note("no sandbox: its filter could not be made");
    else {
        const int failure = seccomp_load(filter);
        if (failure != 0)
            cli_note("no sandbox: the kernel refuses seccomp (%s)", strerror(-failure));
    }
    seccomp_release(filter);
}
