/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock of one folder of the cache: whoever writes in the folder, or removes it, holds it. It is an flock
 * on the folder's file "lock", which the system gives back when its holder ends, however it does.
 */
#ifndef GUMBEL_CLI_CACHE_LOCK_H
#define GUMBEL_CLI_CACHE_LOCK_H

#include "gumbel.h"

#define CLI_CACHE_LOCK "lock" /* the file's name */

/* Makes the folder where it is missing, checks it with cli_cache_check_folder, and takes its lock. While
 * another process holds it: waits, after one note that names what is waited for; waited_for NULL: does not
 * wait, and *lock is -1. Give *lock to cli_cache_unlock. Errors: IO, CANCELLED (a signal that is caught).
 */
gumbel_status cli_cache_lock(const char *folder, const char *waited_for, int *lock, gumbel_error *error);

void cli_cache_unlock(int lock);

/* Whether some process holds the lock. */
bool cli_cache_is_locked(const char *folder);

#endif
