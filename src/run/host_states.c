/* SPDX-License-Identifier: Apache-2.0 */
#include "run/host_states.h"

#include "base/byte_buffer.h"
#include "base/memory.h"

#include <string.h>

/* Bytes as a session file has them. */
typedef struct streamed_states {
    gb_host_states base;
    gb_byte_buffer buffer;
} streamed_states;

typedef struct buffer_reader {
    const gb_byte_buffer *buffer;
    size_t at;
} buffer_reader;

static void release(gb_host_states *states) {
    streamed_states *streamed = (streamed_states *)states;
    gb_buffer_free(&streamed->buffer);
    gb_free(streamed);
}

static gumbel_status write_bytes(void *user, const void *data, uint64_t size, gumbel_error *error) {
    gb_byte_buffer *buffer = user;
    gb_buffer_append(buffer, data, (size_t)size);
    return buffer->failed ? gb_fail(error, GUMBEL_ERROR_MEMORY, "no host memory for a sequence's states")
                          : GUMBEL_OK;
}

static gumbel_status read_bytes(void *user, void *data, uint64_t size, gumbel_error *error) {
    buffer_reader *reader = user;
    if (size > reader->buffer->size - reader->at)
        return gb_fail(error, GUMBEL_ERROR_BACKEND, "a sequence's saved states are too short");
    memcpy(data, reader->buffer->data + reader->at, (size_t)size);
    reader->at += (size_t)size;
    return GUMBEL_OK;
}

gumbel_status gb_copy_to_host(gb_backend *backend, uint32_t slot, uint32_t position, gb_saved_states saved,
                              gb_host_states **states, gumbel_error *error) {
    *states = NULL;
    if (backend->functions->copy_to_host)
        return backend->functions->copy_to_host(backend, slot, position, saved, states, error);
    streamed_states *made = gb_allocate(1, sizeof *made);
    if (!made)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no host memory for a sequence's states");
    made->base.release = release;
    const gumbel_status status =
        backend->functions->save_slot(backend, slot, position, saved, write_bytes, &made->buffer, error);
    if (status != GUMBEL_OK) {
        release(&made->base);
        return status;
    }
    made->base.bytes = made->buffer.size;
    *states = &made->base;
    return GUMBEL_OK;
}

gumbel_status gb_copy_from_host(gb_backend *backend, uint32_t slot, uint32_t position, gb_saved_states saved,
                                const gb_host_states *states, gumbel_error *error) {
    if (backend->functions->copy_from_host)
        return backend->functions->copy_from_host(backend, slot, position, saved, states, error);
    buffer_reader reader = {.buffer = &((const streamed_states *)states)->buffer};
    return backend->functions->load_slot(backend, slot, position, saved, read_bytes, &reader, error);
}
