/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/attention.h"

#include "base/memory.h"

/* ---- The room ------------------------------------------------------------------------------------------ */

size_t gb_longest_run_in_ring(const gb_kernel_call *call) {
    const gb_cpu_tensor *cache = call->operands[GB_KEY_CACHE];
    const size_t window = (size_t)gb_node_int(call->node, GB_ATTRIBUTE_WINDOW);
    return window > 0 && call->operands[GB_KEY] ? cache->dims[0] - window + 1 : SIZE_MAX;
}

bool gb_run_has_room(const gb_kernel_call *call, size_t first, size_t end) {
    return end - first > gb_longest_run_in_ring(call);
}

bool gb_attention_room_bytes(const gb_kernel_call *call, size_t tokens, uint64_t *bytes) {
    *bytes = 0;
    if (tokens <= gb_longest_run_in_ring(call))
        return true;
    const size_t row =
        gb_cache_row_bytes(call->operands[GB_KEY_CACHE]) + gb_cache_row_bytes(call->operands[GB_VALUE_CACHE]);
    return gb_multiply_size(tokens, row, bytes);
}

uint8_t *gb_row_in_room(const gb_kernel_call *call, const gb_worker *worker, size_t n, size_t rows) {
    const size_t before =
        rows == GB_VALUE ? call->operands[GB_SLOTS]->dims[0] * gb_cache_row_bytes(gb_cache_for(call, GB_KEY))
                         : 0;
    return (uint8_t *)worker->shared + before + n * gb_cache_row_bytes(gb_cache_for(call, rows));
}

/* ---- Storing ------------------------------------------------------------------------------------------- */

/* Token n's key or value, as its cache has them. */
static void store(const gb_kernel_call *call, size_t n, size_t rows, void *to) {
    const gb_cpu_tensor *x = call->operands[rows];
    const gb_dtype dtype = gb_cache_for(call, rows)->dtype;
    const size_t width = x->dims[1] * x->dims[2];
    const gb_attribute_key rotation = rows == GB_KEY ? GB_ATTRIBUTE_ROTATION : GB_ATTRIBUTE_VALUE_ROTATION;
    if (gb_dtype_has_codes(dtype))
        call->vector->store_codes(gb_floats(x) + n * width, width, dtype,
                                  (uint32_t)gb_node_int(call->node, rotation), to);
    else
        call->vector->narrow(gb_floats(x) + n * width, dtype, width, to);
}

static void *row_in_cache(const gb_kernel_call *call, size_t n, size_t rows) {
    const gb_cpu_tensor *cache = gb_cache_for(call, rows);
    const size_t slot = (size_t)gb_integers(call->operands[GB_SLOTS])[n];
    const size_t row = (size_t)gb_integers(call->operands[GB_POSITIONS])[n] % cache->dims[0];
    return gb_cache_of_slot(cache, slot) + row * gb_cache_row_bytes(cache);
}

static void append(const gb_kernel_call *call, size_t n) {
    store(call, n, GB_KEY, row_in_cache(call, n, GB_KEY));
    store(call, n, GB_VALUE, row_in_cache(call, n, GB_VALUE));
}

static void append_to_room(const gb_kernel_call *call, const gb_worker *worker, size_t n) {
    store(call, n, GB_KEY, gb_row_in_room(call, worker, n, GB_KEY));
    store(call, n, GB_VALUE, gb_row_in_room(call, worker, n, GB_VALUE));
}

void gb_kernel_attention_append(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *slots = call->operands[GB_SLOTS];
    const gb_share share = gb_tokens_of(worker, slots->dims[0]);
    for (size_t first = 0, end; first < share.end; first = end) {
        end = gb_end_of_run(slots, first, SIZE_MAX);
        const bool has_room = gb_run_has_room(call, first, end);
        for (size_t n = first > share.first ? first : share.first; n < end && n < share.end; n++) {
            if (has_room)
                append_to_room(call, worker, n);
            else
                append(call, n);
        }
    }
}

/* Of each run that has room the tokens that the ring has rows for. */
void gb_kernel_attention_append_after(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *slots = call->operands[GB_SLOTS];
    const size_t capacity = call->operands[GB_KEY_CACHE]->dims[0];
    const gb_share share = gb_tokens_of(worker, slots->dims[0]);
    for (size_t first = 0, end; first < share.end; first = end) {
        end = gb_end_of_run(slots, first, SIZE_MAX);
        const size_t kept = end - first > capacity ? end - capacity : first;
        if (!gb_run_has_room(call, first, end))
            continue;
        for (size_t n = kept > share.first ? kept : share.first; n < end && n < share.end; n++)
            append(call, n);
    }
}
