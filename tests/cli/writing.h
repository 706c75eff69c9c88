/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a command that was started is writing an output now.
 */
#ifndef GUMBEL_TESTS_CLI_WRITING_H
#define GUMBEL_TESTS_CLI_WRITING_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static inline void wait_a_millisecond(void) {
    nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Whether the path is that of a file below the folder that is being written: it has no name ("#12 (deleted)")
 * or a temporary one. */
static inline bool is_unfinished(const char *path, const char *folder) {
    const char *name = strrchr(path, '/');
    return strncmp(path, folder, strlen(folder)) == 0 && path[strlen(folder)] == '/' &&
           (strncmp(name, "/#", 2) == 0 || strncmp(name, "/.gumbel-temporary-", 19) == 0);
}

/* Whether the process writes below the folder, which need not be there yet: it has such a file open, with
 * bytes in it. Empty ones are tried first. */
static inline bool is_written(pid_t process, const char *folder) {
    char open_files[64], path[4096];
    snprintf(open_files, sizeof open_files, "/proc/%ld/fd", (long)process);
    struct stat file;
    DIR *directory = opendir(open_files);
    bool found = false;
    for (const struct dirent *entry; directory && !found && (entry = readdir(directory));) {
        ssize_t length = readlinkat(dirfd(directory), entry->d_name, path, sizeof path - 1);
        path[length > 0 ? length : 0] = '\0';
        found = length > 0 && path[0] == '/' && is_unfinished(path, folder) &&
                fstatat(dirfd(directory), entry->d_name, &file, 0) == 0 && file.st_size > 0;
    }
    if (directory)
        closedir(directory);
    return found;
}

/* Waits until the process does so, for so many seconds at most. */
static inline void await_writing(pid_t process, const char *folder, int seconds) {
    for (int i = 0; i < seconds * 1000; i++) {
        if (is_written(process, folder))
            return;
        wait_a_millisecond();
    }
    fail_msg("%s: no export within %d s", folder, seconds);
}

#endif
