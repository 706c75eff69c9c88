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
static gumbel_status wait_for(int lock, const char *verb, const char *what, const hub_callbacks *callbacks,
                              gumbel_error *error) {
    char line[HUB_PATH];
    snprintf(line, sizeof line, "another gumbel %s %.4000s; waiting for it", verb, what);
    if (callbacks->note)
        callbacks->note(callbacks->user, line);
    while (is_busy(lock)) {
        if (callbacks->progress && !callbacks->progress(callbacks->user, "waiting", 0, 0))
            return gb_fail(error, GUMBEL_ERROR_CANCELLED, "%s: cancelled while another gumbel %s it", what,
                           verb);
        nanosleep(&(struct timespec){.tv_nsec = POLL_NANOSECONDS}, NULL);
    }
    return GUMBEL_OK;
}

gumbel_status hub_lock_file(const char *path, const char *verb, const char *what,
                            const hub_callbacks *callbacks, int *lock, gumbel_error *error) {
    *lock = -1;
    int opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (opened < 0)
        return gb_fail_errno(error, errno, "%s", path);
    bool is_free = !is_busy(opened);
    gumbel_status status = is_free || !callbacks ? GUMBEL_OK : wait_for(opened, verb, what, callbacks, error);
    if (status == GUMBEL_OK && (is_free || callbacks))
        *lock = opened;
    else
        close(opened);
    return status;
}

void hub_unlock(int lock) {
    if (lock >= 0)
        close(lock);
}

gumbel_status hub_lock(const char *repository, const hub_callbacks *callbacks, int *lock,
                       gumbel_error *error) {
    char folder[HUB_PATH], path[HUB_PATH];
    *lock = -1;
    bool has_room = hub_repository_folder(repository, folder) && hub_cache_folder(path) &&
                    hub_join(path, ".locks", path) && hub_join(path, strrchr(folder, '/') + 1, path);
    if (has_room)
        GB_TRY(hub_make_folder(path, 0777, error));
    if (!has_room || !hub_join(path, "gumbel.lock", path))
        return gb_fail(error, GUMBEL_ERROR_IO, "%s: the path of its lock is too long", repository);
    return hub_lock_file(path, "downloads", repository, callbacks, lock, error);
}
