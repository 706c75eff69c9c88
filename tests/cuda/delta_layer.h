/* SPDX-License-Identifier: Apache-2.0
 *
 * A delta net on the device, for tests of the kernels that compute it whole: random inputs and states, the
 * calls of its ops, and steps of some tokens by one launch an op or by the fused step.
 */
#ifndef GUMBEL_TESTS_CUDA_DELTA_LAYER_H
#define GUMBEL_TESTS_CUDA_DELTA_LAYER_H

#include "backends/cuda/lowering/steps.h"
#include "cuda/launching.h"
#include "cuda/prepared_pairs.h"

#include <math.h>

enum {
    SIZE = GB_CUDA_DELTA_SIZE,
    TAPS = GB_CUDA_DELTA_WIDTH,
    HEADS = 4,
    KEY_HEADS = 2,
    CHANNELS = (2 * KEY_HEADS + HEADS) * SIZE,
    SLOTS = 40,
    MOST_TOKENS = 256, /* of a run */
    SCRATCH = 16 << 20,
    STEPS = GB_DELTA_PARTS,
    TAIL = (TAPS - 1) * CHANNELS,
    MEMORY = HEADS * SIZE * SIZE,
    WIDTH = HEADS * SIZE
};

typedef struct layer_inputs {
    float x[MOST_TOKENS * CHANNELS], a[MOST_TOKENS * HEADS], b[MOST_TOKENS * HEADS], z[MOST_TOKENS * WIDTH];
    float states[SLOTS * (TAIL + MEMORY)];
    float rate[HEADS], bias[HEADS], norm[SIZE];
    uint16_t taps[CHANNELS * TAPS];
} layer_inputs;

typedef struct layer_results {
    float y[MOST_TOKENS * WIDTH], states[SLOTS * (TAIL + MEMORY)];
} layer_results;

/* What a run of the layer is given: tokens of slots, at positions where these are runs of prompts. */
typedef struct layer_run {
    const int32_t *slots, *positions; /* [tokens] */
    size_t tokens;
    bool is_tiled, is_prompt;
    bool is_one;       /* step, or one for each op */
    const int32_t *to; /* the slots in which tokens leave their states; NULL: their own */
} layer_run;

static layer_inputs in;

static void fill(float *to, size_t count, float scale, uint64_t *random) {
    for (size_t i = 0; i < count; i++)
        to[i] = scale * next_float(random);
}

static int make_inputs(void **state) {
    uint64_t random = 5;
    (void)state;
    fill(in.x, MOST_TOKENS * CHANNELS, 2, &random);
    fill(in.a, MOST_TOKENS * HEADS, 2, &random);
    fill(in.b, MOST_TOKENS * HEADS, 2, &random);
    fill(in.z, MOST_TOKENS * WIDTH, 3, &random);
    fill(in.states, SLOTS * (TAIL + MEMORY), 1, &random);
    fill(in.rate, HEADS, 1, &random);
    fill(in.bias, HEADS, 1, &random);
    fill(in.norm, SIZE, 1, &random);
    for (size_t i = 0; i < CHANNELS * TAPS; i++)
        in.taps[i] = gb_bf16_from_float(next_float(&random));
    return 0;
}

/* ---- A layer on the device ----------------------------------------------------------------------------- */

typedef struct layer {
    gb_cuda_tensor x, a, b, z, taps, rate, bias, norm, slots, tail, memory;
    gb_cuda_tensor result[STEPS], heads[STEPS]; /* the calls' results, and as heads where they are taken so */
    gb_node nodes[STEPS];
    gb_cuda_call calls[STEPS];
    gb_cuda_scratch scratch;
    gb_cuda_prepared epilogue;
    int32_t *run_first, *run_positions, *to;
} layer;

enum {
    CONV = GB_DELTA_CONVOLUTION,
    MIXED = GB_DELTA_MIXED,
    QUERY = GB_DELTA_QUERY,
    KEY = GB_DELTA_KEY,
    VALUE = GB_DELTA_VALUE,
    QUERY_UNIT = GB_DELTA_QUERY_UNIT,
    KEY_UNIT = GB_DELTA_KEY_UNIT,
    DECAY = GB_DELTA_DECAY,
    BETA = GB_DELTA_BETA,
    DELTA = GB_DELTA_RULE,
    NORM = GB_DELTA_NORM,
    GATE = GB_DELTA_GATE,
    RESULT = GB_DELTA_RESULT
};

typedef void (*op_launch)(const gb_cuda_call *call);

static const op_launch alone[STEPS] = {
    gb_cuda_causal_conv,  gb_cuda_silu,         gb_cuda_slice,       gb_cuda_slice,   gb_cuda_slice,
    gb_cuda_l2_normalize, gb_cuda_l2_normalize, gb_cuda_delta_decay, gb_cuda_sigmoid, gb_cuda_gated_delta,
    gb_cuda_rms_norm,     gb_cuda_silu,         gb_cuda_multiply};

static const gb_op ops[STEPS] = {GB_OP_CAUSAL_CONV, GB_OP_SILU,         GB_OP_SLICE,        GB_OP_SLICE,
                                 GB_OP_SLICE,       GB_OP_L2_NORMALIZE, GB_OP_L2_NORMALIZE, GB_OP_DELTA_DECAY,
                                 GB_OP_SIGMOID,     GB_OP_GATED_DELTA,  GB_OP_RMS_NORM,     GB_OP_SILU,
                                 GB_OP_MULTIPLY};

static void set_nodes(layer *l, bool is_tiled) {
    for (int i = 0; i < STEPS; i++)
        l->nodes[i] = (gb_node){.op = ops[i], .attribute_count = 1};
    l->nodes[QUERY].attributes[0] = gb_int(GB_ATTRIBUTE_START, 0);
    l->nodes[KEY].attributes[0] = gb_int(GB_ATTRIBUTE_START, KEY_HEADS * SIZE);
    l->nodes[VALUE].attributes[0] = gb_int(GB_ATTRIBUTE_START, 2 * KEY_HEADS * SIZE);
    for (int i = QUERY_UNIT; i <= KEY_UNIT; i++) {
        l->nodes[i].attribute_count = 2;
        l->nodes[i].attributes[0] = gb_float(GB_ATTRIBUTE_EPSILON, 1e-6);
        l->nodes[i].attributes[1] = gb_float(GB_ATTRIBUTE_SCALE, i == QUERY_UNIT ? 1 / sqrt(SIZE) : 1);
    }
    l->nodes[DELTA].attributes[0] = gb_int(GB_ATTRIBUTE_TILED, is_tiled);
    l->nodes[NORM].attribute_count = 2;
    l->nodes[NORM].attributes[0] = gb_float(GB_ATTRIBUTE_EPSILON, 1e-6);
    l->nodes[NORM].attributes[1] = gb_float(GB_ATTRIBUTE_WEIGHT_OFFSET, 0);
}

static void set_operands(layer *l, bool is_prompt) {
    const gb_cuda_tensor *operands[STEPS][7] = {
        [CONV] = {&l->x, &l->taps, &l->slots, &l->tail},
        [MIXED] = {&l->result[CONV]},
        [QUERY] = {&l->result[MIXED]},
        [KEY] = {&l->result[MIXED]},
        [VALUE] = {&l->result[MIXED]},
        [QUERY_UNIT] = {&l->heads[QUERY]},
        [KEY_UNIT] = {&l->heads[KEY]},
        [DECAY] = {&l->a, &l->rate, &l->bias},
        [BETA] = {&l->b},
        [DELTA] = {&l->heads[QUERY_UNIT], &l->heads[KEY_UNIT], &l->heads[VALUE], &l->result[DECAY],
                   &l->result[BETA], &l->slots, &l->memory},
        [GATE] = {&l->z},
        [NORM] = {&l->heads[DELTA], &l->norm},
        [RESULT] = {&l->result[NORM], &l->result[GATE]},
    };
    for (int i = 0; i < STEPS; i++) {
        l->calls[i] =
            (gb_cuda_call){.node = &l->nodes[i], .results = {&l->result[i]}, .scratch = &l->scratch};
        memcpy(l->calls[i].operands, operands[i], sizeof operands[i]);
        l->calls[i].runs = (gb_cuda_runs){l->run_first, l->run_positions, 0};
        l->calls[i].row_class = is_prompt ? GB_CUDA_LONG_PROMPT : GB_CUDA_ONE_ROW;
    }
    l->epilogue.as = &l->result[RESULT];
    if (!is_prompt)
        l->calls[RESULT].epilogue = &l->epilogue;
}

static gb_cuda_tensor state_part(float *states, size_t offset, int32_t rank, size_t a, size_t b, size_t c) {
    return (gb_cuda_tensor){.data = states + offset,
                            .dtype = GB_F32,
                            .rank = rank,
                            .dims = {a, b, c},
                            .slot_bytes = (TAIL + MEMORY) * sizeof(float)};
}

/* Of the results: heads of SIZE, or columns. */
static const size_t heads_of[STEPS] = {
    [QUERY] = KEY_HEADS, [KEY] = KEY_HEADS, [VALUE] = HEADS, [QUERY_UNIT] = KEY_HEADS, [KEY_UNIT] = KEY_HEADS,
    [DELTA] = HEADS,     [GATE] = HEADS,    [NORM] = HEADS,  [RESULT] = HEADS};
static const size_t width_of[STEPS] = {
    [CONV] = CHANNELS, [MIXED] = CHANNELS, [DECAY] = HEADS, [BETA] = HEADS};

static layer *make_layer(const layer_run *r) {
    layer *l = calloc(1, sizeof *l);
    assert_non_null(l);
    static const uint32_t zeros[GB_CUDA_ARRIVALS];
    float *states = device_copy(in.states, sizeof in.states);
    l->x = device_tensor(GB_F32, NULL, 2, r->tokens, CHANNELS, 1);
    l->a = device_tensor(GB_F32, NULL, 2, r->tokens, HEADS, 1);
    l->b = device_tensor(GB_F32, NULL, 2, r->tokens, HEADS, 1);
    l->z = device_tensor(GB_F32, NULL, 3, r->tokens, HEADS, SIZE);
    l->slots = device_tensor(GB_I32, NULL, 1, r->tokens, 1, 1);
    l->taps = device_tensor(GB_BF16, in.taps, 3, CHANNELS, 1, TAPS);
    l->rate = device_tensor(GB_F32, in.rate, 1, HEADS, 1, 1);
    l->bias = device_tensor(GB_F32, in.bias, 1, HEADS, 1, 1);
    l->norm = device_tensor(GB_F32, in.norm, 1, SIZE, 1, 1);
    l->tail = state_part(states, 0, 2, TAPS - 1, CHANNELS, 1);
    l->memory = state_part(states, TAIL, 3, HEADS, SIZE, SIZE);
    for (int i = 0; i < STEPS; i++) {
        const size_t heads = heads_of[i] ? heads_of[i] : 1;
        l->result[i] = device_tensor(GB_F32, NULL, 2, r->tokens, heads_of[i] ? heads * SIZE : width_of[i], 1);
        l->heads[i] = l->result[i];
        l->heads[i].rank = 3;
        l->heads[i].dims[1] = heads;
        l->heads[i].dims[2] = SIZE;
    }
    l->epilogue.data = device_copy(NULL, r->tokens * WIDTH * 3);
    l->scratch.arrivals = device_copy(zeros, sizeof zeros);
    l->run_first = device_copy(NULL, (r->tokens + 1) * sizeof *l->run_first);
    l->run_positions = device_copy(NULL, r->tokens * sizeof *l->run_positions);
    l->to = device_copy(NULL, r->tokens * sizeof *l->to);
    l->scratch.bytes = device_copy(NULL, SCRATCH);
    set_nodes(l, r->is_tiled);
    set_operands(l, r->is_prompt);
    return l;
}

static void free_layer(layer *l) {
    for (int i = 0; i < STEPS; i++)
        free_on_device(&l->result[i]);
    const gb_cuda_tensor *const result[] = {&l->x,    &l->a,    &l->b,    &l->z,    &l->slots,
                                            &l->taps, &l->rate, &l->bias, &l->norm, &l->tail};
    for (size_t i = 0; i < sizeof result / sizeof *result; i++)
        free_on_device(result[i]);
    assert_cuda(cudaFree(l->epilogue.data));
    assert_cuda(cudaFree(l->scratch.arrivals));
    assert_cuda(cudaFree(l->scratch.bytes));
    assert_cuda(cudaFree(l->run_first));
    assert_cuda(cudaFree(l->run_positions));
    assert_cuda(cudaFree(l->to));
    free(l);
}

/* ---- Running it ---------------------------------------------------------------------------------------- */

static void send(gb_cuda_tensor *tensor, const void *data, size_t first, size_t count) {
    const size_t row = gb_cuda_elements(tensor) / tensor->dims[0] * 4;
    tensor->dims[0] = count;
    assert_cuda(
        cudaMemcpy(tensor->data, (const uint8_t *)data + first * row, count * row, cudaMemcpyHostToDevice));
}

static void send_runs(layer *l, const layer_run *r, size_t first, size_t count) {
    int32_t begin[MOST_TOKENS + 1], positions[MOST_TOKENS];
    uint32_t runs = 0;
    for (size_t n = 0; n < count; n++)
        if (n == 0 || r->slots[first + n] != r->slots[first + n - 1]) {
            positions[runs] = r->positions ? r->positions[first + n] : 0;
            begin[runs++] = (int32_t)n;
        }
    begin[runs] = (int32_t)count;
    assert_cuda(cudaMemcpy(l->run_first, begin, (runs + 1) * sizeof *begin, cudaMemcpyHostToDevice));
    assert_cuda(cudaMemcpy(l->run_positions, positions, runs * sizeof *positions, cudaMemcpyHostToDevice));
    for (int i = 0; i < STEPS; i++)
        l->calls[i].runs.count = runs;
}

static void send_tokens(layer *l, const layer_run *r, size_t first, size_t count) {
    send(&l->x, in.x, first, count);
    send(&l->a, in.a, first, count);
    send(&l->b, in.b, first, count);
    send(&l->z, in.z, first, count);
    send(&l->slots, r->slots, first, count);
    if (r->to)
        assert_cuda(cudaMemcpy(l->to, r->to + first, count * sizeof *l->to, cudaMemcpyHostToDevice));
    send_runs(l, r, first, count);
    for (int i = 0; i < STEPS; i++) {
        l->result[i].dims[0] = l->heads[i].dims[0] = count;
        if (r->to)
            l->calls[i].versions = (gb_cuda_versions){l->slots.data, l->to};
    }
}

/* Tokens first .. first + count - 1, whose results are fetched. */
static void run_tokens(layer *l, const layer_run *r, size_t first, size_t count, float *y) {
    const gb_cuda_call *list[STEPS];
    const gb_cuda_tensor *operands[GB_DELTA_OPERANDS] = {
        [GB_DELTA_X] = &l->x,
        [GB_DELTA_TAPS] = &l->taps,
        [GB_DELTA_SLOTS] = &l->slots,
        [GB_DELTA_TAIL] = &l->tail,
        [GB_DELTA_A] = &l->a,
        [GB_DELTA_RATE] = &l->rate,
        [GB_DELTA_BIAS] = &l->bias,
        [GB_DELTA_B] = &l->b,
        [GB_DELTA_Z] = &l->z,
        [GB_DELTA_MEMORY] = &l->memory,
        [GB_DELTA_NORM_WEIGHT] = &l->norm,
    };
    const gb_cuda_problem layer_problem = {operands, list, STEPS, 1u << RESULT};
    for (int i = 0; i < STEPS; i++)
        list[i] = &l->calls[i];
    send_tokens(l, r, first, count);
    assert_true(gb_cuda_delta_prompt_scratch(&layer_problem) <= SCRATCH);
    if (r->is_one)
        assert_true(launch_fused(GB_FUSED_DELTA, &layer_problem));
    for (int i = 0; i < STEPS && !r->is_one; i++)
        run_op(alone[i], &l->calls[i]);
    fetch_tensor(&l->result[RESULT], y);
    if (r->is_one && !r->is_prompt)
        check_prepared(l->epilogue.data, y, count, WIDTH);
}

/* All tokens; those before each of the ends in a step of their own. */
static void run_layer(const layer_run *r, const size_t *ends, size_t end_count, layer_results *results) {
    layer *l = make_layer(r);
    size_t first = 0;
    for (size_t i = 0; i <= end_count; i++) {
        const size_t end = i < end_count ? ends[i] : r->tokens;
        run_tokens(l, r, first, end - first, results->y + first * WIDTH);
        first = end;
    }
    assert_cuda(cudaMemcpy(results->states, l->tail.data, sizeof results->states, cudaMemcpyDeviceToHost));
    free_layer(l);
}

#endif
