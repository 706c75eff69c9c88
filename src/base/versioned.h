/* SPDX-License-Identifier: Apache-2.0
 *
 * Structures of the API that are versioned by their first field, `size_t size`, which the caller sets. The
 * caller's may be shorter or longer than the library's: fields are only added behind all others, and never in
 * the padding of the last version's end, whose bytes may hold anything.
 */
#ifndef GUMBEL_BASE_VERSIONED_H
#define GUMBEL_BASE_VERSIONED_H

#include "base/status.h"

#include <stddef.h>

/* Checks that the caller has set the structure's size. what names it in the message: "engine options".
 * Errors: ARGUMENT. */
gumbel_status gb_check_versioned(const void *given, const char *what, gumbel_error *error);

/* Copies a caller's structure into ours, of size bytes; what it lacks becomes zero. NULL gives zeros. Errors:
 * ARGUMENT (its size is not set), UNSUPPORTED (it sets a field that this version does not know). */
gumbel_status gb_read_versioned(const void *given, const char *what, void *ours, size_t size,
                                gumbel_error *error);

/* Copies ours into a caller's structure whose size has been checked; what ours lacks becomes zero. */
void gb_write_versioned(const void *ours, size_t size, void *given);

#endif
