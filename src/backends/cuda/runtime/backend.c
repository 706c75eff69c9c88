/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/cuda.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/executor.h"
#include "backends/cuda/runtime/limits.h"
#include "backends/cuda/runtime/slots.h"
#include "backends/cuda/runtime/weights.h"
#include "base/memory.h"
#include "base/text_sink.h"

#include <stdio.h>
#include <string.h>

/* A grid has at most so many blocks along its second and third dims, which are tokens. */
enum { MOST_STEP_TOKENS = 32768 };

typedef struct cuda_backend {
    gb_backend base;
    int device;
    gb_rank rank;
    cudaStream_t stream;
    gb_cuda_weights weights;
    gb_cuda_slots slots;
    gb_cuda_executor *executor;
} cuda_backend;

/* Any thread may call: its device becomes the backend's. */
static cuda_backend *cuda(gb_backend *backend) {
    cuda_backend *b = (cuda_backend *)backend;
    cudaSetDevice(b->device);
    return b;
}

static void destroy(gb_backend *backend) {
    cuda_backend *b = cuda(backend);
    gb_cuda_executor_destroy(b->executor);
    gb_cuda_slots_destroy(&b->slots);
    gb_cuda_weights_destroy(&b->weights);
    if (b->stream)
        cudaStreamDestroy(b->stream);
    gb_free(b);
}

static gumbel_status step(gb_backend *backend, gb_batch *batch, gumbel_error *error) {
    return gb_cuda_executor_run(cuda(backend)->executor, batch, error);
}

/* The slots' states, as the steps of batches have left them. */
static gb_cuda_slots *slots_of(gb_backend *backend) {
    gb_cuda_executor_roll_back(cuda(backend)->executor);
    return &cuda(backend)->slots;
}

static void reset_slot(gb_backend *backend, uint32_t slot) {
    gb_cuda_slots_reset(slots_of(backend), slot);
}

static bool truncate_slot(gb_backend *backend, uint32_t slot, uint32_t position) {
    return gb_cuda_slots_truncate(slots_of(backend), slot, position);
}

static gumbel_status copy_slot(gb_backend *backend, uint32_t from, uint32_t to, uint32_t position,
                               gumbel_error *error) {
    return gb_cuda_slots_copy(slots_of(backend), from, to, position, error);
}

static gumbel_status take_snapshot(gb_backend *backend, uint32_t slot, uint32_t position,
                                   gumbel_error *error) {
    return gb_cuda_slots_take_snapshot(slots_of(backend), slot, position, error);
}

static void restore_snapshot(gb_backend *backend, uint32_t slot, uint32_t position) {
    gb_cuda_slots *slots = slots_of(backend);
    gb_states_restore_snapshot(&slots->states, slot, position);
    gb_cuda_slots_stand(slots, slot, position);
}

static gumbel_status save_slot(gb_backend *backend, uint32_t slot, uint32_t position, gb_saved_states saved,
                               gb_save_stream write, void *user, gumbel_error *error) {
    gb_cuda_slots *slots = slots_of(backend);
    gb_cuda_slots_settle(slots, slot);
    return gb_cuda_slots_save(slots, slot, position, saved, write, user, error);
}

static gumbel_status load_slot(gb_backend *backend, uint32_t slot, uint32_t position, gb_saved_states saved,
                               gb_load_stream read, void *user, gumbel_error *error) {
    gb_cuda_slots *slots = slots_of(backend);
    gb_cuda_slots_stand(slots, slot, position);
    return gb_cuda_slots_load(slots, slot, position, saved, read, user, error);
}

static gumbel_status copy_to_host(gb_backend *backend, uint32_t slot, uint32_t position,
                                  gb_saved_states saved, gb_host_states **states, gumbel_error *error) {
    return gb_cuda_slots_copy_to_host(slots_of(backend), slot, position, saved, states, error);
}

static gumbel_status copy_from_host(gb_backend *backend, uint32_t slot, uint32_t position,
                                    gb_saved_states saved, const gb_host_states *states,
                                    gumbel_error *error) {
    return gb_cuda_slots_copy_from_host(slots_of(backend), slot, position, saved, states, error);
}

static gumbel_status take_rows(gb_backend *backend, uint32_t slot, uint32_t state,
                               const gb_rows_of_slot *rows, gumbel_error *error) {
    const gb_cuda_slots *others = slots_of(rows->backend);
    return gb_cuda_slots_take_rows(slots_of(backend), slot, state, others, rows, error);
}

/* Far more than the device's caches hold. */
static const uint64_t measured_bytes = (uint64_t)512 << 20;

static gumbel_status measure_limits(gb_backend *backend, gumbel_machine_limits *limits, gumbel_error *error) {
    return gb_cuda_measure_read_rate(cuda(backend)->stream, measured_bytes, &limits->read_bytes_per_second,
                                     error);
}

static uint64_t free_bytes(gb_backend *backend) {
    size_t left = 0, all = 0;
    cuda(backend);
    if (cudaMemGetInfo(&left, &all) == cudaSuccess)
        return left;
    cudaGetLastError(); /* it would be found after the next launch */
    return 0;
}

static const gb_backend_functions functions = {
    .destroy = destroy,
    .step = step,
    .reset_slot = reset_slot,
    .truncate_slot = truncate_slot,
    .copy_slot = copy_slot,
    .take_snapshot = take_snapshot,
    .restore_snapshot = restore_snapshot,
    .save_slot = save_slot,
    .load_slot = load_slot,
    .copy_to_host = copy_to_host,
    .copy_from_host = copy_from_host,
    .take_rows = take_rows,
    .measure_limits = measure_limits,
    .free_bytes = free_bytes,
};

static gumbel_status find_device(int number, struct cudaDeviceProp *device, gumbel_error *error) {
    int count;
    GB_TRY(gb_cuda_count_devices(&count, error));
    if (number < 0 || number >= count)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "cuda: device %d: this machine has %d, from 0", number,
                       count);
    GB_TRY(
        gb_cuda_check(cudaGetDeviceProperties(device, number), "asking for the device's properties", error));
    if (device->major < 8)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "cuda: %s has compute capability %d.%d: expected 8.0 or more", device->name,
                       device->major, device->minor);
    return gb_cuda_check(cudaSetDevice(number), "taking the device", error);
}

/* Kernels are chosen by what is known of the first device (facts.h), and devices of one kind have the same
 * bits. */
static gumbel_status check_kind(int number, const struct cudaDeviceProp *device, gumbel_error *error) {
    struct cudaDeviceProp first;
    GB_TRY(gb_cuda_check(cudaGetDeviceProperties(&first, 0), "asking for the device's properties", error));
    if (strcmp(first.name, device->name) == 0 && first.multiProcessorCount == device->multiProcessorCount)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                   "cuda: device %d is %.80s, device 0 is %.80s: expected one kind", number, device->name,
                   first.name);
}

/* Attention's kernels take heads of 64 in pairs, and rows of codes by 16 bytes: where a rank's cannot be
 * taken so and the whole ones can, it would have other bits. */
static gumbel_status check_cache(const gb_state *state, gumbel_error *error) {
    enum { PAIRED = 64, COPIED = 16 };
    const uint64_t heads = (uint64_t)state->type.shape.dims[1],
                   row = gb_state_bytes(state) / (uint64_t)state->type.shape.dims[0],
                   all = row / heads * state->all_heads;
    const bool loses_pairs =
        state->type.shape.dims[2] == PAIRED && heads % 2 != 0 && state->all_heads % 2 == 0;
    const bool loses_copies = gb_dtype_has_codes(state->type.dtype) && row % COPIED != 0 && all % COPIED == 0;
    if (!loses_pairs && !loses_copies)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                   "cuda: %s: %llu of %u heads on a device, whose kernels have other bits; use fewer devices",
                   state->name, (unsigned long long)heads, state->all_heads);
}

static gumbel_status check_caches(const gb_program *program, gumbel_error *error) {
    for (uint32_t i = 0; i < program->state_count; i++)
        if (program->states[i].all_heads > 0)
            GB_TRY(check_cache(&program->states[i], error));
    return GUMBEL_OK;
}

gumbel_status gb_cuda_measure_weights(const gb_program *program, uint64_t *bytes, gumbel_error *error) {
    gb_cuda_weights weights;
    GB_TRY(check_caches(program, error));
    const gumbel_status status = gb_cuda_weights_place(program, &weights, error);
    *bytes = weights.size;
    gb_cuda_weights_destroy(&weights);
    return status;
}

static gumbel_status check_options(const gb_backend_options *options, gumbel_error *error) {
    if (options->cpu_isa)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "instruction set \"%s\": the cuda backend has none (leave out --cpu-isa)",
                       options->cpu_isa);
    if (options->threads < 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%d threads: expected 0 or more", options->threads);
    if (options->step_tokens > MOST_STEP_TOKENS)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%u tokens in a step: the cuda backend takes up to %d",
                       options->step_tokens, MOST_STEP_TOKENS);
    return GUMBEL_OK;
}

static void log_chunk(const gb_backend_options *options, uint32_t chunk, const gumbel_error *reason) {
    char line[GUMBEL_MESSAGE_BYTES + 96];
    snprintf(line, sizeof line, "prompts run %u tokens a step, not %u: %s", chunk, options->prefill_chunk,
             reason->message);
    if (options->log)
        options->log(options->log_user, GUMBEL_LOG_INFO, line);
}

/* Ranks have steps of one length. */
static gumbel_status try_executor(cuda_backend *b, const gb_cuda_resources *resources, gumbel_error *reason) {
    gumbel_status status = gb_cuda_executor_create(resources, &b->executor, reason);
    status = gb_rank_agree(&b->rank, status, reason);
    if (status != GUMBEL_OK) {
        gb_cuda_executor_destroy(b->executor);
        b->executor = NULL;
    }
    return status;
}

/* The chunk is halved, as far as it may be, until there is memory for its steps: weights and slots stay. */
static gumbel_status make_executor(cuda_backend *b, gb_cuda_resources *resources, gumbel_error *error) {
    const gb_backend_options *const given = resources->backend;
    gb_backend_options options = *given;
    gumbel_error reason;
    resources->backend = &options;
    gumbel_status status = try_executor(b, resources, &reason);
    while (status == GUMBEL_ERROR_MEMORY && options.prefill_chunk > options.least_chunk) {
        const uint32_t half = options.prefill_chunk / 2;
        options.prefill_chunk = half > options.least_chunk ? half : options.least_chunk;
        options.step_tokens = gb_step_tokens_with(given, options.prefill_chunk);
        log_chunk(given, options.prefill_chunk, &reason);
        status = try_executor(b, resources, &reason);
    }
    b->base.prefill_chunk = options.prefill_chunk;
    return status == GUMBEL_OK ? status : gb_fail(error, status, "%s", reason.message);
}

static gumbel_status prepare(cuda_backend *b, const gb_program *program, const gb_backend_options *options,
                             gumbel_error *error) {
    struct cudaDeviceProp device;
    GB_TRY(check_options(options, error));
    GB_TRY(check_caches(program, error));
    GB_TRY(find_device(options->device, &device, error));
    GB_TRY(check_kind(options->device, &device, error));
    GB_TRY(gb_cuda_check(cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking), "making a stream",
                         error));
    GB_TRY(gb_cuda_weights_create(program, options, b->stream, &b->weights, error));
    GB_TRY(gb_cuda_slots_create(program, options, b->stream, &b->slots, error));
    gb_cuda_resources resources = {.program = program,
                                   .backend = options,
                                   .slots = &b->slots,
                                   .weights = &b->weights,
                                   .stream = b->stream};
    GB_TRY(make_executor(b, &resources, error));
    b->base.grain = gb_cuda_executor_grain(b->executor);
    snprintf(b->base.description, sizeof b->base.description, "cuda %.80s", device.name);
    return GUMBEL_OK;
}

gumbel_status gb_cuda_backend_create(const gb_program *program, const gb_backend_options *options,
                                     gb_backend **backend, gumbel_error *error) {
    *backend = NULL;
    cuda_backend *created = gb_allocate(1, sizeof *created);
    if (!created)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a backend");
    created->base.functions = &functions;
    created->device = options->device;
    created->rank = options->rank;
    created->base.reuse = GB_REUSE_PROMPT;
    created->base.most_following = GB_CUDA_MOST_AHEAD;
    gumbel_status status = prepare(created, program, options, error);
    if (status != GUMBEL_OK) {
        destroy(&created->base);
        return status;
    }
    *backend = &created->base;
    return GUMBEL_OK;
}

void gb_cuda_describe(gumbel_write_callback write, void *user) {
    const gb_text_sink sink = {write, user};
    struct cudaDeviceProp device;
    gumbel_error error;
    if (find_device(0, &device, &error) == GUMBEL_OK)
        gb_print(&sink, "%s, %.0f GB; ", device.name, (double)device.totalGlobalMem / 1e9);
    else
        gb_print(&sink, "no device; ");
    gb_print(
        &sink,
        "quantized products take 8-bit inputs for generated tokens, bfloat16 ones for prompts; attention "
        "takes 16 bits of its inputs (8 of a prompt's over bfloat16 caches) unless all weights are "
        "float32; on Hopper prompts' products with large bfloat16 matrices take 16 bits of theirs; the "
        "rest is float32");
}
