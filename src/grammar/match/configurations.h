/* SPDX-License-Identifier: Apache-2.0
 *
 * Configurations of an automaton: sets of stacks, which are all the places where a text may be. Frames and
 * configurations are stored once each, so that one is a number, and where a byte leads is found once and then
 * looked up. Not thread-safe.
 */
#ifndef GUMBEL_GRAMMAR_MATCH_CONFIGURATIONS_H
#define GUMBEL_GRAMMAR_MATCH_CONFIGURATIONS_H

#include "grammar/compile/automaton.h"
#include "grammar/match/closure.h"
#include "grammar/match/intern.h"

#define GB_DEAD 0u            /* the configuration without stacks */
#define GB_UNKNOWN UINT32_MAX /* in a row: not looked for yet */

typedef struct gb_configurations {
    gb_closure closure;
    gb_intern_table sets; /* of stacks, sorted */
    uint8_t *traits;      /* [sets.count] GB_MAY_END, GB_HAS_TOKENS */
    size_t trait_capacity;
    uint32_t *rows; /* [sets.count][class_count]: where a byte of the class leads */
    size_t row_capacity;
    uint64_t work, work_limit; /* stacks visited and words of rows made; whoever calls may set work to 0 */
    gumbel_status status;      /* the first error: MEMORY, or LIMIT (too many stacks, too much work) */
} gb_configurations;

enum {
    GB_MAY_END = 1,   /* the text may end */
    GB_HAS_TOKENS = 2 /* a stack's state takes a token by its id */
};

/* automaton must outlive them. A closure may visit stack_limit stacks, all together work_limit. false without
 * memory; gb_configurations_free is to be called in any case. */
bool gb_configurations_begin(gb_configurations *configurations, const gb_automaton *automaton,
                             size_t stack_limit, uint64_t work_limit);
void gb_configurations_free(gb_configurations *configurations);

/* The configuration at the start of the automaton. */
uint32_t gb_start_configuration(gb_configurations *configurations);

/* Where a class of bytes leads; found and stored the first time. GB_DEAD after an error, too. */
uint32_t gb_find_step(gb_configurations *configurations, uint32_t from, uint32_t class);

/* Where a token leads by its id, apart from its bytes; an end token is not what "any other token" means. */
uint32_t gb_token_step(gb_configurations *configurations, uint32_t from, uint32_t id, bool may_be_other);

/* The configuration that has the stacks of both. */
uint32_t gb_unite(gb_configurations *configurations, uint32_t a, uint32_t b);

/* The configuration that the stacks which were added to the closure lead to. */
uint32_t gb_configuration_of_closure(gb_configurations *configurations);

/* Bytes of memory that are in use. */
size_t gb_configurations_bytes(const gb_configurations *configurations);

static inline const gb_stack *gb_stacks_of(const gb_configurations *configurations, uint32_t configuration,
                                           size_t *count) {
    *count = gb_interned_size(&configurations->sets, configuration) / 2;
    return (const gb_stack *)gb_interned(&configurations->sets, configuration);
}

static inline uint32_t gb_class_step(gb_configurations *configurations, uint32_t from, uint32_t class) {
    size_t classes = configurations->closure.automaton->class_count;
    uint32_t to = configurations->rows[from * classes + class];
    return to != GB_UNKNOWN ? to : gb_find_step(configurations, from, class);
}

static inline uint32_t gb_byte_step(gb_configurations *configurations, uint32_t from, uint8_t byte) {
    return gb_class_step(configurations, from, configurations->closure.automaton->class_of[byte]);
}

#endif
