/* SPDX-License-Identifier: Apache-2.0
 *
 * Where an answer stands, in words for an error message.
 */
#ifndef GUMBEL_GRAMMAR_POSITION_H
#define GUMBEL_GRAMMAR_POSITION_H

#include <stdbool.h>
#include <stddef.h>

enum { GB_POSITION_SIZE = 192 };

/* Of a text that begins an answer: of JSON the path of the value that is written, `$.people[2].name`;
 * otherwise how many bytes there are and the last of them. Control characters are escaped. */
void gb_describe_position(bool is_json, const char *text, size_t size, char where[GB_POSITION_SIZE]);

#endif
