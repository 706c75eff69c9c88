/* SPDX-License-Identifier: Apache-2.0 */
#include "run/prefill_chunk.h"

/* Backends compute a prompt in blocks of so many positions; a cut within one could change bits. */
enum { BLOCK = 64 };

/* The positions of the ring that a step's first token no longer reads, so that the step may overwrite them.
 */
static uint64_t ring_room(const gb_state *ring) {
    return (uint64_t)ring->type.shape.dims[0] - ring->window;
}

/* The ring with the least room; NULL: the program has none. */
static const gb_state *narrowest_ring(const gb_program *program) {
    const gb_state *found = NULL;
    for (uint32_t i = 0; i < program->state_count; i++) {
        const gb_state *state = &program->states[i];
        if (state->kind == GB_STATE_RING && (!found || ring_room(state) < ring_room(found)))
            found = state;
    }
    return found;
}

static uint32_t most_chunk(const gb_program *program, uint32_t max_context) {
    const gb_state *ring = narrowest_ring(program);
    const uint64_t most = ring && ring_room(ring) < max_context ? ring_room(ring) : max_context;
    const uint64_t own = program->metadata.prefill_chunk;
    return (uint32_t)(most > own ? most : own);
}

uint32_t gb_usual_prefill_chunk(const gb_program *program, const gb_backend_entry *entry,
                                uint32_t max_context) {
    const uint32_t own = (uint32_t)program->metadata.prefill_chunk;
    uint32_t chunk = entry->prefill_chunk;
    while (chunk > own && chunk > most_chunk(program, max_context))
        chunk /= 2;
    return chunk > own ? chunk : own;
}

static gumbel_status fail_too_long(const gb_program *program, uint32_t max_context, uint32_t chunk,
                                   uint32_t most, gumbel_error *error) {
    const gb_state *ring = narrowest_ring(program);
    if (!ring || ring_room(ring) > most)
        return gb_fail(
            error, GUMBEL_ERROR_ARGUMENT,
            "prefill chunk of %u tokens: at most %u with a context of %u positions (--max-context)", chunk,
            most, max_context);
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                   "prefill chunk of %u tokens: at most %u, since the program's layers with a window keep "
                   "only %lld positions, of which a token sees %u",
                   chunk, most, (long long)ring->type.shape.dims[0], ring->window);
}

gumbel_status gb_settle_prefill_chunk(const gb_program *program, const gb_backend_entry *entry,
                                      uint32_t max_context, uint32_t *chunk, gumbel_error *error) {
    const uint32_t most = most_chunk(program, max_context);
    if (*chunk == 0)
        *chunk = gb_usual_prefill_chunk(program, entry, max_context);
    if (*chunk > most)
        return fail_too_long(program, max_context, *chunk, most, error);
    if (*chunk > BLOCK && *chunk % BLOCK != 0 && *chunk != program->metadata.prefill_chunk)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "prefill chunk of %u tokens: above %d expected a multiple of %d", *chunk, (int)BLOCK,
                       (int)BLOCK);
    return GUMBEL_OK;
}
