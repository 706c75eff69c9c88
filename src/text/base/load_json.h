/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses JSON, and says of what is refused whether the text is wrong or memory was short.
 */
#ifndef GUMBEL_TEXT_BASE_LOAD_JSON_H
#define GUMBEL_TEXT_BASE_LOAD_JSON_H

#include "base/status.h"

#include <jansson.h>

/* Parses length bytes of text with jansson's flags into a value that is the caller's. NULL: *status is
 * FORMAT, and reason has the place, or MEMORY. */
json_t *gb_decode_json(const char *text, size_t length, size_t flags, json_error_t *reason,
                       gumbel_status *status);

/* Parses length bytes of text with jansson's flags. *value is the caller's, to release with json_decref; NULL
 * on an error. name stands for the text in messages. Errors: FORMAT ("name: line L: reason"), MEMORY.
 * Thread-safe. */
gumbel_status gb_load_json(const char *name, const char *text, size_t length, size_t flags, json_t **value,
                           gumbel_error *error);

#endif
