/* SPDX-License-Identifier: Apache-2.0
 *
 * Long texts in messages: cut between two characters of UTF-8, with an ellipsis in the place of what is left
 * out.
 */
#ifndef GUMBEL_CLI_BASE_SHORTEN_H
#define GUMBEL_CLI_BASE_SHORTEN_H

#include <stddef.h>

/* Room for a shortened text and its zero byte. */
enum { CLI_SHORTENED = 104 };

/* Copies length bytes of text into room: all of them, or the beginning and an ellipsis. Returns room. */
const char *cli_shorten_bytes(const char *text, size_t length, char room[CLI_SHORTENED]);

/* The same of a text that ends in a zero byte. */
const char *cli_shorten(const char *text, char room[CLI_SHORTENED]);

#endif
