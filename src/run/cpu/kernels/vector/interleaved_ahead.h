/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel for one token asks memory for while it multiplies: what it will use some groups later, in
 * this block of rows, in the ones after it or, at the end, in those that the thread reads next. Each plane
 * is asked for as far ahead as the others, so that nothing is missing where one block ends and another
 * begins. Only this folder includes it.
 */
#ifndef GUMBEL_RUN_CPU_KERNELS_VECTOR_INTERLEAVED_AHEAD_H
#define GUMBEL_RUN_CPU_KERNELS_VECTOR_INTERLEAVED_AHEAD_H

#include "run/cpu/kernels/vector/interleaved.h"

/* What memory delivers to a core while it answers. */
enum { GB_LEAD_BYTES = 8192 };

/* What some blocks have of a plane, or of one of its halves. A group may be any number of inputs. */
typedef struct gb_stream {
    const uint8_t *first; /* of the first block */
    const uint8_t *next;  /* of the block that is read after the last one; NULL: none */
    size_t block_bytes, group_bytes;
} gb_stream;

/* Part of a block, all of which asks for the same block. */
typedef struct gb_stretch {
    size_t end;         /* group */
    size_t block;       /* that is asked for */
    size_t lead, whole; /* the groups from those that are used, less those of whole blocks */
} gb_stretch;

/* The stretch of `block` that begins with group g, where blocks have so many groups and what lies `lead`
 * groups ahead is asked for. */
GB_INLINE gb_stretch gb_stretch_from(size_t block, size_t g, size_t groups, size_t lead) {
    const size_t blocks = (g + lead) / groups, whole = blocks * groups, end = whole + groups - lead;
    return (gb_stretch){end < groups ? end : groups, block + blocks, lead, whole};
}

/* Bytes from what is used of block to what is asked for. */
GB_INLINE size_t gb_bytes_ahead(const gb_stream *s, size_t block, size_t blocks, const gb_stretch *to) {
    const bool is_here = to->block < blocks;
    if (!is_here && !s->next)
        return 0;
    const uint8_t *target =
        is_here ? s->first + to->block * s->block_bytes : s->next + (to->block - blocks) * s->block_bytes;
    return (uintptr_t)target - (uintptr_t)(s->first + block * s->block_bytes) +
           (to->lead - to->whole) * s->group_bytes;
}

/* Looks up the page of a block so far after this one that it is found in time. */
GB_INLINE void gb_find_page_after(const gb_stream *s, size_t block, size_t blocks, size_t after) {
    const size_t target = block + after;
    if (target < blocks)
        gb_find_page(s->first + target * s->block_bytes, 0);
    else if (s->next)
        gb_find_page(s->next + (target - blocks) * s->block_bytes, 0);
}

/* Groups of so many bytes that make up the lead. */
GB_INLINE size_t gb_lead_of(size_t group_bytes) {
    return group_bytes < GB_LEAD_BYTES ? GB_LEAD_BYTES / group_bytes : 1;
}

#endif
