/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of slots at fixed addresses, [slots, slot_bytes], of which only what is covered takes memory of the
 * device: the driver's virtual memory. Where the driver does not have that, all of it is allocated at once.
 */
#ifndef GUMBEL_BACKENDS_CUDA_RUNTIME_REGION_H
#define GUMBEL_BACKENDS_CUDA_RUNTIME_REGION_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct gb_cuda_page gb_cuda_page;
typedef struct gb_cuda_virtual_memory gb_cuda_virtual_memory; /* the driver's functions */

typedef struct gb_cuda_region {
    uint8_t *memory; /* NULL: of size 0 */
    uint32_t slot_count;
    uint64_t slot_bytes;    /* a multiple of page_bytes */
    uint64_t page_bytes;    /* 0: everything is covered from the start */
    uint64_t covered_bytes; /* of all slots */
    gb_cuda_page *pages;    /* [slot_count, slot_bytes / page_bytes] */
    gb_cuda_virtual_memory *driver;
} gb_cuda_region;

/* Reserves addresses for slots of at least so many bytes. `what` completes "no memory for ..". Safe to
 * destroy after a failure. Errors: MEMORY, BACKEND. */
gumbel_status gb_cuda_region_create(uint32_t slot_count, uint64_t slot_bytes, const char *what,
                                    gb_cuda_region *region, gumbel_error *error);

/* The device must have done all that uses the memory. Safe on a zeroed structure. */
void gb_cuda_region_destroy(gb_cuda_region *region);

/* Gives memory to the bytes of a slot from offset on, where they have none; what they have keeps its bytes,
 * new memory has any. Errors: MEMORY with `what`; some of the bytes may be covered then. */
gumbel_status gb_cuda_region_cover(gb_cuda_region *region, uint32_t slot, uint64_t offset, uint64_t size,
                                   const char *what, gumbel_error *error);

/* Takes a slot's memory back, which the device must have done with. */
void gb_cuda_region_uncover(gb_cuda_region *region, uint32_t slot);

#endif
