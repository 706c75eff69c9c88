/* SPDX-License-Identifier: Apache-2.0
 *
 * States of slots that wait in the host's memory: by the backend's own copies, or where it has none by the
 * streams that sessions are saved with.
 */
#ifndef GUMBEL_RUN_HOST_STATES_H
#define GUMBEL_RUN_HOST_STATES_H

#include "backends/backend.h"

/* Copies a slot's states at position, those that `saved` says. Release them before the backend is destroyed.
 * Errors: MEMORY, BACKEND. */
gumbel_status gb_copy_to_host(gb_backend *backend, uint32_t slot, uint32_t position, gb_saved_states saved,
                              gb_host_states **states, gumbel_error *error);

/* Gives the slot states that were copied with the same position and `saved`; without caches those stay as
 * they are. Errors: MEMORY, BACKEND. */
gumbel_status gb_copy_from_host(gb_backend *backend, uint32_t slot, uint32_t position, gb_saved_states saved,
                                const gb_host_states *states, gumbel_error *error);

#endif
