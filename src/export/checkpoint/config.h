/* SPDX-License-Identifier: Apache-2.0
 *
 * Typed reading of config.json and its like. Errors are sticky in the file: after the first one every getter
 * returns its fallback, and gb_config_status reports it, so that the code that reads a configuration is a
 * list of keys and defaults. Messages name file, key and value:
 *
 *     config.json: text_config.hidden_size: expected an integer from 1 to 1048576, found "abc"
 *
 * Not thread-safe.
 */
#ifndef GUMBEL_EXPORT_CHECKPOINT_CONFIG_H
#define GUMBEL_EXPORT_CHECKPOINT_CONFIG_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct gb_config_file gb_config_file;
struct json_t;

/* One object of the file. Copied by value; valid while the file is open. */
enum { GB_CONFIG_PATH = 192 };
typedef struct gb_config {
    gb_config_file *file;
    const void *object;        /* NULL: the key that leads here is absent or null */
    char path[GB_CONFIG_PATH]; /* "text_config." */
} gb_config;

/* Reads the file at path, which holds one JSON object of at most 16 MB. Errors: IO, FORMAT, MEMORY. */
gumbel_status gb_config_open(const char *path, gb_config_file **file, gumbel_error *error);

/* The same for an object in memory, of which it takes a reference; name stands for the path in messages.
 * Errors: MEMORY. */
gumbel_status gb_config_from_json(const char *name, struct json_t *root, gb_config_file **file,
                                  gumbel_error *error);

/* NULL is allowed. */
void gb_config_close(gb_config_file *file);

/* The first error, or GUMBEL_OK. */
gumbel_status gb_config_status(const gb_config_file *file, gumbel_error *error);

gb_config gb_config_root(gb_config_file *file);

/* The object under key; when it is absent, one in which everything is absent. */
gb_config gb_config_child(const gb_config *config, const char *key);

/* Whether key is there and not null. */
bool gb_config_has(const gb_config *config, const char *key);

/* Whether key is there and null. */
bool gb_config_is_null(const gb_config *config, const char *key);

/* The value under key, or fallback when the key is absent. A value of another type, or outside low..high, is
 * an error; so is null, except for gb_config_string, where it counts as absent. */
int64_t gb_config_integer(const gb_config *config, const char *key, int64_t fallback, int64_t low,
                          int64_t high);
/* The same, where null counts as absent. */
int64_t gb_config_optional_integer(const gb_config *config, const char *key, int64_t fallback, int64_t low,
                                   int64_t high);
double gb_config_number(const gb_config *config, const char *key, double fallback, double low, double high);
bool gb_config_bool(const gb_config *config, const char *key, bool fallback);
const char *gb_config_string(const gb_config *config, const char *key, const char *fallback);

/* A list: its length (0 when absent or null; a value that is no list is an error), and its items. */
size_t gb_config_list_size(const gb_config *config, const char *key);
const char *gb_config_list_string(const gb_config *config, const char *key, size_t index);
double gb_config_list_number(const gb_config *config, const char *key, size_t index, double low, double high);

/* An integer or a list of integers, as eos_token_id is: writes at most capacity of them into values and
 * returns how many; more than capacity is an error. 0 when absent or null. */
size_t gb_config_integers(const gb_config *config, const char *key, int64_t low, int64_t high,
                          int64_t *values, size_t capacity);

/* The object's keys, in the file's order: the one after previous (NULL: the first), or NULL at the end. */
const char *gb_config_next_key(const gb_config *config, const char *previous);

/* Whether both objects have key, with equal values. */
bool gb_config_equal(const gb_config *a, const gb_config *b, const char *key);

/* Whether both objects are there, and equal. */
bool gb_config_equal_objects(const gb_config *a, const gb_config *b);

/* Makes an error of the caller's the file's, if it has none yet; file and key are put before the message. */
void gb_config_fail(const gb_config *config, const char *key, gumbel_status status, const char *format, ...)
    GB_PRINTF(4, 5);

#endif
