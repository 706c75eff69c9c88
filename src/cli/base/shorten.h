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

/* Copies text into message. Where capacity is too small, an ellipsis takes the place of its middle: what is
 * wrong often stands at the end of a message, behind a long path. Capacity is at least 16. */
void cli_fit_message(const char *text, char *message, size_t capacity);

#endif
