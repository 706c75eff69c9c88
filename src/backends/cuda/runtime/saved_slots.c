/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/slots.h"

/* The caller's stream, which takes or gives bytes of the host. */
typedef struct host_stream {
    const gb_cuda_slots *slots;
    gb_save_stream write;
    gb_load_stream read;
    void *user;
} host_stream;

static size_t staged_part(uint64_t left) {
    return left < GB_CUDA_STAGING_BYTES ? (size_t)left : GB_CUDA_STAGING_BYTES;
}

static gumbel_status copy_staged(const gb_cuda_slots *slots, void *to, const void *from, size_t size,
                                 enum cudaMemcpyKind kind, const char *doing, gumbel_error *error) {
    cudaError_t result = cudaMemcpyAsync(to, from, size, kind, slots->stream);
    if (result == cudaSuccess)
        result = cudaStreamSynchronize(slots->stream);
    return gb_cuda_check(result, doing, error);
}

static gumbel_status save_bytes(void *stream, const void *from, uint64_t size, gumbel_error *error) {
    const host_stream *to = stream;
    const gb_cuda_slots *slots = to->slots;
    for (uint64_t done = 0; done < size;) {
        const size_t part = staged_part(size - done);
        GB_TRY(copy_staged(slots, slots->staging, (const uint8_t *)from + done, part, cudaMemcpyDeviceToHost,
                           "reading a session's state", error));
        GB_TRY(to->write(to->user, slots->staging, part, error));
        done += part;
    }
    return GUMBEL_OK;
}

static gumbel_status load_bytes(void *stream, void *to, uint64_t size, gumbel_error *error) {
    const host_stream *from = stream;
    const gb_cuda_slots *slots = from->slots;
    for (uint64_t done = 0; done < size;) {
        const size_t part = staged_part(size - done);
        GB_TRY(from->read(from->user, slots->staging, part, error));
        GB_TRY(copy_staged(slots, (uint8_t *)to + done, slots->staging, part, cudaMemcpyHostToDevice,
                           "writing a session's state", error));
        done += part;
    }
    return GUMBEL_OK;
}

gumbel_status gb_cuda_slots_save(const gb_cuda_slots *slots, uint32_t slot, uint32_t position,
                                 gb_save_stream write, void *user, gumbel_error *error) {
    host_stream stream = {.slots = slots, .write = write, .user = user};
    return gb_states_save(&slots->states, slot, position, save_bytes, &stream, error);
}

gumbel_status gb_cuda_slots_load(gb_cuda_slots *slots, uint32_t slot, uint32_t position, gb_load_stream read,
                                 void *user, gumbel_error *error) {
    host_stream stream = {.slots = slots, .read = read, .user = user};
    GB_TRY(gb_cuda_slots_map(slots, slot, position, error));
    return gb_states_load(&slots->states, slot, position, load_bytes, &stream, error);
}
