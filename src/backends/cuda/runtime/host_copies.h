/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of slots' states to host memory that steps do not wait for: within the device into a room, which
 * takes about as long as reading them, and from there into pinned blocks by a stream of their own.
 */
#ifndef GUMBEL_BACKENDS_CUDA_RUNTIME_HOST_COPIES_H
#define GUMBEL_BACKENDS_CUDA_RUNTIME_HOST_COPIES_H

#include "backends/cuda/runtime/host_blocks.h"
#include "backends/states/states.h"

#include <cuda_runtime_api.h>

enum { GB_CUDA_ROOMS = 2 /* one is filled while the other is copied */ };

/* Memory of the device for states on their way. */
typedef struct gb_cuda_room {
    uint8_t *memory;
    cudaEvent_t left; /* all that was in it has been copied */
} gb_cuda_room;

typedef struct gb_cuda_host_copies {
    cudaStream_t steps, stream; /* the slots', and that of the copies to the host */
    cudaEvent_t gathered;
    gb_cuda_room rooms[GB_CUDA_ROOMS];
    uint64_t room_bytes, least_room_bytes, most_room_bytes; /* of each */
    uint32_t room;                                          /* that is filled next */
    bool is_short;                                          /* there is no memory for larger rooms */
    gb_cuda_host_blocks blocks;
} gb_cuda_host_copies;

/* For slots of so many bytes whose states `steps` computes. Safe to destroy after a failure. Errors: MEMORY,
 * BACKEND. */
gumbel_status gb_cuda_host_copies_create(uint64_t slot_bytes, cudaStream_t steps, gb_cuda_host_copies *copies,
                                         gumbel_error *error);

/* All states must have been released. Safe on a zeroed structure. */
void gb_cuda_host_copies_destroy(gb_cuda_host_copies *copies);

/* Gives back what memory of the device it can do without, for good; false: it has none. */
bool gb_cuda_host_copies_shrink(gb_cuda_host_copies *copies);

/* Copies what is computed of a slot's states so far; what is computed later does not change them. Errors:
 * MEMORY, BACKEND. */
gumbel_status gb_cuda_copy_to_host(gb_cuda_host_copies *copies, const gb_states *states, uint32_t slot,
                                   uint32_t position, gb_saved_states saved, gb_host_states **made,
                                   gumbel_error *error);

/* Gives a slot, whose positions have memory, such states. Errors: BACKEND. */
gumbel_status gb_cuda_copy_from_host(gb_cuda_host_copies *copies, const gb_states *states, uint32_t slot,
                                     uint32_t position, gb_saved_states saved, const gb_host_states *from,
                                     gumbel_error *error);

#endif
