/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* RTLD_NEXT, fopencookie, O_TMPFILE */
#include "failing_calls.h"

#include "fault_command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int wanted;
static atomic_size_t seen, failing;
static atomic_bool counts, refuses_nameless;

void begin_call_fault(call_fault fault, size_t nth) {
    atomic_store(&wanted, (int)fault);
    atomic_store(&seen, 0);
    atomic_store(&failing, nth);
    atomic_store(&counts, true);
}

size_t end_call_fault(void) {
    atomic_store(&counts, false);
    return atomic_load(&seen);
}

void allow_files_without_name(bool allowed) {
    atomic_store(&refuses_nameless, !allowed);
}

size_t open_descriptors(void) {
    DIR *folder = opendir("/proc/self/fd");
    size_t count = 0;
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* ---- Which call has the fault -------------------------------------------------------------------------- */

static bool may_have(call_fault fault, unsigned traits, size_t size) {
    return fault == CALL_FAILS || fault == CALL_KILLS || (fault == CALL_FINDS_FULL && traits & NEEDS_ROOM) ||
           (fault == CALL_IS_INTERRUPTED && traits & (MOVES_BYTES | WAITS)) ||
           (fault == CALL_IS_SHORT && traits & MOVES_BYTES && size > 1);
}

/* Whether this call is the one; size: of the bytes that it is to move. */
static bool is_chosen(unsigned traits, size_t size) {
    const call_fault fault = (call_fault)atomic_load(&wanted);
    return atomic_load(&counts) && may_have(fault, traits, size) &&
           atomic_fetch_add(&seen, 1) + 1 == atomic_load(&failing);
}

bool call_fails(unsigned traits, size_t *size, int reason) {
    const call_fault fault = (call_fault)atomic_load(&wanted);
    if (!is_chosen(traits, size ? *size : 0))
        return false;
    if (fault == CALL_KILLS)
        kill(getpid(), SIGKILL);
    tell_of_fault();
    if (fault == CALL_IS_SHORT) {
        *size /= 2;
        return false;
    }
    errno = fault == CALL_FINDS_FULL ? ENOSPC : fault == CALL_IS_INTERRUPTED ? EINTR : reason;
    return true;
}

static bool fails(unsigned traits, size_t *size) {
    return call_fails(traits, size, EIO);
}

/* Terminals, pipes and events do not fail like that. */
static bool is_file(int descriptor) {
    struct stat information;
    return syscall(SYS_fstat, descriptor, &information) == 0 && S_ISREG(information.st_mode);
}

/* ---- In the C library's place -------------------------------------------------------------------------- */

static bool takes_mode(int flags) {
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

REPLACED int openat(int directory, const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = takes_mode(flags) ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    const bool is_nameless = (flags & O_TMPFILE) == O_TMPFILE;
    if (is_nameless && atomic_load(&refuses_nameless)) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (fails(takes_mode(flags) ? NEEDS_ROOM : PLAIN, NULL))
        return -1;
    FORWARD(int, "openat", (int, const char *, int, ...), directory, path, flags, mode);
}

REPLACED int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = takes_mode(flags) ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return openat(AT_FDCWD, path, flags, mode);
}

REPLACED ssize_t read(int descriptor, void *to, size_t size) {
    if (is_file(descriptor) && fails(MOVES_BYTES, &size))
        return -1;
    FORWARD(ssize_t, "read", (int, void *, size_t), descriptor, to, size);
}

REPLACED ssize_t pread(int descriptor, void *to, size_t size, off_t offset) {
    if (is_file(descriptor) && fails(MOVES_BYTES, &size))
        return -1;
    FORWARD(ssize_t, "pread", (int, void *, size_t, off_t), descriptor, to, size, offset);
}

REPLACED ssize_t write(int descriptor, const void *from, size_t size) {
    if (is_file(descriptor) && fails(MOVES_BYTES | NEEDS_ROOM, &size))
        return -1;
    FORWARD(ssize_t, "write", (int, const void *, size_t), descriptor, from, size);
}

REPLACED ssize_t pwrite(int descriptor, const void *from, size_t size, off_t offset) {
    if (is_file(descriptor) && fails(MOVES_BYTES | NEEDS_ROOM, &size))
        return -1;
    FORWARD(ssize_t, "pwrite", (int, const void *, size_t, off_t), descriptor, from, size, offset);
}

REPLACED off_t lseek(int descriptor, off_t offset, int whence) {
    if (is_file(descriptor) && fails(PLAIN, NULL))
        return -1;
    FORWARD(off_t, "lseek", (int, off_t, int), descriptor, offset, whence);
}

REPLACED void *mmap(void *at, size_t size, int protection, int flags, int descriptor, off_t offset) {
    if (call_fails(PLAIN, NULL, ENOMEM))
        return MAP_FAILED;
    FORWARD(void *, "mmap", (void *, size_t, int, int, int, off_t), at, size, protection, flags, descriptor,
            offset);
}

REPLACED int mprotect(void *at, size_t size, int protection) {
    if (call_fails(PLAIN, NULL, ENOMEM))
        return -1;
    FORWARD(int, "mprotect", (void *, size_t, int), at, size, protection);
}

REPLACED int stat(const char *path, struct stat *information) {
    if (fails(PLAIN, NULL))
        return -1;
    FORWARD(int, "stat", (const char *, struct stat *), path, information);
}

REPLACED int lstat(const char *path, struct stat *information) {
    if (fails(PLAIN, NULL))
        return -1;
    FORWARD(int, "lstat", (const char *, struct stat *), path, information);
}

REPLACED int fstat(int descriptor, struct stat *information) {
    if (fails(PLAIN, NULL))
        return -1;
    FORWARD(int, "fstat", (int, struct stat *), descriptor, information);
}

REPLACED int fstatat(int directory, const char *path, struct stat *information, int flags) {
    if (fails(PLAIN, NULL))
        return -1;
    FORWARD(int, "fstatat", (int, const char *, struct stat *, int), directory, path, information, flags);
}

REPLACED int ftruncate(int descriptor, off_t size) {
    if (fails(NEEDS_ROOM, NULL))
        return -1;
    FORWARD(int, "ftruncate", (int, off_t), descriptor, size);
}

REPLACED int fsync(int descriptor) {
    if (fails(NEEDS_ROOM, NULL))
        return -1;
    FORWARD(int, "fsync", (int), descriptor);
}

REPLACED int fdatasync(int descriptor) {
    if (fails(NEEDS_ROOM, NULL))
        return -1;
    FORWARD(int, "fdatasync", (int), descriptor);
}

REPLACED int linkat(int from_directory, const char *from, int to_directory, const char *to, int flags) {
    if (fails(NEEDS_ROOM, NULL))
        return -1;
    FORWARD(int, "linkat", (int, const char *, int, const char *, int), from_directory, from, to_directory,
            to, flags);
}

REPLACED int renameat(int from_directory, const char *from, int to_directory, const char *to) {
    if (fails(NEEDS_ROOM, NULL))
        return -1;
    FORWARD(int, "renameat", (int, const char *, int, const char *), from_directory, from, to_directory, to);
}

REPLACED int rename(const char *from, const char *to) {
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

REPLACED int unlinkat(int directory, const char *path, int flags) {
    if ((call_fault)atomic_load(&wanted) == CALL_KILLS) /* what is to be removed is, otherwise */
        (void)fails(PLAIN, NULL);
    FORWARD(int, "unlinkat", (int, const char *, int), directory, path, flags);
}

REPLACED int unlink(const char *path) {
    return unlinkat(AT_FDCWD, path, 0);
}

REPLACED int mkdir(const char *path, mode_t mode) {
    if (fails(NEEDS_ROOM, NULL))
        return -1;
    FORWARD(int, "mkdir", (const char *, mode_t), path, mode);
}

REPLACED int symlink(const char *target, const char *path) {
    if (fails(NEEDS_ROOM, NULL))
        return -1;
    FORWARD(int, "symlink", (const char *, const char *), target, path);
}

/* ---- Streams ------------------------------------------------------------------------------------------- */

static ssize_t read_stream(void *cookie, char *to, size_t size) {
    return read((int)(intptr_t)cookie, to, size);
}

/* 0 tells such a stream of an error. */
static ssize_t write_stream(void *cookie, const char *from, size_t size) {
    ssize_t written = write((int)(intptr_t)cookie, from, size);
    return written < 0 ? 0 : written;
}

static int seek_stream(void *cookie, off64_t *offset, int whence) {
    *offset = lseek((int)(intptr_t)cookie, *offset, whence);
    return *offset < 0 ? -1 : 0;
}

static int close_stream(void *cookie) {
    return close((int)(intptr_t)cookie);
}

/* The C library's own would call the system past the functions above. */
REPLACED FILE *fopen(const char *path, const char *mode) {
    const bool is_both = strchr(mode, '+');
    const int access_mode = is_both ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
    const int kind = mode[0] == 'w' ? O_CREAT | O_TRUNC : mode[0] == 'a' ? O_CREAT | O_APPEND : 0;
    const int descriptor = open(path, access_mode | kind | O_CLOEXEC, 0666);
    const cookie_io_functions_t functions = {read_stream, write_stream, seek_stream, close_stream};
    FILE *file =
        descriptor >= 0 ? fopencookie((void *)(intptr_t)descriptor, is_both ? "w+" : mode, functions) : NULL;
    if (!file && descriptor >= 0)
        close(descriptor);
    return file;
}
