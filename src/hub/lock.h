/* SPDX-License-Identifier: Apache-2.0
 *
 * A lock between processes: an flock on a file that is never removed, which the system gives back however its
 * holder ends.
 */
#ifndef GUMBEL_HUB_LOCK_H
#define GUMBEL_HUB_LOCK_H

#include "hub/pull.h"

/* Makes the file where it is missing and takes its lock. While another process holds it: waits, after one
 * note "another gumbel VERB WHAT; waiting for it"; callbacks NULL: does not wait, and *lock is -1. A file
 * system that has no locks counts as free. Give *lock to hub_unlock in any case. Errors: IO, CANCELLED. */
gumbel_status hub_lock_file(const char *path, const char *verb, const char *what,
                            const hub_callbacks *callbacks, int *lock, gumbel_error *error);

void hub_unlock(int lock);

/* The lock of a repository while one process downloads it, .locks/models--ORG--NAME/gumbel.lock in the hub's
 * folder: waits as hub_lock_file does. Errors: IO, CANCELLED. */
gumbel_status hub_lock(const char *repository, const hub_callbacks *callbacks, int *lock,
                       gumbel_error *error);

#endif
