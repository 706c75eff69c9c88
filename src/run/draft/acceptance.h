/* SPDX-License-Identifier: Apache-2.0
 *
 * How likely a guess is accepted, by how much speaks for it: what was seen in this answer over what is usual,
 * and what was seen long ago counts for little.
 */
#ifndef GUMBEL_RUN_DRAFT_ACCEPTANCE_H
#define GUMBEL_RUN_DRAFT_ACCEPTANCE_H

#include <stdbool.h>
#include <stdint.h>

enum { GB_EVIDENCE_CLASSES = 8 };

/* Zeroed at the start. */
typedef struct gb_acceptance {
    float tried[GB_EVIDENCE_CLASSES], accepted[GB_EVIDENCE_CLASSES];
} gb_acceptance;

/* The probability that a guess is accepted which so many matching tokens speak for, if all guesses before it
 * are. 0 .. 1. */
float gb_acceptance_chance(const gb_acceptance *acceptance, uint32_t matching);

/* Counts a guess whose turn came. */
void gb_acceptance_note(gb_acceptance *acceptance, uint32_t matching, bool was_accepted);

/* Lets what was seen count for less. Once for each step of the answer. */
void gb_acceptance_fade(gb_acceptance *acceptance);

#endif
