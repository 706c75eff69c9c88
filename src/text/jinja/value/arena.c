/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/value/arena.h"

#include "base/memory.h"

#include <stdalign.h>

struct gb_jinja_chunk {
    gb_jinja_chunk *next;
    size_t size;
    alignas(max_align_t) unsigned char bytes[];
};

static const size_t usual_chunk_size = 64 * 1024;

/* A request that fills a chunk of its own goes behind the one being filled, whose rest stays in use. */
static void *allocate_alone(gb_jinja_arena *arena, gb_jinja_chunk *chunk) {
    if (arena->chunks) {
        chunk->next = arena->chunks->next;
        arena->chunks->next = chunk;
    } else {
        arena->chunks = chunk;
        arena->used = chunk->size;
    }
    return chunk->bytes;
}

void *gb_jinja_arena_allocate(gb_jinja_arena *arena, size_t size, size_t limit, bool *over_limit) {
    *over_limit = size > limit;
    if (*over_limit)
        return NULL;
    const size_t alignment = alignof(max_align_t);
    size = (size + alignment - 1) / alignment * alignment;
    if (arena->chunks && size <= arena->chunks->size - arena->used) {
        void *block = arena->chunks->bytes + arena->used;
        arena->used += size;
        return block;
    }
    size_t chunk_size = size > usual_chunk_size / 4 ? size : usual_chunk_size;
    *over_limit = chunk_size > limit || arena->total > limit - chunk_size;
    if (*over_limit)
        return NULL;
    gb_jinja_chunk *chunk = gb_allocate(1, sizeof *chunk + chunk_size);
    if (!chunk)
        return NULL;
    chunk->size = chunk_size;
    arena->total += chunk_size;
    if (chunk_size == size)
        return allocate_alone(arena, chunk);
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    arena->used = size;
    return chunk->bytes;
}

void gb_jinja_arena_free(gb_jinja_arena *arena) {
    while (arena->chunks) {
        gb_jinja_chunk *next = arena->chunks->next;
        gb_free(arena->chunks);
        arena->chunks = next;
    }
    *arena = (gb_jinja_arena){0};
}
