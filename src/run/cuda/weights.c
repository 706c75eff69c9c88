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

static const char doing[] = "copying the weights";

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

/* The next staging memory, once what was in it has been copied. */
static gumbel_status take_staging(upload *u, uint8_t **staging, gumbel_error *error) {
    unsigned turn = u->turn % STAGINGS;
    *staging = u->staging[turn];
    return gb_cuda_check(cudaEventSynchronize(u->copied[turn]), doing, error);
}

/* Copies what was put into the staging memory. */
static gumbel_status send_staging(upload *u, uint8_t *to, size_t size, gumbel_error *error) {
    unsigned turn = u->turn++ % STAGINGS;
    GB_TRY(gb_cuda_check(cudaMemcpyAsync(to, u->staging[turn], size, cudaMemcpyHostToDevice, u->stream),
                         doing, error));
    GB_TRY(gb_cuda_check(cudaEventRecord(u->copied[turn], u->stream), doing, error));
    u->done += size;
    tell_progress(u);
    return GUMBEL_OK;
}

static gumbel_status copy_bytes(upload *u, uint8_t *to, const uint8_t *from, uint64_t size,
                                gumbel_error *error) {
    for (uint64_t done = 0; done < size; done += STAGING_BYTES) {
        size_t part = size - done < STAGING_BYTES ? (size_t)(size - done) : STAGING_BYTES;
        uint8_t *staging;
        GB_TRY(take_staging(u, &staging, error));
        memcpy(staging, from + done, part);
        GB_TRY(send_staging(u, to + done, part, error));
    }
    return GUMBEL_OK;
}

/* One plane of a matrix that is packed, in pieces of whole blocks of rows. */
static gumbel_status unpack_plane(upload *u, uint8_t *to, const gb_constant *constant, gb_plane_kind kind,
                                  const gb_plane *plane, uint64_t rows, uint64_t columns,
                                  gumbel_error *error) {
    uint64_t block = constant->packing.block_rows;
    uint64_t most = STAGING_BYTES / (plane->row_bytes * block) * block;
    if (most == 0)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "constant %s: its packed rows are too long",
                       constant->name);
    for (uint64_t row = 0; row < rows; row += most) {
        uint64_t count = rows - row < most ? rows - row : most, at = plane->offset + row * plane->row_bytes;
        uint8_t *staging;
        GB_TRY(take_staging(u, &staging, error));
        gb_unpack_rows(&constant->packing, &constant->format, kind, count, columns, constant->data + at,
                       staging);
        GB_TRY(send_staging(u, to + at, (size_t)(count * plane->row_bytes), error));
    }
    return GUMBEL_OK;
}

static gumbel_status unpack_constant(upload *u, uint8_t *to, const gb_constant *constant,
                                     gumbel_error *error) {
    const gb_shape *shape = &constant->type.shape;
    uint64_t columns = (uint64_t)shape->dims[shape->rank - 1], elements;
    gb_planes planes;
    if (!gb_shape_elements(shape, &elements) || !gb_constant_planes(constant, &planes))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "constant %s has no format", constant->name);
    for (gb_plane_kind kind = GB_PLANE_CODES; kind < GB_PLANE_KINDS; kind++) {
        const gb_plane *plane = gb_plane_of(&planes, kind);
        if (plane->row_bytes > 0)
            GB_TRY(unpack_plane(u, to, constant, kind, plane, elements / columns, columns, error));
    }
    return GUMBEL_OK;
}

static gumbel_status copy_constants(upload *u, const gb_program *program, gumbel_error *error) {
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *constant = &program->constants[i];
        uint8_t *to = u->weights->memory + u->weights->offsets[i];
        if (constant->packing.block_rows > 0)
            GB_TRY(unpack_constant(u, to, constant, error));
        else
            GB_TRY(copy_bytes(u, to, constant->data, constant->size, error));
    }
    return gb_cuda_check(cudaStreamSynchronize(u->stream), doing, error);
}

/* Says how much is packed for another backend. */
static void tell_unpacking(const gb_program *program, const gb_backend_options *options) {
    char line[128];
    uint64_t packed = 0;
    for (uint32_t i = 0; i < program->constant_count; i++)
        if (program->constants[i].packing.block_rows > 0)
            packed += program->constants[i].size;
    if (packed == 0 || !options->log)
        return;
    snprintf(line, sizeof line,
             "cuda: %.1f MB of weights are laid out for the CPU and put in order while they are copied "
             "(gumbel pack --backend cuda)",
             (double)packed / 1e6);
    options->log(options->log_user, GUMBEL_LOG_INFO, line);
}

static gumbel_status begin_upload(upload *u, gumbel_error *error) {
    for (unsigned i = 0; i < STAGINGS; i++) {
        void *staging;
        GB_TRY(gb_cuda_allocate_pinned(STAGING_BYTES, doing, &staging, error));
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
    tell_unpacking(program, options);
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
