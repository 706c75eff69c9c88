/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory that a program's arrays and strings live in: handed out piece by piece, freed all at once.
 */
#ifndef GUMBEL_PROGRAM_FILE_STORAGE_H
#define GUMBEL_PROGRAM_FILE_STORAGE_H

#include <stddef.h>

typedef struct gb_storage gb_storage;

/* NULL when there is no memory. */
gb_storage *gb_storage_create(void);

/* count * size zeroed bytes, aligned for any type, or NULL. A request of 0 bytes gives a valid pointer. */
void *gb_storage_take(gb_storage *storage, size_t count, size_t size);

/* A copy of the first length bytes of text with a terminating zero, or NULL. */
char *gb_storage_string(gb_storage *storage, const char *text, size_t length);

/* NULL is allowed. */
void gb_storage_destroy(gb_storage *storage);

#endif
