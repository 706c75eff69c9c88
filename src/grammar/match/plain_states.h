/* SPDX-License-Identifier: Apache-2.0
 *
 * States from where on all texts of plain characters (those that JSON strings have unescaped) are allowed,
 * however long they are. This is found of states alone, whatever frames are below them, so that it is found
 * once for all places in such texts. Not thread-safe.
 */
#ifndef GUMBEL_GRAMMAR_MATCH_PLAIN_STATES_H
#define GUMBEL_GRAMMAR_MATCH_PLAIN_STATES_H

#include "grammar/match/configurations.h"
#include "grammar/match/plain_parts.h"

/* A state where a part is expected. */
typedef struct gb_plain_place {
    uint32_t state, part;
} gb_plain_place;

/* Zeroed at the start. */
typedef struct gb_plain_states {
    gb_plain_parts parts;
    uint8_t *found;         /* by state: a bit for each part that was looked at */
    uint8_t *fails;         /* by state: a bit for each part after which some plain text is not allowed */
    gb_plain_place *places; /* that are being looked at */
    size_t place_count, place_capacity;
} gb_plain_states;

/* Whether all such texts may follow the configuration. False, too, where that takes more to find, or without
 * memory. */
bool gb_allows_plain_texts(gb_plain_states *states, const gb_configurations *configurations,
                           uint32_t configuration);
void gb_plain_states_free(gb_plain_states *states);

#endif
