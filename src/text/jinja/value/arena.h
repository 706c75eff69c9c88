/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that lives until the end of one render: tokens, syntax tree, values. Nothing in it is freed singly.
 */
#ifndef GUMBEL_TEXT_JINJA_VALUE_ARENA_H
#define GUMBEL_TEXT_JINJA_VALUE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct gb_jinja_chunk gb_jinja_chunk;

/* Starts zeroed. */
typedef struct gb_jinja_arena {
    gb_jinja_chunk *chunks; /* the newest first; the first one is being filled */
    size_t used;            /* bytes of the first chunk */
    size_t total;           /* bytes of all chunks */
} gb_jinja_arena;

/* size zeroed bytes, aligned for any type. NULL when there is no memory or, with *over_limit set, when the
 * arena would hold more than limit bytes. */
void *gb_jinja_arena_allocate(gb_jinja_arena *arena, size_t size, size_t limit, bool *over_limit);

/* Frees everything. */
void gb_jinja_arena_free(gb_jinja_arena *arena);

#endif
