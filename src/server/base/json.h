/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading values of JSON with messages that name the field, and making some. A reader returns false with the
 * failure filled in where the value is of another type or out of its range.
 */
#ifndef GUMBEL_SERVER_BASE_JSON_H
#define GUMBEL_SERVER_BASE_JSON_H

#include "base/byte_buffer.h"
#include "server/base/failure.h"

#include <jansson.h>

/* Once, before threads make values. */
void server_json_init(void);

/* Whether memory was short on this thread for a value since the last call of server_json_forget: a tree may
 * lack members then, and what was read of a text may be wrong. server_json_fail says so of other parts. */
bool server_json_has_failed(void);
void server_json_fail(void);
void server_json_forget(void);

bool server_read_bool(const char *name, const json_t *value, bool *read, server_failure *failure);
/* Whole numbers are integers, also where they are written as 4.0. */
bool server_read_integer(const char *name, const json_t *value, int64_t low, int64_t high, int64_t *read,
                         server_failure *failure);
bool server_read_number(const char *name, const json_t *value, double *read, server_failure *failure);

bool server_is_whole(const json_t *value);

/* *read lives as long as value. A zero byte in the string is refused. */
bool server_read_string(const char *name, const json_t *value, const char **read, server_failure *failure);

/* Whether value is an array, or an object. */
bool server_read_array(const char *name, const json_t *value, server_failure *failure);
bool server_read_object(const char *name, const json_t *value, server_failure *failure);

/* Whether value is an object whose members are of those names, which are separated by blanks. */
bool server_check_members(const char *name, const json_t *value, const char *members,
                          server_failure *failure);

/* Whether value is a string of the words in choices, which are separated by blanks. */
bool server_read_choice(const char *name, const json_t *value, const char *choices, const char **read,
                        server_failure *failure);

/* A list of token ids below limit; free *tokens. */
bool server_read_tokens(const char *name, const json_t *value, uint32_t limit, int32_t **tokens,
                        size_t *count, server_failure *failure);

/* Whether word is one of words, which are separated by blanks. */
bool server_has_word(const char *words, const char *word);

/* A string; bytes that are not UTF-8 become U+FFFD. */
json_t *server_json_text(const char *bytes, size_t length);

/* A decimal string: a seed may be larger than an integer of JSON is for some. */
json_t *server_json_seed(uint64_t seed);

/* A float as the shortest decimal number that is this float; null where it is not finite. */
json_t *server_json_float(float value);

/* OpenAI's error object. */
json_t *server_openai_error(const server_failure *failure);

/* Appends a string in its quotes; bytes that are not UTF-8 become U+FFFD. */
void server_print_text(gb_byte_buffer *text, const char *bytes, size_t length);

/* Appends the value on one line. */
void server_print_json(gb_byte_buffer *text, const json_t *value);

#endif
