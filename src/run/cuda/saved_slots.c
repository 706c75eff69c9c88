/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cuda/device.h"
#include "run/cuda/slots.h"
#include "run/saved_rows.h"

/* How many of the rows left lie in memory one after the other. */
static uint64_t rows_together(const gb_cuda_state *state, gb_saved_rows left) {
    uint64_t to_end = state->rows - left.first % state->rows;
    return left.count < to_end ? left.count : to_end;
}

static gumbel_status save_bytes(const gb_cuda_slots *slots, const uint8_t *from, uint64_t size,
                                gb_save_stream write, void *user, gumbel_error *error) {
    for (uint64_t done = 0; done < size;) {
        size_t part = size - done < GB_CUDA_STAGING_BYTES ? (size_t)(size - done) : GB_CUDA_STAGING_BYTES;
        cudaError_t result =
            cudaMemcpyAsync(slots->staging, from + done, part, cudaMemcpyDeviceToHost, slots->stream);
        if (result == cudaSuccess)
            result = cudaStreamSynchronize(slots->stream);
        GB_TRY(gb_cuda_check(result, "reading a session's state", error));
        GB_TRY(write(user, slots->staging, part, error));
        done += part;
    }
    return GUMBEL_OK;
}

static gumbel_status load_bytes(const gb_cuda_slots *slots, uint8_t *to, uint64_t size, gb_load_stream read,
                                void *user, gumbel_error *error) {
    for (uint64_t done = 0; done < size;) {
        size_t part = size - done < GB_CUDA_STAGING_BYTES ? (size_t)(size - done) : GB_CUDA_STAGING_BYTES;
        GB_TRY(read(user, slots->staging, part, error));
        cudaError_t result =
            cudaMemcpyAsync(to + done, slots->staging, part, cudaMemcpyHostToDevice, slots->stream);
        if (result == cudaSuccess)
            result = cudaStreamSynchronize(slots->stream);
        GB_TRY(gb_cuda_check(result, "writing a session's state", error));
        done += part;
    }
    return GUMBEL_OK;
}

static gb_saved_rows rows_of(const gb_cuda_state *state, uint32_t position) {
    return gb_rows_to_save(state->kind, state->rows, state->window, position);
}

gumbel_status gb_cuda_slots_save(const gb_cuda_slots *slots, uint32_t slot, uint32_t position,
                                 gb_save_stream write, void *user, gumbel_error *error) {
    for (uint32_t i = 0; i < slots->state_count; i++) {
        const gb_cuda_state *state = &slots->states[i];
        for (gb_saved_rows left = rows_of(state, position); left.count > 0;) {
            uint64_t count = rows_together(state, left);
            const uint8_t *from = gb_cuda_state_of(slot, state) + left.first % state->rows * state->row_bytes;
            GB_TRY(save_bytes(slots, from, count * state->row_bytes, write, user, error));
            left = (gb_saved_rows){left.first + count, left.count - count};
        }
    }
    return GUMBEL_OK;
}

gumbel_status gb_cuda_slots_load(gb_cuda_slots *slots, uint32_t slot, uint32_t position, gb_load_stream read,
                                 void *user, gumbel_error *error) {
    GB_TRY(gb_cuda_slots_cover(slots, slot, position, error));
    for (uint32_t i = 0; i < slots->state_count; i++) {
        const gb_cuda_state *state = &slots->states[i];
        for (gb_saved_rows left = rows_of(state, position); left.count > 0;) {
            uint64_t count = rows_together(state, left);
            uint8_t *to = gb_cuda_state_of(slot, state) + left.first % state->rows * state->row_bytes;
            GB_TRY(load_bytes(slots, to, count * state->row_bytes, read, user, error));
            left = (gb_saved_rows){left.first + count, left.count - count};
        }
    }
    return GUMBEL_OK;
}
