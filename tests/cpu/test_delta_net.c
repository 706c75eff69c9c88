/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernel_check.h"

#include <math.h>

/* Some sequences through an op with a state, each in its own slot, in steps of any size. All tensors hold
 * every sequence's tokens, LENGTH of them, one sequence after the other. */
enum { SLOTS = 3, LENGTH = 23, MAX_STREAMS = 5 };

typedef struct stateful_op {
    gb_kernel kernel;
    gb_node node;
    size_t stream_count;                /* operands with a row per token, before the others */
    gb_cpu_tensor streams[MAX_STREAMS]; /* [SLOTS * LENGTH, ...] */
    const gb_cpu_tensor *weight;        /* after the streams, or NULL */
    gb_cpu_tensor state;                /* the last operand; of all slots */
    gb_cpu_tensor result;
    gb_row_log log; /* of drafts; without capacity in the other tests */
    gb_state_log of_state;
} stateful_op;

static size_t row_bytes(const gb_cpu_tensor *tensor) {
    return tensor_bytes(tensor) / tensor->dims[0];
}

static gb_cpu_tensor part_of(const gb_cpu_tensor *whole, size_t rows) {
    return new_tensor(whole->dtype, whole->rank, rows, whole->dims[1], whole->dims[2]);
}

/* Copies between a step's rows (count of each slot) and the rows of the sequences at position. */
static void copy_rows(const gb_cpu_tensor *whole, const gb_cpu_tensor *part, size_t position, size_t count,
                      bool out) {
    size_t size = row_bytes(whole);
    for (size_t slot = 0; slot < SLOTS; slot++) {
        uint8_t *sequence = (uint8_t *)whole->data + (slot * LENGTH + position) * size;
        uint8_t *step = (uint8_t *)part->data + slot * count * size;
        memcpy(out ? sequence : step, out ? step : sequence, count * size);
    }
}

/* count tokens of each slot, of which the last ones are drafts; the slots come in another order than the
 * sequences. */
static void run_step(stateful_op *op, size_t position, size_t count, size_t drafts,
                     const gb_vector_kernels *vector, size_t team) {
    gb_cpu_tensor parts[MAX_STREAMS], slots = new_tensor(GB_I32, 1, SLOTS * count, 1, 1);
    gb_cpu_tensor result = part_of(&op->result, SLOTS * count);
    gb_kernel_call call = {.node = &op->node, .results = {&result}, .vector = vector};
    size_t operands = op->stream_count;
    for (size_t i = 0; i < operands; i++) {
        parts[i] = part_of(&op->streams[i], SLOTS * count);
        copy_rows(&op->streams[i], &parts[i], position, count, false);
        call.operands[i] = &parts[i];
    }
    int32_t positions[SLOTS * LENGTH];
    bool is_draft[SLOTS * LENGTH];
    for (size_t n = 0; n < SLOTS * count; n++) {
        ((int32_t *)slots.data)[n] = (int32_t)((n / count + 1) % SLOTS);
        positions[n] = (int32_t)(position + n % count);
        is_draft[n] = n % count >= count - drafts;
    }
    op->log.is_draft = is_draft;
    if (op->weight)
        call.operands[operands++] = op->weight;
    call.operands[operands++] = &slots;
    call.operands[operands] = &op->state;
    run_as_team(op->kernel, &call, team);
    assert_guarded(result.data, tensor_bytes(&result));
    copy_rows(&op->result, &result, position, count, true);
    gb_row_log_advance(&op->log, &(gb_batch){.token_count = (uint32_t)(SLOTS * count),
                                             .slots = slots.data,
                                             .positions = positions,
                                             .draft = is_draft});
    for (size_t i = 0; i < op->stream_count; i++)
        free_tensor(&parts[i]);
    free_tensor(&slots);
    free_tensor(&result);
}

static size_t states_bytes(const stateful_op *op) {
    return SLOTS * op->state.slot_bytes;
}

static void run_all(stateful_op *op, size_t chunk, const gb_vector_kernels *vector, size_t team) {
    memset(op->state.data, 0, states_bytes(op));
    for (size_t position = 0; position < LENGTH; position += chunk)
        run_step(op, position, LENGTH - position < chunk ? LENGTH - position : chunk, 0, vector, team);
    assert_guarded(op->state.data, states_bytes(op));
}

/* Every set, team and chunk gives the same results and leaves the same states. Leaves the results. */
static void check_stateful(stateful_op *op) {
    size_t size = tensor_bytes(&op->result), state_size = states_bytes(op);
    uint8_t *expected = malloc(size + state_size);
    assert_non_null(expected);
    run_all(op, 1, gb_available_vector_kernels(0), 1);
    memcpy(expected, op->result.data, size);
    memcpy(expected + size, op->state.data, state_size);
    static const size_t chunks[] = {1, 2, 3, 7, LENGTH};
    const gb_vector_kernels *vector;
    for (size_t set = 0; (vector = gb_available_vector_kernels(set)); set++) {
        for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
            size_t team = 1 + c % MAX_TEAM;
            run_all(op, chunks[c], vector, team);
            if (memcmp(expected, op->result.data, size) != 0 ||
                memcmp(expected + size, op->state.data, state_size) != 0)
                fail_msg("%s in chunks of %zu on %zu threads differs", vector->name, chunks[c], team);
        }
    }
    free(expected);
}

/* ---- Drafts -------------------------------------------------------------------------------------------- */

enum { MOST_DRAFTS = 5 };

static void begin_log(stateful_op *op, size_t row_floats) {
    op->of_state = (gb_state_log){.of = &op->log, .row_floats = row_floats};
    op->log = (gb_row_log){.capacity = MOST_DRAFTS, .slot_floats = 2 * MOST_DRAFTS * row_floats};
    op->log.drafts = calloc(SLOTS, sizeof *op->log.drafts);
    op->log.memory = calloc(SLOTS * op->log.slot_floats, sizeof *op->log.memory);
    assert_true(op->log.drafts && op->log.memory);
    op->of_state.rows = op->log.memory;
    op->state.log = &op->of_state;
}

static void end_log(stateful_op *op) {
    free(op->log.drafts);
    free(op->log.memory);
    op->log = (gb_row_log){0};
    op->state.log = NULL;
}

/* What every slot forgets of its drafts. */
static void forget(stateful_op *op, size_t position) {
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        assert_true(gb_row_log_truncate(&op->log, slot, (uint32_t)position));
}

static void take_logged(stateful_op *op, const gb_vector_kernels *vector) {
    static _Alignas(64) uint8_t scratch[GB_LINEAR_SCRATCH];
    gb_kernel_call call = {.node = &op->node, .vector = vector};
    for (size_t i = 0; i < op->stream_count; i++)
        call.operands[i] = &op->streams[i];
    call.operands[op->stream_count + (op->weight ? 2 : 1)] = &op->state;
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        gb_kernel_take_logged(&call, slot, scratch);
}

/* In steps of a few tokens and drafts, of which any number is accepted: the same results and states as
 * without. row_floats: of what the log keeps of a token. */
static void check_drafts(stateful_op *op, size_t row_floats, uint64_t *random) {
    size_t size = tensor_bytes(&op->result), state_size = states_bytes(op);
    uint8_t *expected = malloc(size + state_size);
    assert_non_null(expected);
    run_all(op, 1, gb_available_vector_kernels(0), 1);
    memcpy(expected, op->result.data, size);
    memcpy(expected + size, op->state.data, state_size);
    const gb_vector_kernels *vector;
    for (size_t set = 0; (vector = gb_available_vector_kernels(set)); set++) {
        for (size_t round = 0; round < 6; round++) {
            begin_log(op, row_floats);
            memset(op->state.data, 0, state_size);
            memset(op->result.data, 0, size);
            for (size_t position = 0; position < LENGTH;) {
                const size_t left = LENGTH - position, own = left < 3 ? 1 : 1 + random_below(random, 2);
                const size_t most = left - own < MOST_DRAFTS ? left - own : MOST_DRAFTS;
                const size_t drafts = random_below(random, most + 1);
                run_step(op, position, own + drafts, drafts, vector, 1 + round % MAX_TEAM);
                position += own + random_below(random, drafts + 1);
                forget(op, position);
            }
            take_logged(op, vector);
            end_log(op);
            assert_memory_equal(op->result.data, expected, size);
            assert_memory_equal(op->state.data, expected + size, state_size);
        }
    }
    free(expected);
}

/* A tensor for the states of all slots, with a gap between them. */
static gb_cpu_tensor new_state(int32_t rank, size_t a, size_t b, size_t c) {
    size_t each = a * (rank > 1 ? b : 1) * (rank > 2 ? c : 1) + 16;
    gb_cpu_tensor state = new_tensor(GB_F32, 1, SLOTS * each, 1, 1);
    state.rank = rank;
    state.dims[0] = a, state.dims[1] = b, state.dims[2] = c;
    state.slot_bytes = each * sizeof(float);
    return state;
}

static void free_op(stateful_op *op) {
    for (size_t i = 0; i < op->stream_count; i++)
        free_tensor(&op->streams[i]);
    if (op->weight)
        free_tensor(op->weight);
    free_tensor(&op->state);
    free_tensor(&op->result);
}

/* ---- Convolution --------------------------------------------------------------------------------------- */

static void check_conv(uint64_t *random, gb_dtype dtype, size_t channels, size_t width) {
    gb_cpu_tensor weight = random_tensor(random, dtype, 3, channels, 1, width);
    stateful_op op = {.kernel = gb_kernel_causal_conv,
                      .node = {.op = GB_OP_CAUSAL_CONV},
                      .stream_count = 1,
                      .streams = {random_tensor(random, GB_F32, 2, SLOTS * LENGTH, channels, 1)},
                      .weight = &weight,
                      .state = new_state(2, width - 1, channels, 1),
                      .result = new_tensor(GB_F32, 2, SLOTS * LENGTH, channels, 1)};
    check_stateful(&op);
    for (size_t at = 0; at < SLOTS * LENGTH * channels; at++) {
        size_t token = at / channels % LENGTH, c = at % channels;
        double exact = 0;
        for (size_t back = 0; back < width && back <= token; back++)
            exact += (double)element(&op.streams[0], at - back * channels) *
                     (double)element(&weight, c * width + width - 1 - back);
        assert_near(element(&op.result, at), exact, 1e-6 * (double)width, "causal_conv");
    }
    for (size_t slot = 0; slot < SLOTS; slot++) { /* sequence s is in slot s + 1 */
        const float *tail = (float *)op.state.data + (slot + 1) % SLOTS * op.state.slot_bytes / sizeof(float);
        for (size_t at = 0; at < (width - 1) * channels; at++) {
            size_t row = at / channels, token = LENGTH + row;
            float kept = token < width - 1
                             ? 0
                             : element(&op.streams[0],
                                       (slot * LENGTH + token - (width - 1)) * channels + at % channels);
            assert_float_equal(tail[at], kept, 0);
        }
    }
    check_drafts(&op, channels, random);
    free_op(&op);
}

static void convolution(void **unused) {
    (void)unused;
    uint64_t random = 1;
    check_conv(&random, GB_F32, 1, 2);
    check_conv(&random, GB_F32, 33, 4);
    check_conv(&random, GB_BF16, 200, 4);
    check_conv(&random, GB_F16, 65, 3);
    check_conv(&random, GB_F32, 19, LENGTH + 7); /* longer than all that comes */
    check_conv(&random, GB_BF16, 130, GB_MAX_CONV_WIDTH);
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

enum { QUERY, KEY, VALUE, DECAY, BETA };

typedef struct delta_sizes {
    size_t heads, key_heads, key_size, value_size;
    bool is_tiled, is_plain; /* plain: what is recalled is not corrected */
} delta_sizes;

/* As in the equation, in double, one sequence and head at a time. */
static void check_delta_head(const stateful_op *op, const delta_sizes *s, size_t slot, size_t h) {
    double *memory = calloc(s->key_size * s->value_size, sizeof *memory);
    assert_non_null(memory);
    for (size_t n = slot * LENGTH; n < (slot + 1) * LENGTH; n++) {
        size_t key_head = s->is_tiled ? h % s->key_heads : h / (s->heads / s->key_heads);
        size_t key_at = (n * s->key_heads + key_head) * s->key_size;
        for (size_t e = 0; e < s->value_size; e++) {
            double recalled = 0, y = 0;
            for (size_t d = 0; d < s->key_size; d++) {
                memory[d * s->value_size + e] *= (double)element(&op->streams[DECAY], n * s->heads + h);
                recalled += memory[d * s->value_size + e] * (double)element(&op->streams[KEY], key_at + d);
            }
            size_t at = (n * s->heads + h) * s->value_size + e;
            double change = (double)element(&op->streams[BETA], n * s->heads + h) *
                            ((double)element(&op->streams[VALUE], at) - (s->is_plain ? 0 : recalled));
            for (size_t d = 0; d < s->key_size; d++) {
                memory[d * s->value_size + e] += (double)element(&op->streams[KEY], key_at + d) * change;
                y += memory[d * s->value_size + e] * (double)element(&op->streams[QUERY], key_at + d);
            }
            assert_near(element(&op->result, at), y, 3e-6, "gated_delta");
        }
    }
    const float *kept = (float *)op->state.data + (slot + 1) % SLOTS * op->state.slot_bytes / sizeof(float);
    for (size_t i = 0; i < s->key_size * s->value_size; i++)
        assert_near(kept[h * s->key_size * s->value_size + i], memory[i], 3e-6, "its memory");
    free(memory);
}

/* Keys and queries of length 1, as the models have them; decay and beta in 0 .. 1. */
static void make_inputs(stateful_op *op, const delta_sizes *s) {
    for (size_t i = QUERY; i <= KEY; i++) {
        float *x = op->streams[i].data;
        for (size_t row = 0; row < SLOTS * LENGTH * s->key_heads; row++, x += s->key_size) {
            float sum = 0;
            for (size_t d = 0; d < s->key_size; d++)
                sum += x[d] * x[d];
            for (size_t d = 0; d < s->key_size; d++)
                x[d] /= sqrtf(sum);
        }
    }
    for (size_t i = DECAY; i <= BETA; i++)
        for (size_t at = 0; at < SLOTS * LENGTH * s->heads; at++)
            set_element(&op->streams[i], at, 0.5f + 0.5f * element(&op->streams[i], at));
}

static void check_delta(delta_sizes s) {
    uint64_t random = s.heads * 100 + s.value_size;
    size_t tokens = SLOTS * LENGTH;
    stateful_op op = {.kernel = gb_kernel_gated_delta,
                      .node = {.op = GB_OP_GATED_DELTA,
                               .attribute_count = 2,
                               .attributes = {gb_int(GB_ATTRIBUTE_TILED, s.is_tiled),
                                              gb_int(GB_ATTRIBUTE_CORRECTS, !s.is_plain)}},
                      .stream_count = 5,
                      .streams = {random_tensor(&random, GB_F32, 3, tokens, s.key_heads, s.key_size),
                                  random_tensor(&random, GB_F32, 3, tokens, s.key_heads, s.key_size),
                                  random_tensor(&random, GB_F32, 3, tokens, s.heads, s.value_size),
                                  random_tensor(&random, GB_F32, 2, tokens, s.heads, 1),
                                  random_tensor(&random, GB_F32, 2, tokens, s.heads, 1)},
                      .state = new_state(3, s.heads, s.key_size, s.value_size),
                      .result = new_tensor(GB_F32, 3, tokens, s.heads, s.value_size)};
    make_inputs(&op, &s);
    check_stateful(&op);
    for (size_t slot = 0; slot < SLOTS; slot++)
        for (size_t h = 0; h < s.heads; h++)
            check_delta_head(&op, &s, slot, h);
    check_drafts(&op, s.key_heads * s.key_size + s.heads * (s.value_size + 2), &random);
    free_op(&op);
}

static void memory(void **unused) {
    (void)unused;
    check_delta((delta_sizes){1, 1, 1, 1, false, false});
    check_delta((delta_sizes){4, 2, 16, 16, false, false});
    check_delta((delta_sizes){3, 1, 7, 33, false, false});
    check_delta((delta_sizes){2, 2, 24, 150, false, false});
    check_delta((delta_sizes){6, 3, 128, 128, false, false});
    check_delta((delta_sizes){6, 2, 16, 24, true, false});
    check_delta((delta_sizes){4, 4, 8, 8, true, false});
    check_delta((delta_sizes){4, 2, 16, 40, false, true});
    check_delta((delta_sizes){8, 1, 128, 64, false, true});
    check_delta((delta_sizes){1, 1, GB_DELTA_COPIED + 4, 70, false, false});
}

/* ---- Decay --------------------------------------------------------------------------------------------- */

static double exact_decay(double x, double a_log, double bias) {
    double z = (double)((float)x + (float)bias); /* rounded once, as stated */
    return exp(-exp(a_log) * (z > 30 ? z : log1p(exp(z))));
}

static void decay(void **unused) {
    (void)unused;
    static const gb_dtype dtypes[] = {GB_F32, GB_F16, GB_BF16};
    uint64_t random = 3;
    for (size_t round = 0; round < 12; round++) {
        size_t tokens = 1 + random_below(&random, 9), heads = 1 + random_below(&random, 150);
        gb_cpu_tensor x = random_tensor(&random, GB_F32, 2, tokens, heads, 1);
        gb_cpu_tensor a_log = random_tensor(&random, dtypes[round % 3], 1, heads, 1, 1);
        gb_cpu_tensor bias = random_tensor(&random, dtypes[round / 3 % 3], 1, heads, 1, 1);
        gb_cpu_tensor y = new_tensor(GB_F32, 2, tokens, heads, 1);
        for (size_t i = 0; i < tokens * heads; i++)
            set_element(&x, i, element(&x, i) * (round % 2 ? 8 : 120));
        gb_kernel_call call = {NULL, {&x, &a_log, &bias}, {&y}, NULL, GB_SPLIT_OWN, NULL, NULL, NULL};
        check_kernel(gb_kernel_delta_decay, &call);
        for (size_t i = 0; i < tokens * heads; i++) {
            double exact = exact_decay(element(&x, i), element(&a_log, i % heads), element(&bias, i % heads));
            double exponent = fabs(log(exact)) > 80 ? 80 : fabs(log(exact)); /* its error is the result's */
            assert_near(element(&y, i), exact, (4 + 6 * exponent) * 6e-8 * exact + 1.2e-38, "delta_decay");
        }
        free_tensor(&x);
        free_tensor(&a_log);
        free_tensor(&bias);
        free_tensor(&y);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolution),
        cmocka_unit_test(memory),
        cmocka_unit_test(decay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
