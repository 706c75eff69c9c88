/* SPDX-License-Identifier: Apache-2.0
 *
 * Temporary files beside the file that they will become: without a name where the file system has such
 * files, which go with their writer, or with one. One with a name is locked (flock) for as long as its writer
 * lives, so that what a killed writer has left is known, whatever host, container or process wrote it.
 */
#ifndef GUMBEL_BASE_TEMPORARY_FILE_H
#define GUMBEL_BASE_TEMPORARY_FILE_H

#include <stdbool.h>
#include <sys/types.h>

enum { GB_TEMPORARY_NAME = 32 }; /* bytes of a name, with its zero */

/* Creates and locks a file of that mode (less the umask) in the directory with this descriptor. Returns its
 * descriptor; -1 with errno set on failure. Whoever closes the descriptor gives the lock back: rename or
 * remove the file first. Allocates nothing. Thread-safe. */
int gb_create_temporary(int directory, mode_t mode, char name[GB_TEMPORARY_NAME]);

/* Creates a file of that mode (less the umask) in the directory that has no name, so that nothing is left of
 * it however its writer ends. Returns its descriptor; -1 where there are no such files, or they could not get
 * a name. Allocates nothing. Thread-safe. */
int gb_create_nameless(int directory, mode_t mode);

/* Locks such a file and gives it a temporary name, once. False with errno set on failure. Thread-safe. */
bool gb_name_temporary(int directory, int descriptor, char name[GB_TEMPORARY_NAME]);

/* Removes the temporary files in the directory whose writers have ended; where locks do not work, none. */
void gb_collect_temporaries(int directory);

/* Whether that is the name of a temporary file. May be called by signal handlers. */
bool gb_is_temporary_name(const char *name);

#endif
