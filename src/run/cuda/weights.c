/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cuda/weights.h"

#include "base/memory.h"
#include "run/cuda/device.h"

#include <stdio.h>
#include <string.h>

enum {
    ALIGNMENT = 256,
    PADDING = 64, /* after each constant: kernels read whole words of its last row */
    STAGING_BYTES = 32 << 20,
    STAGINGS = 2, /* one is filled while the other is copied */
    NOTICES = 10
};

static const uint64_t long_upload = (uint64_t)4 << 30; /* bytes from which on the progress is told */

typedef struct upload {
    const gb_backend_options *options;
    gb_cuda_weights *weights;
    cudaStream_t stream;
    uint8_t *staging[STAGINGS];
    cudaEvent_t copied[STAGINGS];
    unsigned turn;
    uint64_t done;
    unsigned told; /* notices */
} upload;

static gumbel_status place_constants(const gb_program *program, gb_cuda_weights *weights,
                                     gumbel_error *error) {
    weights->offsets = gb_allocate(program->constant_count, sizeof *weights->offsets);
    if (!weights->offsets)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the list of constants");
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *constant = &program->constants[i];
        if (!constant->data)
            return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "constant %s has no data: not read from a file",
                           constant->name);
        if (!gb_align_size(weights->size, ALIGNMENT, &weights->offsets[i]) ||
            !gb_add_size(weights->offsets[i], constant->size, &weights->size) ||
            !gb_add_size(weights->size, PADDING, &weights->size))
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "the sizes of the constants are out of range");
    }
    return GUMBEL_OK;
}

static void tell_progress(upload *u) {
    char line[80];
    if (!u->options->log || u->weights->size < long_upload)
        return;
    unsigned part = (unsigned)(u->done * NOTICES / u->weights->size);
    if (part == u->told)
        return;
    u->told = part;
    snprintf(line, sizeof line, "cuda: %.1f of %.1f GB of weights are on the device", (double)u->done / 1e9,
             (double)u->weights->size / 1e9);
    u->options->log(u->options->log_user, GUMBEL_LOG_INFO, line);
}

static gumbel_status copy_part(upload *u, uint8_t *to, const uint8_t *from, size_t size,
                               gumbel_error *error) {
    unsigned turn = u->turn++ % STAGINGS;
    GB_TRY(gb_cuda_check(cudaEventSynchronize(u->copied[turn]), "copying the weights", error));
    memcpy(u->staging[turn], from, size);
    GB_TRY(gb_cuda_check(cudaMemcpyAsync(to, u->staging[turn], size, cudaMemcpyHostToDevice, u->stream),
                         "copying the weights", error));
    GB_TRY(gb_cuda_check(cudaEventRecord(u->copied[turn], u->stream), "copying the weights", error));
    u->done += size;
    tell_progress(u);
    return GUMBEL_OK;
}

static gumbel_status copy_constants(upload *u, const gb_program *program, gumbel_error *error) {
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *constant = &program->constants[i];
        uint8_t *to = u->weights->memory + u->weights->offsets[i];
        for (uint64_t done = 0; done < constant->size; done += STAGING_BYTES) {
            uint64_t left = constant->size - done;
            size_t size = left < STAGING_BYTES ? (size_t)left : STAGING_BYTES;
            GB_TRY(copy_part(u, to + done, constant->data + done, size, error));
        }
    }
    return gb_cuda_check(cudaStreamSynchronize(u->stream), "copying the weights", error);
}

static gumbel_status begin_upload(upload *u, gumbel_error *error) {
    for (unsigned i = 0; i < STAGINGS; i++) {
        void *staging;
        GB_TRY(gb_cuda_allocate_pinned(STAGING_BYTES, "copying the weights", &staging, error));
        u->staging[i] = staging;
        GB_TRY(gb_cuda_check(cudaEventCreate(&u->copied[i]), "making an event", error));
    }
    return GUMBEL_OK;
}

static void end_upload(upload *u) {
    for (unsigned i = 0; i < STAGINGS; i++) {
        gb_cuda_free_pinned(u->staging[i]);
        if (u->copied[i])
            cudaEventDestroy(u->copied[i]);
    }
}

gumbel_status gb_cuda_weights_create(const gb_program *program, const gb_backend_options *options,
                                     cudaStream_t stream, gb_cuda_weights *weights, gumbel_error *error) {
    *weights = (gb_cuda_weights){0};
    GB_TRY(place_constants(program, weights, error));
    void *memory;
    GB_TRY(gb_cuda_allocate(weights->size, "the weights", &memory, error));
    weights->memory = memory;
    upload u = {.options = options, .weights = weights, .stream = stream};
    gumbel_status status = begin_upload(&u, error);
    if (status == GUMBEL_OK)
        status = copy_constants(&u, program, error);
    end_upload(&u);
    return status;
}

void gb_cuda_weights_destroy(gb_cuda_weights *weights) {
    gb_cuda_free(weights->memory);
    gb_free(weights->offsets);
    *weights = (gb_cuda_weights){0};
}
