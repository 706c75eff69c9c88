/* SPDX-License-Identifier: Apache-2.0
 *
 * Configurations that allow the same tokens although their counts differ: a count that is far from its bounds
 * stands for all of these, so that a mask is not made anew with every item that is counted.
 */
#ifndef GUMBEL_GRAMMAR_MATCH_ALIKE_H
#define GUMBEL_GRAMMAR_MATCH_ALIKE_H

#include "grammar/match/configurations.h"
#include "text/trie/trie.h"

/* Zeroed at the start. */
typedef struct gb_alike {
    uint32_t longest;   /* bytes of the longest token: so many items may end in one */
    gb_frame_walk walk; /* done: by frame, the one that stands for it */
    size_t frame_count;
    uint32_t *of_configuration; /* by configuration, in the same way */
    size_t configuration_count;
} gb_alike;

void gb_alike_begin(gb_alike *alike, const gb_token_trie *trie);
void gb_alike_free(gb_alike *alike);

/* The configuration that stands for this one, which has the same mask. GB_DEAD after an error, which the
 * configurations keep. */
uint32_t gb_find_alike(gb_alike *alike, gb_configurations *configurations, uint32_t configuration);

size_t gb_alike_bytes(const gb_alike *alike);

/* Forgets what was found: the numbers are those of other configurations. */
void gb_alike_forget(gb_alike *alike);

#endif
