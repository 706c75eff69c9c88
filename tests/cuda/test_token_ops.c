/* SPDX-License-Identifier: Apache-2.0
 *
 * The ops beside the sample step against the CPU's: log-probabilities and the likeliest tokens, with the same
 * bits, and the counts of tokens, in the same order.
 */
#include "backends/cuda/lowering/steps.h"
#include "backends/sampler/sampler.h"
#include "cuda/launching.h"

#include <math.h>

enum { ROWS = 3, TOP = 7 };

/* Of the kinds: spread, with many ties, almost all -inf, all equal. */
static void fill_row(float *x, uint32_t size, uint32_t kind, uint64_t *random) {
    for (uint32_t i = 0; i < size; i++) {
        float r = next_float(random);
        x[i] = kind % 4 == 0 ? 20 * r * r * r : kind % 4 == 1 ? (float)(int)(5 * r) : 0;
        if (kind % 4 == 2)
            x[i] = next_random(random) % (size / 12 + 2) ? -INFINITY : r;
    }
    if (kind % 7 == 4)
        x[next_random(random) % size] = INFINITY;
}

/* Launches an op on operands that lie on the device, its scratch being full of ones. */
static void run_with_scratch(void (*op)(const gb_cuda_call *call),
                             uint64_t scratch_bytes(const gb_cuda_problem *), gb_cuda_call *call) {
    const gb_cuda_call *const part = call;
    const gb_cuda_problem problem = problem_of_call(&part);
    gb_cuda_scratch scratch = {0};
    call->scratch = &scratch;
    scratch.size = scratch_bytes ? scratch_bytes(&problem) : 0;
    scratch.bytes = device_copy(NULL, scratch.size);
    run_op(op, call);
    assert_cuda(cudaStreamSynchronize(NULL));
    assert_cuda(cudaFree(scratch.bytes));
}

static void compare_row(const float *x, uint32_t size, bool is_wanted, const float normalizer[2],
                        const int32_t *ids, const float *logprobs) {
    float expected[2] = {0, 0};
    int32_t expected_ids[TOP];
    gb_top_ids(x, size, TOP, expected_ids);
    if (is_wanted)
        gb_log_normalizer(x, size, expected);
    assert_true(normalizer[0] == expected[0]);
    assert_memory_equal(&normalizer[1], &expected[1], sizeof(float));
    for (int i = 0; i < TOP; i++) {
        float logprob = gb_log_probability(x, size, normalizer, is_wanted ? expected_ids[i] : -1);
        assert_int_equal(ids[i], is_wanted ? expected_ids[i] : -1);
        assert_memory_equal(&logprobs[i], &logprob, sizeof logprob);
    }
}

static void compare_logprobs(uint32_t size, uint32_t kind, uint64_t *random) {
    bool wanted[ROWS] = {true, kind % 3 != 0, true};
    float normalizer[ROWS][2], logprobs[ROWS][TOP];
    int32_t ids[ROWS][TOP];
    float *x = malloc(ROWS * (size_t)size * sizeof *x);
    assert_non_null(x);
    for (uint32_t b = 0; b < ROWS; b++)
        fill_row(x + (size_t)b * size, size, kind + b, random);
    gb_cuda_tensor logits = device_tensor(GB_F32, x, 2, ROWS, size, 1);
    gb_cuda_tensor on_device = device_tensor(GB_BOOL, wanted, 1, ROWS, 1, 1);
    gb_cuda_tensor normalizers = device_tensor(GB_F32, NULL, 2, ROWS, 2, 1);
    gb_cuda_tensor top = device_tensor(GB_I32, NULL, 2, ROWS, TOP, 1);
    gb_cuda_tensor of_top = device_tensor(GB_F32, NULL, 2, ROWS, TOP, 1);
    run_with_scratch(gb_cuda_log_normalizer, gb_cuda_log_normalizer_scratch,
                     &(gb_cuda_call){.operands = {&logits, &on_device}, .results = {&normalizers}});
    run_with_scratch(gb_cuda_top_ids, gb_cuda_top_ids_scratch,
                     &(gb_cuda_call){.operands = {&logits, &on_device}, .results = {&top}});
    run_with_scratch(gb_cuda_log_probability, NULL,
                     &(gb_cuda_call){.operands = {&logits, &normalizers, &top}, .results = {&of_top}});
    fetch_tensor(&normalizers, normalizer);
    fetch_tensor(&top, ids);
    fetch_tensor(&of_top, logprobs);
    for (uint32_t b = 0; b < ROWS; b++)
        compare_row(x + (size_t)b * size, size, wanted[b], normalizer[b], ids[b], logprobs[b]);
    const gb_cuda_tensor *all[] = {&logits, &on_device, &normalizers, &top, &of_top};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free_on_device(all[i]);
    free(x);
}

static void same_log_probabilities(void **unused) {
    (void)unused;
    static const uint32_t sizes[] = {49, 5003, 128, 20000, 7, 262144};
    uint64_t random = 5;
    for (uint32_t kind = 0; kind < 30; kind++)
        compare_logprobs(sizes[kind < 24 ? kind % 5 : kind % 6], kind, &random);
}

enum { SLOTS = 2, MOST_TOKENS = 6000 };

/* From entry `end` on a list has ids of -1, up to entry `filled`, and then what was there before. */
static void assert_end(const gb_token_count *list, uint32_t end, uint32_t filled) {
    gb_token_count before;
    memset(&before, 0x55, sizeof before);
    for (uint32_t i = end; i < MOST_TOKENS; i++)
        if (i < filled)
            assert_int_equal(list[i].id, -1);
        else
            assert_memory_equal(&list[i], &before, sizeof before);
}

/* One row after `length` tokens, of which the last `step` come with this step; from: where generated ones
 * begin. */
static void compare_counts(uint32_t length, uint32_t step, int32_t from, int32_t distinct, uint64_t *random) {
    static int32_t history[SLOTS][MOST_TOKENS], tokens[MOST_TOKENS], positions[MOST_TOKENS],
        slots[MOST_TOKENS];
    static gb_token_count expected[MOST_TOKENS], found[MOST_TOKENS];
    int32_t row = (int32_t)step - 1;
    memset(history, 0xff, sizeof history);
    for (uint32_t i = 0; i < length; i++) {
        int32_t token = (int32_t)(next_random(random) % (uint32_t)distinct);
        if (i < length - step)
            history[1][i] = token;
        else {
            tokens[i - (length - step)] = token;
            positions[i - (length - step)] = (int32_t)i;
            slots[i - (length - step)] = 1;
        }
    }
    gb_cuda_tensor operands[] = {
        device_tensor(GB_I32, tokens, 1, step, 1, 1),
        device_tensor(GB_I32, positions, 1, step, 1, 1),
        device_tensor(GB_I32, slots, 1, step, 1, 1),
        device_tensor(GB_I32, &row, 1, 1, 1, 1),
        device_tensor(GB_I32, &from, 1, 1, 1, 1),
        device_tensor(GB_I32, history, 2, SLOTS, MOST_TOKENS, 1),
    };
    enum { COUNT = sizeof operands / sizeof *operands };
    memset(found, 0x55, sizeof found); /* what no token of the list takes stays so */
    gb_cuda_tensor counts = device_tensor(GB_I32, found, 3, 1, MOST_TOKENS, 3);
    gb_cuda_call call = {.results = {&counts}};
    operands[COUNT - 1].slot_bytes = sizeof history[0];
    for (int i = 0; i < COUNT; i++)
        call.operands[i] = &operands[i];
    run_with_scratch(gb_cuda_count_tokens, gb_cuda_count_tokens_scratch, &call);
    fetch_tensor(&counts, found);
    fetch_tensor(&operands[COUNT - 1], history);
    assert_memory_equal(&history[1][length - step], tokens, step * sizeof *tokens);
    if (from >= 0) {
        void *table = malloc(gb_count_scratch_bytes(length));
        assert_non_null(table);
        gb_count_tokens(history[1], length, (uint32_t)from, expected, MOST_TOKENS, table);
        free(table);
        uint32_t end = 0;
        for (; end < MOST_TOKENS && expected[end].id >= 0; end++)
            assert_memory_equal(&found[end], &expected[end], sizeof *found);
        assert_end(found, end, (end / GB_CUDA_COUNTS_TOGETHER + 1) * GB_CUDA_COUNTS_TOGETHER + 1);
    } else {
        assert_int_equal(found[0].id, -1);
    }
    for (int i = 0; i < COUNT; i++)
        free_on_device(&operands[i]);
    free_on_device(&counts);
}

static void same_counts(void **unused) {
    (void)unused;
    uint64_t random = 6;
    compare_counts(1, 1, 0, 10, &random);
    compare_counts(40, 1, 30, 10, &random);
    compare_counts(40, 1, -1, 10, &random);
    compare_counts(1000, 1, 0, 262144, &random);
    compare_counts(3000, 512, 2999, 700, &random);
    compare_counts(3000, 1500, 1200, 700, &random);
    compare_counts(5000, 1, 4000, 300, &random);
    compare_counts(2047, 1, 100, 1 << 30, &random);
    compare_counts(2048, 1, 100, 1 << 30, &random);
    compare_counts(5999, 1, 100, 262144, &random);
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_log_probabilities),
        cmocka_unit_test(same_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
