/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cache/lock.h"

#include "base/status.h"
#include "cli/base/report.h"
#include "cli/base/signals.h"
#include "cli/cache/folder.h"
#include "cli/checkpoint/names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The lock is tried at intervals: a signal that comes just before flock blocks would not be seen. */
enum { MOST_ATTEMPTS = 100, POLL_NANOSECONDS = 50000000 };

/* Whether the file that is locked still stands at path: who removes a folder removes its lock. */
static bool is_in_place(int lock, const char *path) {
    struct stat locked, found;
    return fstat(lock, &locked) == 0 && stat(path, &found) == 0 && locked.st_dev == found.st_dev &&
           locked.st_ino == found.st_ino;
}

/* *is_busy: another process holds it, and waited_for is NULL. A file system that has no locks counts as free:
 * a program appears under its name when it is complete, with or without them. */
static gumbel_status take(int lock, const char *waited_for, bool *is_busy, gumbel_error *error) {
    *is_busy = flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!*is_busy || !waited_for)
        return GUMBEL_OK;
    cli_note("another gumbel exports %s; waiting for it", waited_for);
    while (*is_busy) {
        if (cli_interrupted()) {
            return gb_fail(error, GUMBEL_ERROR_CANCELLED, "%s: cancelled while another gumbel exports it",
                           waited_for);
        }
        nanosleep(&(struct timespec){.tv_nsec = POLL_NANOSECONDS}, NULL);
        *is_busy = flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    }
    return GUMBEL_OK;
}

/* One attempt; *lock stays -1 where the folder went away meanwhile. */
static gumbel_status try_lock(const char *folder, const char *path, const char *waited_for, bool *is_busy,
                              int *lock, gumbel_error *error) {
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return gb_fail_errno(error, errno, "%s", folder);
    gumbel_status status = cli_cache_check_folder(folder, error);
    if (status != GUMBEL_OK)
        return access(folder, F_OK) != 0 && errno == ENOENT ? GUMBEL_OK : status;
    int opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (opened < 0)
        return errno == ENOENT ? GUMBEL_OK : gb_fail_errno(error, errno, "%s", path);
    status = take(opened, waited_for, is_busy, error);
    if (status == GUMBEL_OK && !*is_busy && is_in_place(opened, path))
        *lock = opened;
    else
        close(opened);
    return status;
}

gumbel_status cli_cache_lock(const char *folder, const char *waited_for, int *lock, gumbel_error *error) {
    char *path = cli_join(folder, CLI_CACHE_LOCK);
    gumbel_status status = GUMBEL_OK;
    bool is_busy = false;
    *lock = -1;
    for (int i = 0; i < MOST_ATTEMPTS && status == GUMBEL_OK && *lock < 0 && !is_busy; i++)
        status = try_lock(folder, path, waited_for, &is_busy, lock, error);
    if (status == GUMBEL_OK && *lock < 0 && !is_busy) {
        status = gb_fail(error, GUMBEL_ERROR_IO, "%s: it is removed again and again", path);
    }
    free(path);
    return status;
}

void cli_cache_unlock(int lock) {
    if (lock >= 0)
        close(lock);
}

bool cli_cache_is_locked(const char *folder) {
    char *path = cli_join(folder, CLI_CACHE_LOCK);
    int lock = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool is_locked = lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    cli_cache_unlock(lock);
    free(path);
    return is_locked;
}
