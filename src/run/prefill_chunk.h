/* SPDX-License-Identifier: Apache-2.0
 *
 * How many tokens of one session a step takes at most: what a backend likes, and what the caller of an engine
 * wants.
 */
#ifndef GUMBEL_RUN_PREFILL_CHUNK_H
#define GUMBEL_RUN_PREFILL_CHUNK_H

#include "backends/backends.h"

/* What an engine takes where nobody says: the backend's chunk, halved until the context allows it,
 * and at least the program's own. */
uint32_t gb_usual_prefill_chunk(const gb_program *program, const gb_backend_entry *entry,
                                uint32_t max_context);

/* Puts the usual chunk in the place of 0. Errors: ARGUMENT, for more than the context allows, or what is
 * no multiple of the blocks that prompts are cut at. */
gumbel_status gb_settle_prefill_chunk(const gb_program *program, const gb_backend_entry *entry,
                                      uint32_t max_context, uint32_t *chunk, gumbel_error *error);

#endif
