/* SPDX-License-Identifier: Apache-2.0 */
#include "run/prefill_chunk.h"

/* Backends compute a prompt in blocks of so many positions; a cut within one could change bits. */
enum { BLOCK = 64 };

static uint32_t most_chunk(const gb_program *program, uint32_t max_context) {
    const uint32_t own = (uint32_t)program->metadata.prefill_chunk;
    return max_context > own ? max_context : own;
}

uint32_t gb_usual_prefill_chunk(const gb_program *program, const gb_backend_entry *entry,
                                uint32_t max_context) {
    const uint32_t own = (uint32_t)program->metadata.prefill_chunk;
    uint32_t chunk = entry->prefill_chunk;
    while (chunk > own && chunk > most_chunk(program, max_context))
        chunk /= 2;
    return chunk > own ? chunk : own;
}

gumbel_status gb_settle_prefill_chunk(const gb_program *program, const gb_backend_entry *entry,
                                      uint32_t max_context, uint32_t *chunk, gumbel_error *error) {
    const uint32_t most = most_chunk(program, max_context);
    if (*chunk == 0)
        *chunk = gb_usual_prefill_chunk(program, entry, max_context);
    if (*chunk > most)
        return gb_fail(
            error, GUMBEL_ERROR_ARGUMENT,
            "prefill chunk of %u tokens: at most %u with a context of %u positions (--max-context)", *chunk,
            most, max_context);
    if (*chunk > BLOCK && *chunk % BLOCK != 0 && *chunk != program->metadata.prefill_chunk)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "prefill chunk of %u tokens: above %d expected a multiple of %d", *chunk, (int)BLOCK,
                       (int)BLOCK);
    return GUMBEL_OK;
}
