/* SPDX-License-Identifier: Apache-2.0
 *
 * The sample step against the CPU's sampler: the same tokens and log-probabilities for random rows of many
 * kinds, every row of a batch with settings of its own, and the logits as they were. On a real device there
 * are 100,000 rows and all words' noise.
 */
#include "cuda/noise_sum.h"
#include "cuda/random_rows.h"

#include <pthread.h>

#if defined(GUMBEL_EMULATED_DEVICE)
enum { SMALL_BATCHES = 64, LONG_BATCHES = 4, LONG_ROWS = 4 };
#else
enum { SMALL_BATCHES = 3072, LONG_BATCHES = 96, LONG_ROWS = 64 };
#endif
enum { TOGETHER = 16 }; /* batches that the host makes and samples at once */

static const uint32_t small_sizes[] = {48, 49, 1000, 5003, 160, 2048, 1, 300, 129, 777, 4097, 96};
static const uint32_t long_sizes[] = {262144, 248320, 262143, 151936};

typedef struct random_batch {
    sample_rows rows;
    bool is_made;
    uint32_t kind;
    row_result expected[MOST_ROWS];
} random_batch;

static void *make_batch(void *argument) {
    random_batch *batch = argument;
    sample_rows *r = &batch->rows;
    void *scratch = gb_allocate_aligned(gb_sample_adjusted_scratch_bytes(r->size, BIASES, r->count_limit), 1);
    batch->is_made = make_rows(r, batch->kind) && scratch;
    for (uint32_t b = 0; batch->is_made && b < r->count; b++)
        batch->expected[b] = sample_on_cpu(r, b, scratch);
    gb_free(scratch);
    return NULL;
}

/* Batches first .. first + count - 1, count <= TOGETHER: sizes go round, and so do numbers of rows up to
 * most_rows and those of counted tokens. */
static uint32_t compare_batches(uint32_t first, uint32_t count, const uint32_t *sizes, uint32_t size_count,
                                uint32_t most_rows, const uint32_t most_counts[2]) {
    static random_batch batches[TOGETHER];
    pthread_t threads[TOGETHER];
    uint32_t compared = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t kind = first + i;
        batches[i] = (random_batch){.kind = kind};
        batches[i].rows.size = sizes[kind % size_count];
        batches[i].rows.count = 1 + kind * 7 % most_rows;
        batches[i].rows.count_limit = most_counts[kind / 2 % 2];
        assert_int_equal(pthread_create(&threads[i], NULL, make_batch, &batches[i]), 0);
    }
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(batches[i].is_made);
        compare_with_device(&batches[i].rows, batches[i].expected, batches[i].kind);
        compared += batches[i].rows.count;
        free_rows(&batches[i].rows);
    }
    return compared;
}

static void same_tokens_as_the_cpu(void **unused) {
    (void)unused;
    enum { SIZES = sizeof small_sizes / sizeof *small_sizes };
    uint32_t compared = 0;
    for (uint32_t first = 0; first < SMALL_BATCHES; first += TOGETHER)
        compared +=
            compare_batches(first, TOGETHER, small_sizes, SIZES, MOST_ROWS, (const uint32_t[2]){40, 40});
    print_message("%u rows\n", compared);
}

static void same_tokens_of_long_rows(void **unused) {
    (void)unused;
    enum { SIZES = sizeof long_sizes / sizeof *long_sizes };
    const uint32_t batches = LONG_BATCHES, most = TOGETHER, at_once = batches < most ? batches : most;
    uint32_t compared = 0;
    for (uint32_t first = 0; first < batches; first += at_once)
        compared +=
            compare_batches(first, at_once, long_sizes, SIZES, LONG_ROWS, (const uint32_t[2]){40, 6000});
    print_message("%u rows\n", compared);
}

/* A sample of all words. */
static void same_noise_as_the_cpu(void **unused) {
    (void)unused;
    enum { COUNT = 1 << 16 };
    uint32_t *bits = malloc(COUNT * sizeof *bits);
    float *expected = malloc(COUNT * sizeof *expected), *found = malloc(COUNT * sizeof *found);
    assert_true(bits && expected && found);
    for (uint32_t i = 0; i < COUNT; i++)
        bits[i] = i < 16 ? i : i > COUNT - 16 ? UINT32_MAX - (COUNT - i) + 1 : i * 65521u;
    gb_gumbel_noise(bits, COUNT, expected);
    gb_cuda_tensor from = device_tensor(GB_U32, bits, 2, 1, COUNT, 1);
    gb_cuda_tensor to = device_tensor(GB_F32, NULL, 2, 1, COUNT, 1);
    gb_cuda_call call = {.operands = {&from}, .results = {&to}};
    gb_cuda_gumbel_noise(&call);
    fetch_tensor(&to, found);
    assert_memory_equal(found, expected, COUNT * sizeof *found);
    free_on_device(&from);
    free_on_device(&to);
    free(bits);
    free(expected);
    free(found);
}

/* The checksum of docs/sampling.md; of the first words alone on an emulated device. */
static void checksum_of_the_noise(void **unused) {
    (void)unused;
    uint64_t sum = 0, expected = UINT64_C(0x0d660213b089b00f), words = UINT64_C(1) << 32;
#if defined(GUMBEL_EMULATED_DEVICE)
    words = 1 << 14;
    expected = 0;
    for (uint64_t word = 0; word < words; word++) {
        uint32_t bits = (uint32_t)word;
        float noise;
        gb_gumbel_noise(&bits, 1, &noise);
        memcpy(&bits, &noise, sizeof bits);
        expected += (2 * word + 1) * mixed_bits(bits);
    }
#endif
    uint64_t *on_device = device_copy(&sum, sizeof sum);
    add_noise(words, on_device);
    assert_cuda(cudaGetLastError());
    assert_cuda(cudaMemcpy(&sum, on_device, sizeof sum, cudaMemcpyDeviceToHost));
    assert_cuda(cudaFree(on_device));
    assert_true(sum == expected);
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_tokens_as_the_cpu),
        cmocka_unit_test(same_tokens_of_long_rows),
        cmocka_unit_test(same_noise_as_the_cpu),
        cmocka_unit_test(checksum_of_the_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
