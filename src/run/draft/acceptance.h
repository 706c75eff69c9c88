/* SPDX-License-Identifier: Apache-2.0
 *
 * How likely a guess is accepted, by how much speaks for it: what was seen over what is usual, and what was
 * seen long ago counts for little.
 */
#ifndef GUMBEL_RUN_DRAFT_ACCEPTANCE_H
#define GUMBEL_RUN_DRAFT_ACCEPTANCE_H

#include <stdbool.h>
#include <stdint.h>

enum { GB_EVIDENCE_CLASSES = 8 };

/* Zeroed at the start but for what it is by. */
typedef struct gb_acceptance {
    bool is_by_place; /* the evidence is the place in a model's draft; false: the tokens of a match */
    float tried[GB_EVIDENCE_CLASSES], accepted[GB_EVIDENCE_CLASSES];
} gb_acceptance;

/* The probability that a guess with this evidence is accepted, if all guesses before it are. 0 .. 1. */
float gb_acceptance_chance(const gb_acceptance *acceptance, uint32_t evidence);

/* Counts a guess whose turn came. */
void gb_acceptance_note(gb_acceptance *acceptance, uint32_t evidence, bool was_accepted);

/* Lets what was seen count for less. Once for each step of the answer. */
void gb_acceptance_fade(gb_acceptance *acceptance);

#endif
