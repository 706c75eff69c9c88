/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock of a repository while one process downloads it: an flock on .locks/models--ORG--NAME/gumbel.lock
 * in the hub's folder, which the system gives back however its holder ends.
 */
#ifndef GUMBEL_HUB_LOCK_H
#define GUMBEL_HUB_LOCK_H

#include "hub/pull.h"

/* Waits, after one note, while another process holds it. Where the file system has no locks *lock is -1.
 * Errors: IO, CANCELLED. */
gumbel_status hub_lock(const char *repository, const hub_callbacks *callbacks, int *lock,
                       gumbel_error *error);

void hub_unlock(int lock);

#endif
