/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain characters, those that JSON strings have unescaped, by their bytes: at each place of a text a whole
 * one is expected, or what is left of one.
 */
#ifndef GUMBEL_GRAMMAR_MATCH_PLAIN_PARTS_H
#define GUMBEL_GRAMMAR_MATCH_PLAIN_PARTS_H

#include <stdint.h>

enum { GB_PLAIN_CHARACTER = 0, GB_PLAIN_PARTS = 8 };

/* needed[part][next]: a bit for each class of bytes of which some lead from a part to the next. */
typedef struct gb_plain_parts {
    uint64_t needed[GB_PLAIN_PARTS][GB_PLAIN_PARTS][4];
} gb_plain_parts;

void gb_find_plain_parts(const uint8_t class_of[256], gb_plain_parts *parts);

#endif
