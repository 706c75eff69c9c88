/* SPDX-License-Identifier: Apache-2.0
 *
 * The delta net of a decode step in one launch: it computes what the ops' own kernels compute, and a token's
 * bits depend neither on what else is in the batch nor on how a run was cut.
 */
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
    SLOTS = 5,
    TOKENS = 7,
    STEPS = GB_DELTA_PARTS,
    TAIL = (TAPS - 1) * CHANNELS,
    MEMORY = HEADS * SIZE * SIZE,
    WIDTH = HEADS * SIZE
};

/* Which slots the tokens are of: runs of one, three, one and two. */
static const int32_t slots[TOKENS] = {3, 0, 0, 0, 4, 1, 1};

typedef struct layer_inputs {
    float x[TOKENS * CHANNELS], a[TOKENS * HEADS], b[TOKENS * HEADS], z[TOKENS * WIDTH];
    float states[SLOTS * (TAIL + MEMORY)];
    float rate[HEADS], bias[HEADS], norm[SIZE];
    uint16_t taps[CHANNELS * TAPS];
} layer_inputs;

typedef struct layer_results {
    float y[TOKENS * WIDTH], states[SLOTS * (TAIL + MEMORY)];
} layer_results;

static layer_inputs in;

static void fill(float *to, size_t count, float scale, uint64_t *random) {
    for (size_t i = 0; i < count; i++)
        to[i] = scale * next_float(random);
}

static int make_inputs(void **state) {
    uint64_t random = 5;
    (void)state;
    fill(in.x, TOKENS * CHANNELS, 2, &random);
    fill(in.a, TOKENS * HEADS, 2, &random);
    fill(in.b, TOKENS * HEADS, 2, &random);
    fill(in.z, TOKENS * WIDTH, 3, &random);
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
    int32_t *run_first;
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

static void set_operands(layer *l) {
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
        l->calls[i].runs.first = l->run_first;
    }
    l->epilogue.as = &l->result[RESULT];
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

static layer *make_layer(bool is_tiled) {
    layer *l = calloc(1, sizeof *l);
    assert_non_null(l);
    static const uint32_t zeros[GB_CUDA_ARRIVALS];
    float *states = device_copy(in.states, sizeof in.states);
    l->x = device_tensor(GB_F32, NULL, 2, TOKENS, CHANNELS, 1);
    l->a = device_tensor(GB_F32, NULL, 2, TOKENS, HEADS, 1);
    l->b = device_tensor(GB_F32, NULL, 2, TOKENS, HEADS, 1);
    l->z = device_tensor(GB_F32, NULL, 3, TOKENS, HEADS, SIZE);
    l->slots = device_tensor(GB_I32, NULL, 1, TOKENS, 1, 1);
    l->taps = device_tensor(GB_BF16, in.taps, 3, CHANNELS, 1, TAPS);
    l->rate = device_tensor(GB_F32, in.rate, 1, HEADS, 1, 1);
    l->bias = device_tensor(GB_F32, in.bias, 1, HEADS, 1, 1);
    l->norm = device_tensor(GB_F32, in.norm, 1, SIZE, 1, 1);
    l->tail = state_part(states, 0, 2, TAPS - 1, CHANNELS, 1);
    l->memory = state_part(states, TAIL, 3, HEADS, SIZE, SIZE);
    for (int i = 0; i < STEPS; i++) {
        const size_t heads = heads_of[i] ? heads_of[i] : 1;
        l->result[i] = device_tensor(GB_F32, NULL, 2, TOKENS, heads_of[i] ? heads * SIZE : width_of[i], 1);
        l->heads[i] = l->result[i];
        l->heads[i].rank = 3;
        l->heads[i].dims[1] = heads;
        l->heads[i].dims[2] = SIZE;
    }
    l->epilogue.data = device_copy(NULL, TOKENS * WIDTH * 3);
    l->scratch.arrivals = device_copy(zeros, sizeof zeros);
    l->run_first = device_copy(NULL, (TOKENS + 1) * sizeof *l->run_first);
    set_nodes(l, is_tiled);
    set_operands(l);
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
    assert_cuda(cudaFree(l->run_first));
    free(l);
}

/* ---- Running it ---------------------------------------------------------------------------------------- */

static void send(gb_cuda_tensor *tensor, const void *data, size_t first, size_t count) {
    const size_t row = gb_cuda_elements(tensor) / tensor->dims[0] * 4;
    tensor->dims[0] = count;
    assert_cuda(
        cudaMemcpy(tensor->data, (const uint8_t *)data + first * row, count * row, cudaMemcpyHostToDevice));
}

static void send_tokens(layer *l, size_t first, size_t count) {
    int32_t begin[TOKENS + 1];
    uint32_t runs = 0;
    send(&l->x, in.x, first, count);
    send(&l->a, in.a, first, count);
    send(&l->b, in.b, first, count);
    send(&l->z, in.z, first, count);
    send(&l->slots, slots, first, count);
    for (size_t n = 0; n < count; n++)
        if (n == 0 || slots[first + n] != slots[first + n - 1])
            begin[runs++] = (int32_t)n;
    begin[runs] = (int32_t)count;
    assert_cuda(cudaMemcpy(l->run_first, begin, (runs + 1) * sizeof *begin, cudaMemcpyHostToDevice));
    for (int i = 0; i < STEPS; i++) {
        l->result[i].dims[0] = l->heads[i].dims[0] = count;
        l->calls[i].runs.count = runs;
    }
}

/* All tokens, `at_once` at a time, in one launch or in one for each op. */
static void run(bool is_tiled, bool is_one, size_t at_once, layer_results *results) {
    layer *l = make_layer(is_tiled);
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
    for (size_t first = 0, count; first < TOKENS; first += count) {
        count = TOKENS - first < at_once ? TOKENS - first : at_once;
        send_tokens(l, first, count);
        if (is_one)
            assert_true(launch_fused(GB_FUSED_DELTA, &layer_problem));
        for (int i = 0; i < STEPS && !is_one; i++)
            run_op(alone[i], &l->calls[i]);
        fetch_tensor(&l->result[RESULT], results->y + first * WIDTH);
        if (is_one)
            check_prepared(l->epilogue.data, results->y + first * WIDTH, count, WIDTH);
    }
    assert_cuda(cudaMemcpy(results->states, l->tail.data, sizeof results->states, cudaMemcpyDeviceToHost));
    free_layer(l);
}

/* ---- Tests --------------------------------------------------------------------------------------------- */

static layer_results expected, found;

static void assert_close(const float *x, const float *y, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(x[i] - y[i]) <= 2e-5f * (1 + fabsf(y[i]))))
            fail_msg("element %zu: %g, expected %g", i, (double)x[i], (double)y[i]);
}

static void as_the_ops_alone(void **state) {
    (void)state;
    for (int is_tiled = 0; is_tiled < 2; is_tiled++) {
        run(is_tiled, false, TOKENS, &expected);
        run(is_tiled, true, TOKENS, &found);
        assert_close(found.y, expected.y, TOKENS * WIDTH);
        assert_close(found.states, expected.states, SLOTS * (TAIL + MEMORY));
        for (size_t slot = 0; slot < SLOTS; slot++)
            assert_memory_equal(found.states + slot * (TAIL + MEMORY),
                                expected.states + slot * (TAIL + MEMORY), TAIL * sizeof(float));
    }
}

static void same_bits_in_any_batch(void **state) {
    (void)state;
    run(false, true, TOKENS, &expected);
    for (size_t at_once = 1; at_once < TOKENS; at_once++) {
        run(false, true, at_once, &found);
        assert_memory_equal(found.y, expected.y, sizeof found.y);
        assert_memory_equal(found.states, expected.states, sizeof found.states);
    }
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_ops_alone),
                                       cmocka_unit_test(same_bits_in_any_batch)};
    return cmocka_run_group_tests(tests, make_inputs, NULL);
}
