/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of JSON that are made of others, where memory may be short at each of them. The functions take all
 * values that they are given, of which each may be NULL; then, and without memory, the result is NULL.
 */
#ifndef GUMBEL_GRAMMAR_COMMON_BUILD_JSON_H
#define GUMBEL_GRAMMAR_COMMON_BUILD_JSON_H

#include <jansson.h>

/* The array with one more value. */
json_t *gb_append_value(json_t *array, json_t *value);

/* The object with the member. */
json_t *gb_set_member(json_t *object, const char *name, json_t *value);

#endif
