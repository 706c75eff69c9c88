/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors as values. Every fallible function returns a gumbel_status and fills the caller's
 * gumbel_error (which may be NULL) with a sentence a user can act on: which file, tensor or flag,
 * what was found, what was expected. Nothing here allocates or prints.
 */
#ifndef GUMBEL_BASE_STATUS_H
#define GUMBEL_BASE_STATUS_H

#include "gumbel.h"

#include <stdarg.h>
#include <stdbool.h>

#if defined(__GNUC__)
#define GB_PRINTF(format_index, first) __attribute__((format(printf, format_index, first)))
#else
#define GB_PRINTF(format_index, first)
#endif

/* Writes the formatted message and the status into error, if there is one. Returns status, so that a
 * failing function can end in `return gb_fail(error, GUMBEL_ERROR_FORMAT, "...", ...)`. */
gumbel_status gb_fail(gumbel_error *error, gumbel_status status, const char *format, ...) GB_PRINTF(3, 4);
gumbel_status gb_fail_list(gumbel_error *error, gumbel_status status, const char *format, va_list arguments)
    GB_PRINTF(3, 0);

/* Like gb_fail, with ": " and the meaning of the given errno value appended. Status GUMBEL_ERROR_IO. */
gumbel_status gb_fail_errno(gumbel_error *error, int errno_value, const char *format, ...) GB_PRINTF(3, 4);

/* Puts "prefix: " before the message already in error (cut at the message's capacity). Returns the status
 * that error holds, so that a caller can add its file or tensor name on the way up. */
gumbel_status gb_prefix(gumbel_error *error, gumbel_status status, const char *format, ...) GB_PRINTF(3, 4);

/* Fails with MEMORY and "no memory for " what. */
gumbel_status gb_no_memory(gumbel_error *error, const char *what);

/* The same error with zeros behind its message, where memory may have had anything: fit to leave the process.
 */
gumbel_error gb_error_to_send(const gumbel_error *error);

/* Passes a failure on: `GB_TRY(gb_map_file(path, &map, error));` */
#define GB_TRY(expression)                                                                                   \
    do {                                                                                                     \
        gumbel_status gb_try_status_ = (expression);                                                         \
        if (gb_try_status_ != GUMBEL_OK)                                                                     \
            return gb_try_status_;                                                                           \
    } while (0)

#endif
