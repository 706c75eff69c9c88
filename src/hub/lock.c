/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/lock.h"

#include "base/status.h"
#include "hub/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { POLL_NANOSECONDS = 50000000 };

static bool is_busy(int lock) {
    return flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/* The lock is tried at intervals, so that the caller can cancel. */
static gumbel_status wait_for(int lock, const char *repository, const hub_callbacks *callbacks,
                              gumbel_error *error) {
    char line[HUB_REPOSITORY + 64];
    snprintf(line, sizeof line, "another gumbel downloads %s; waiting for it", repository);
    if (callbacks->note)
        callbacks->note(callbacks->user, line);
    while (is_busy(lock)) {
        if (callbacks->progress && !callbacks->progress(callbacks->user, "waiting", 0, 0))
            return gb_fail(error, GUMBEL_ERROR_CANCELLED, "%s: cancelled while another gumbel downloads it",
                           repository);
        nanosleep(&(struct timespec){.tv_nsec = POLL_NANOSECONDS}, NULL);
    }
    return GUMBEL_OK;
}

static bool find_folder(const char *repository, char path[HUB_PATH]) {
    char folder[HUB_PATH], name[HUB_REPOSITORY + 32];
    if (!hub_repository_folder(repository, folder))
        return false;
    snprintf(name, sizeof name, ".locks/%.*s", HUB_REPOSITORY + 16, strrchr(folder, '/') + 1);
    return hub_cache_folder(path) && hub_join(path, name, path);
}

gumbel_status hub_lock(const char *repository, const hub_callbacks *callbacks, int *lock,
                       gumbel_error *error) {
    char path[HUB_PATH];
    *lock = -1;
    if (!find_folder(repository, path))
        return gb_fail(error, GUMBEL_ERROR_IO, "%s: the path of its lock is too long", repository);
    GB_TRY(hub_make_folder(path, error));
    if (!hub_join(path, "gumbel.lock", path))
        return gb_fail(error, GUMBEL_ERROR_IO, "%s: the path of its lock is too long", repository);
    int opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (opened < 0)
        return gb_fail_errno(error, errno, "%s", path);
    gumbel_status status = is_busy(opened) ? wait_for(opened, repository, callbacks, error) : GUMBEL_OK;
    if (status == GUMBEL_OK)
        *lock = opened;
    else
        close(opened);
    return status;
}

void hub_unlock(int lock) {
    if (lock >= 0)
        close(lock);
}
