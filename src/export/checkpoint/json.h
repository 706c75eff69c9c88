/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the JSON files of a checkpoint with one form of error message.
 */
#ifndef GUMBEL_EXPORT_CHECKPOINT_JSON_H
#define GUMBEL_EXPORT_CHECKPOINT_JSON_H

#include "base/status.h"

#include <jansson.h>

/* Reads the JSON object in the file at path; release with json_decref. Errors: IO, MEMORY, FORMAT ("path:
 * line L: reason") when it is larger than limit bytes, is not JSON, has a key twice, or is no object.
 * Integers are real numbers in a file that has one of more than 64 bits. */
gumbel_status gb_read_json(const char *path, size_t limit, json_t **root, gumbel_error *error);

/* The same for size bytes of text in memory; name stands for the path in messages. Errors: MEMORY, FORMAT. */
gumbel_status gb_parse_json(const char *name, const char *text, size_t size, json_t **root,
                            gumbel_error *error);

/* A value as text for messages, cut to fit; returns text. NULL is written as "nothing". */
enum { GB_JSON_TEXT = 48 };
const char *gb_json_text(const json_t *value, char text[GB_JSON_TEXT]);

#endif
