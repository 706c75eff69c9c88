/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of characters as lists of ranges.
 */
#ifndef GUMBEL_GRAMMAR_REGEX_RANGES_H
#define GUMBEL_GRAMMAR_REGEX_RANGES_H

#include "grammar/expression.h"

/* Zeroed at the start. */
typedef struct gb_ranges {
    gb_character_range *items; /* owned */
    size_t count, capacity;
    bool failed; /* memory ran out */
} gb_ranges;

void gb_add_range(gb_ranges *ranges, uint32_t first, uint32_t last);
void gb_add_ranges(gb_ranges *ranges, const gb_ranges *others);

/* All characters that are not in the set. Leaves the ranges sorted and apart. */
void gb_negate_ranges(gb_ranges *ranges);

/* Adds the characters of a general category by its short or long name ("Lu", "L", "Letter"). false: no such.
 */
bool gb_add_category(gb_ranges *ranges, const char *name, size_t length);

void gb_free_ranges(gb_ranges *ranges);

#endif
