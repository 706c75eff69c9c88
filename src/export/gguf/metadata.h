/* SPDX-License-Identifier: Apache-2.0
 *
 * Typed reading of a GGUF file's keys. Errors are sticky: after the first one, which names file, key, what
 * was found and what was expected, every getter returns its fallback. A key that begins with a point is one
 * of the architecture's own: ".block_count" is "gemma4.block_count". Not thread-safe.
 */
#ifndef GUMBEL_EXPORT_GGUF_METADATA_H
#define GUMBEL_EXPORT_GGUF_METADATA_H

#include "export/checkpoint/gguf_files.h"

#include <jansson.h>

typedef struct gb_gguf_metadata {
    const gb_gguf_files *files;
    const char *path;         /* for messages */
    const char *architecture; /* what stands before the point */
    gumbel_error error;       /* its status is GUMBEL_OK until something is wrong */
} gb_gguf_metadata;

/* Makes an error of the caller's the metadata's, if it has none yet. */
void gb_gguf_fail(gb_gguf_metadata *metadata, const char *key, gumbel_status status, const char *format, ...)
    GB_PRINTF(4, 5);

/* The value of a key, or NULL. */
const gb_gguf_value *gb_gguf_value_of(const gb_gguf_metadata *metadata, const char *key);

/* An integer from 0 to 2^31 - 1. The first is an error when the key is absent. */
int64_t gb_gguf_need_integer(gb_gguf_metadata *metadata, const char *key);
int64_t gb_gguf_get_integer(gb_gguf_metadata *metadata, const char *key, int64_t fallback);

/* A finite number, integers among them. */
double gb_gguf_need_number(gb_gguf_metadata *metadata, const char *key);
double gb_gguf_get_number(gb_gguf_metadata *metadata, const char *key, double fallback);

/* One integer, as above, for each of count layers: an array of that length, or a value that holds for all. It
 * is an error when the key is absent. */
void gb_gguf_need_per_layer(gb_gguf_metadata *metadata, const char *key, int64_t *values, size_t count);

/* The same for what the program has only one of: all layers must agree. */
int64_t gb_gguf_need_uniform(gb_gguf_metadata *metadata, const char *key, size_t count);

/* A string without zero bytes in new memory (gb_free); NULL when the key is absent, and on an error. */
char *gb_gguf_copy_text(gb_gguf_metadata *metadata, const char *key);

/* Whether the key is a string equal to text. */
bool gb_gguf_text_is(const gb_gguf_metadata *metadata, const char *key, const char *text);

/* Take value, a new reference, into an object or array; NULL, and a lack of memory, become the metadata's
 * error. */
void gb_gguf_set(gb_gguf_metadata *metadata, json_t *object, const char *key, json_t *value);
void gb_gguf_append(gb_gguf_metadata *metadata, json_t *array, json_t *value);

#endif
