/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "support/system_faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined __has_feature
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#endif
#endif

static int calls_left = -1; /* before the one that fails; -1: none does */
static int fault;
static bool has_failed, refuses_nameless;
static void (*flock_hook)(void);

void fail_system_call(int n, int reason) {
    calls_left = n;
    fault = reason;
    has_failed = false;
}

bool end_system_faults(void) {
    calls_left = -1;
    return has_failed;
}

void allow_nameless_files(bool allowed) {
    refuses_nameless = !allowed;
}

void before_flock(void (*hook)(void)) {
    flock_hook = hook;
}

static bool fails(void) {
    if (calls_left < 0 || calls_left-- > 0)
        return false;
    has_failed = true;
    errno = fault;
    return true;
}

/* Has result what the C library's function of that name returns, or -1. */
#define CALL(type, name, parameters, ...)                                                                    \
    static type(*original) parameters;                                                                       \
    void *found = original ? NULL : dlsym(RTLD_NEXT, name);                                                  \
    if (!original)                                                                                           \
        memcpy(&original, &found, sizeof original);                                                          \
    type result = fails() ? -1 : original(__VA_ARGS__)

#define FORWARD(type, name, parameters, ...)                                                                 \
    CALL(type, name, parameters, __VA_ARGS__);                                                               \
    return result

/* Has MemorySanitizer know what the C library wrote, as its own function of that name would, which these are
   in place of. */
static void has_written(const void *data, size_t size) {
#if defined __has_feature
#if __has_feature(memory_sanitizer)
    __msan_unpoison(data, size);
#endif
#endif
    (void)data, (void)size;
}

static mode_t mode_of(int flags, va_list arguments) {
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? (mode_t)va_arg(arguments, unsigned) : 0;
}

int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    FORWARD(int, "open", (const char *, int, ...), path, flags, mode);
}

int openat(int directory, const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    if (refuses_nameless && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    FORWARD(int, "openat", (int, const char *, int, ...), directory, path, flags, mode);
}

int stat(const char *path, struct stat *information) {
    CALL(int, "stat", (const char *, struct stat *), path, information);
    if (result == 0)
        has_written(information, sizeof *information);
    return result;
}

int fstatat(int directory, const char *path, struct stat *information, int flags) {
    CALL(int, "fstatat", (int, const char *, struct stat *, int), directory, path, information, flags);
    if (result == 0)
        has_written(information, sizeof *information);
    return result;
}

ssize_t readlink(const char *path, char *to, size_t size) {
    CALL(ssize_t, "readlink", (const char *, char *, size_t), path, to, size);
    if (result > 0)
        has_written(to, (size_t)result);
    return result;
}

int flock(int descriptor, int operation) {
    void (*hook)(void) = flock_hook;
    flock_hook = NULL;
    if (hook)
        hook();
    FORWARD(int, "flock", (int, int), descriptor, operation);
}

ssize_t write(int descriptor, const void *data, size_t size) {
    FORWARD(ssize_t, "write", (int, const void *, size_t), descriptor, data, size);
}

off_t lseek(int descriptor, off_t offset, int whence) {
    FORWARD(off_t, "lseek", (int, off_t, int), descriptor, offset, whence);
}

int fsync(int descriptor) {
    FORWARD(int, "fsync", (int), descriptor);
}

int linkat(int from_directory, const char *from, int to_directory, const char *to, int flags) {
    FORWARD(int, "linkat", (int, const char *, int, const char *, int), from_directory, from, to_directory,
            to, flags);
}

int renameat(int from_directory, const char *from, int to_directory, const char *to) {
    FORWARD(int, "renameat", (int, const char *, int, const char *), from_directory, from, to_directory, to);
}
