/* SPDX-License-Identifier: Apache-2.0
 *
 * What launches read and write is what they say: every access of every kernel on the emulated device is
 * looked up in the list of its step. On a real device there is nothing to see.
 */
#include "backends/cuda/runtime/launches.h"
#include "backends/cuda/runtime/weights.h"
#include "cuda/device_memory.h"
#include "run/handles.h"
#include "support/programs/random_program.h"
#include "support/test_arguments.h"

#include <stdio.h>

enum { VOCAB = 160, SLOTS = 3, MOST_TOKENS = 20, CONTEXT = 128, MOST_RANGES = 256 };

static gumbel_error error;

#if defined(GUMBEL_EMULATED_DEVICE) && defined(GUMBEL_EMULATED_CHECKS)

typedef struct machine {
    const gb_program *program;
    gb_backend_options options;
    gb_cuda_slots slots;
    gb_cuda_weights weights;
    gb_cuda_inputs inputs;
    gb_cuda_launches launches;
    cudaStream_t stream;
    uint32_t positions[SLOTS]; /* where the slots are */
} machine;

static void make_machine(machine *m, const gb_program *program) {
    *m = (machine){
        .program = program,
        .options = {.slots = SLOTS, .max_context = CONTEXT, .step_tokens = MOST_TOKENS, .fuse = true}};
    assert_int_equal(cudaStreamCreateWithFlags(&m->stream, cudaStreamNonBlocking), cudaSuccess);
    assert_ok(gb_cuda_slots_create(program, &m->options, m->stream, &m->slots, &error), &error);
    assert_ok(gb_cuda_weights_create(program, &m->options, m->stream, &m->weights, &error), &error);
    assert_ok(gb_cuda_inputs_create(program, &m->options, &m->inputs, &error), &error);
    const gb_cuda_resources resources = {program, &m->options, &m->slots, &m->weights, m->stream};
    assert_ok(gb_cuda_launches_create(&resources, &m->inputs, &m->launches, &error), &error);
}

static void destroy_machine(machine *m) {
    gb_cuda_launches_destroy(&m->launches);
    gb_cuda_inputs_destroy(&m->inputs);
    gb_cuda_weights_destroy(&m->weights);
    gb_cuda_slots_destroy(&m->slots);
    cudaStreamDestroy(m->stream);
}

/* ---- Looking accesses up ------------------------------------------------------------------------------- */

typedef struct allowed_range {
    uintptr_t begin, end;
    bool writes;
} allowed_range;

static allowed_range allowed[MOST_RANGES];
static uint32_t allowed_count, last_allowed; /* the range of the access before, which most are in again */
static const gb_cuda_launch *running;
static uint64_t looked_up;

static void allow(const void *data, uint64_t size, bool writes) {
    assert_true(allowed_count < MOST_RANGES);
    allowed[allowed_count++] = (allowed_range){(uintptr_t)data, (uintptr_t)data + (uintptr_t)size, writes};
}

/* Addresses that are a thread's own in this step; to ask the device takes long. Threads have theirs at the
 * same places of their stacks, so that low bits alone would tell few apart. */
enum { OWN_ADDRESS_BITS = 18 };
static uintptr_t own_addresses[1 << OWN_ADDRESS_BITS];

static uintptr_t *own_address_at(uintptr_t address) {
    const uint64_t golden_ratio = 0x9e3779b97f4a7c15u;
    return &own_addresses[address / 4 * golden_ratio >> (64 - OWN_ADDRESS_BITS)];
}

static bool is_in(const allowed_range *range, uintptr_t begin, size_t size, bool writes) {
    return begin >= range->begin && begin + size <= range->end && (range->writes || !writes);
}

static void look_up(const void *at, size_t size, bool writes) {
    const uintptr_t begin = (uintptr_t)at;
    looked_up++;
    if (is_in(&allowed[last_allowed], begin, size, writes))
        return;
    for (uint32_t i = 0; i < allowed_count; i++)
        if (is_in(&allowed[i], begin, size, writes)) {
            last_allowed = i;
            return;
        }
    looked_up--;
    uintptr_t *own = own_address_at(begin);
    if (*own == begin)
        return;
    if (!emulated_is_of_device(at)) {
        *own = begin;
        return;
    }
    emulated_access = NULL;
    fail_msg("%s, of step %u, %s %zu bytes at %p, which it does not say", running->name, running->step,
             writes ? "writes" : "reads", size, at);
}

/* Kernels read whole words at the end of a weight, and rows of groups that end a block. */
enum { BEHIND_WEIGHTS = 64 };

static void allow_access(const machine *m, const gb_cuda_access *access) {
    const gb_cuda_range range = gb_cuda_range_of(access);
    const gb_cuda_tensor *tensor = access->tensor;
    const uint32_t slots = tensor && tensor->slot_bytes > 0 ? m->slots.slot_count + GB_CUDA_MOST_AHEAD : 1;
    for (uint32_t s = 0; s < slots; s++)
        allow(range.data + s * (tensor ? tensor->slot_bytes : 0),
              range.size + (access->writes ? 0 : BEHIND_WEIGHTS), access->writes);
}

static void allow_step(const machine *m, const gb_cuda_step *step) {
    const gb_cuda_scratch *scratch = &m->launches.scratch;
    allowed_count = last_allowed = 0;
    for (uint32_t i = 0; i < step->access_count; i++)
        allow_access(m, &step->accesses[i]);
    allow(scratch->bytes, scratch->size, true);
    allow(scratch->arrivals, GB_CUDA_ARRIVALS * sizeof *scratch->arrivals, true);
    allow(m->inputs.device, m->inputs.size, false);
}

/* ---- Steps --------------------------------------------------------------------------------------------- */

/* The next `each` tokens of the first `count` slots, with a row for the last of each. */
static void run_step(machine *m, uint32_t count, uint32_t each, bool generated) {
    gb_batch_arrays arrays;
    assert_true(gb_batch_arrays_reserve(&m->program->metadata, MOST_TOKENS, SLOTS, &arrays));
    gb_batch batch = {.token_count = count * each, .row_count = count};
    gb_batch_use(&arrays, &batch);
    for (uint32_t n = 0; n < count * each; n++) {
        arrays.tokens[n] = (int32_t)(n * 7 + each) % VOCAB;
        arrays.positions[n] = (int32_t)(m->positions[n / each] + n % each);
        arrays.slots[n] = (int32_t)(n / each);
        arrays.generated[n] = generated;
        arrays.draft[n] = false;
    }
    for (uint32_t b = 0; b < count; b++) {
        gb_batch_clear_row(&arrays, b);
        arrays.rows[b] = (int32_t)((b + 1) * each - 1);
        m->positions[b] += each;
        assert_ok(gb_cuda_slots_map(&m->slots, b, m->positions[b], &error), &error);
    }
    gb_cuda_inputs_fill(&m->inputs, &batch, &m->slots, 1);
    gb_cuda_inputs_send(&m->inputs, m->stream);
    const gb_cuda_step_sizes sizes = {.tokens = batch.token_count,
                                      .rows = count,
                                      .is_prefill = !generated,
                                      .runs = gb_cuda_inputs_runs(&m->inputs),
                                      .versions = gb_cuda_inputs_versions(&m->inputs)};
    gb_cuda_launches_bind(&m->launches, &sizes);
    gb_cuda_lowered *lowered = m->launches.bound;
    assert_false(lowered->has_branches);
    assert_ok(gb_cuda_lowered_describe(lowered, lowered->plan->step_count, &error), &error);
    memset(own_addresses, 0, sizeof own_addresses);
    for (uint32_t i = 0; i < lowered->launches.count; i++) {
        running = &lowered->launches.launches[i];
        allow_step(m, &lowered->steps[running->step]);
        emulated_access = look_up;
        assert_int_equal(gb_cuda_launch_run(&lowered->launches, i, m->stream), cudaSuccess);
        emulated_access = NULL;
    }
    gb_batch_arrays_free(&arrays);
}

/* Prompts of few rows and of more, of which a short run has one kind for the large programs. */
enum { FEW = 1, MANY = 2 };

static void check_program(const char *config, const gumbel_export_options *options, unsigned prompts) {
    if (!is_short_run())
        prompts = FEW | MANY;
    gumbel_program *program = export_random_program(config, *options);
    machine m;
    looked_up = 0;
    make_machine(&m, program->program);
    if (prompts & FEW)
        run_step(&m, 2, (uint32_t)shortened(5, 2), false);
    if (prompts & MANY)
        run_step(&m, 1, (uint32_t)shortened(MOST_TOKENS, GB_CUDA_MOST_FEW_ROWS + 1), false);
    run_step(&m, 2, 1, true);
    run_step(&m, 1, 1, true);
    assert_true(looked_up > 10000);
    destroy_machine(&m);
    gumbel_program_close(program);
}

static void launches_touch_what_they_say(void **unused) {
    (void)unused;
    static const gumbel_export_options affine = {.quantize = "int4-affine", .activations = "int8"},
                                       exact = {.quantize = "int8"}, tiles = {.quantize = "int4"},
                                       whole = {.quantize = NULL};
    check_program("qwen_long_rows.json", &affine, MANY);
    check_program("qwen_long_rows.json", &exact, FEW);
    check_program("qwen_tiles.json", &tiles, MANY);
    check_program("small.json", &whole, FEW | MANY);
}

#else

static void launches_touch_what_they_say(void **unused) {
    (void)unused, (void)error;
    skip();
}

#endif

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(launches_touch_what_they_say)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
