/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel for one token asks memory for while it multiplies: what it will use some groups later, in
 * this block of rows, in the ones after it or, at the end, in those that the thread reads next. Each plane
 * is prefetched as far ahead as the others, so that nothing is missing where one block ends and another
 * begins. Only this folder includes it.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_INTERLEAVED_AHEAD_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_INTERLEAVED_AHEAD_H

#include "backends/cpu/kernels/vector/interleaved/interleaved.h"

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
    size_t block;       /* that is prefetched */
    size_t lead, whole; /* the groups from those that are used, less those of whole blocks */
} gb_stretch;

/* The stretch of `block` that begins with group g, where blocks have so many groups and what lies `lead`
 * groups ahead is prefetched. */
GB_INLINE gb_stretch gb_stretch_from(size_t block, size_t g, size_t groups, size_t lead) {
    const size_t blocks = (g + lead) / groups, whole = blocks * groups, end = whole + groups - lead;
    return (gb_stretch){end < groups ? end : groups, block + blocks, lead, whole};
}

/* Where the block with that number is, counted from the first one, which may lie past the end; 0: unknown. */
GB_INLINE uintptr_t gb_block_address(const gb_stream *s, size_t block, size_t blocks) {
    if (block < blocks)
        return (uintptr_t)s->first + block * s->block_bytes;
    return s->next ? (uintptr_t)s->next + (block - blocks) * s->block_bytes : 0;
}

/* Bytes from what is used of block to what is prefetched. */
GB_INLINE size_t gb_bytes_ahead(const gb_stream *s, size_t block, size_t blocks, const gb_stretch *to) {
    const uintptr_t target = gb_block_address(s, to->block, blocks);
    if (target == 0)
        return 0;
    return target - gb_block_address(s, block, blocks) + (to->lead - to->whole) * s->group_bytes;
}

/* Looks up the page of a block so far after this one that it is found in time. */
GB_INLINE void gb_find_page_after(const gb_stream *s, size_t block, size_t blocks, size_t after) {
    const uintptr_t target = gb_block_address(s, block + after, blocks);
    if (target != 0)
        gb_find_page((const void *)target, 0);
}

/* Groups of so many bytes that make up the lead. */
GB_INLINE size_t gb_lead_of(size_t group_bytes) {
    return group_bytes < GB_LEAD_BYTES ? GB_LEAD_BYTES / group_bytes : 1;
}

#endif
