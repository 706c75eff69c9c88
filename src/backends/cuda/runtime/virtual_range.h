/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses of slots, [slots, slot_bytes], reserved in the device's virtual memory; only what is mapped takes
 * memory. Where the driver has no virtual memory all of it is allocated at once.
 */
#ifndef GUMBEL_BACKENDS_CUDA_RUNTIME_VIRTUAL_RANGE_H
#define GUMBEL_BACKENDS_CUDA_RUNTIME_VIRTUAL_RANGE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct gb_cuda_page gb_cuda_page;
typedef struct gb_cuda_vm_driver gb_cuda_vm_driver; /* the driver's functions */

typedef struct gb_cuda_virtual_range {
    uint8_t *memory; /* NULL: of size 0 */
    uint32_t slot_count;
    uint64_t slot_bytes; /* a multiple of page_bytes */
    uint64_t page_bytes; /* 0: all is mapped from the start */
    uint64_t used_bytes; /* of all slots */
    gb_cuda_page *pages; /* [slot_count, slot_bytes / page_bytes] */
    gb_cuda_vm_driver *driver;
} gb_cuda_virtual_range;

/* Reserves addresses for slots of at least so many bytes. `what` completes "no memory for ..". Safe to
 * destroy after a failure. Errors: MEMORY, BACKEND. */
gumbel_status gb_cuda_virtual_range_create(uint32_t slot_count, uint64_t slot_bytes, const char *what,
                                           gb_cuda_virtual_range *range, gumbel_error *error);

/* The device must have done all that uses the memory. Safe on a zeroed structure. */
void gb_cuda_virtual_range_destroy(gb_cuda_virtual_range *range);

/* Maps the bytes of a slot from offset on that are not mapped yet; those of new pages are undefined.
 * Errors: MEMORY with `what`, after which a part may be mapped. */
gumbel_status gb_cuda_virtual_range_map(gb_cuda_virtual_range *range, uint32_t slot, uint64_t offset,
                                        uint64_t size, const char *what, gumbel_error *error);

/* Unmaps a slot. No work of the device may use it any more. */
void gb_cuda_virtual_range_unmap(gb_cuda_virtual_range *range, uint32_t slot);

#endif
