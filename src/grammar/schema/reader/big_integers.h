/* SPDX-License-Identifier: Apache-2.0
 *
 * Integers of a schema's text that 64 bits do not hold: read as doubles, beside which their digits are kept.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_READER_BIG_INTEGERS_H
#define GUMBEL_GRAMMAR_SCHEMA_READER_BIG_INTEGERS_H

#include "base/byte_buffer.h"

#include <jansson.h>

/* Appends JSON text with ".0" behind such integers, and adds their digits to the object `digits`, by the
 * double that each is. False: no memory, or two of them are one double. What is no JSON stays none. */
bool gb_widen_integers(const char *text, size_t length, gb_byte_buffer *widened, json_t *digits);

/* The digits of a number that was one; NULL: it was none. digits may be NULL. */
const char *gb_big_integer(const json_t *digits, const json_t *number);

#endif
