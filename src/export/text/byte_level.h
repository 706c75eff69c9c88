/* SPDX-License-Identifier: Apache-2.0
 *
 * The byte-level encoding of tokenizer.json: files that are JSON spell bytes as characters, each byte as one
 * (Radford et al. 2019, GPT-2). A program has the bytes.
 */
#ifndef GUMBEL_EXPORT_TEXT_BYTE_LEVEL_H
#define GUMBEL_EXPORT_TEXT_BYTE_LEVEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Whether the value of pre_tokenizer or decoder is ByteLevel or a Sequence (of `members`) with it. */
bool gb_json_has_byte_level(const json_t *value, const char *members);

/* Writes the bytes that the well-formed text spells into bytes, which has room for length, and their number
 * into *count. False when a character spells none. */
bool gb_read_byte_level(const char *text, size_t length, char *bytes, size_t *count);

#endif
