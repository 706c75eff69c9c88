/* SPDX-License-Identifier: Apache-2.0
 *
 * The caches of attention: where a step's keys and values are stored, and where they are found. Only the
 * kernels of attention include it.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_ATTENTION_H
#define GUMBEL_BACKENDS_CPU_KERNELS_ATTENTION_H

#include "backends/cpu/kernels/kernels.h"
#include "tensor/cache_codes.h"

/* Operands by their place in ops.def. */
enum {
    GB_QUERY,
    GB_KEY,
    GB_VALUE,
    GB_POSITIONS,
    GB_SLOTS,
    GB_KEY_CACHE,
    GB_VALUE_CACHE,
    GB_SINKS,
};

static inline const int32_t *gb_integers(const gb_cpu_tensor *tensor) {
    return tensor->data;
}

static inline uint8_t *gb_cache_of_slot(const gb_cpu_tensor *cache, size_t slot) {
    return (uint8_t *)cache->data + slot * cache->slot_bytes;
}

/* Bytes of so many elements of a row: of codes and their scales, where it has them. */
static inline size_t gb_cache_row_bytes(const gb_cpu_tensor *cache) {
    const size_t elements = cache->dims[1] * cache->dims[2];
    return gb_dtype_has_codes(cache->dtype)
               ? gb_code_bytes(cache->dtype, elements) + gb_code_scale_bytes(elements)
               : elements * gb_dtype_size(cache->dtype);
}

/* Keys and values are those of the operands GB_KEY and GB_VALUE, or their caches. */
static inline const gb_cpu_tensor *gb_cache_for(const gb_kernel_call *call, size_t rows) {
    return call->operands[rows + GB_KEY_CACHE - GB_KEY];
}

/* Whether the tokens first .. end - 1, a run of one slot, have their rows in the room until all are read: in
 * the ring they would overwrite what the first of them reads. */
bool gb_run_has_room(const gb_kernel_call *call, size_t first, size_t end);

/* Where the room has token n's key or value: in the team's shared memory, for all tokens of the step keys,
 * then values. */
uint8_t *gb_row_in_room(const gb_kernel_call *call, const gb_worker *worker, size_t n, size_t rows);

#endif
