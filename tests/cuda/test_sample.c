/* SPDX-License-Identifier: Apache-2.0
 *
 * The sample step against the CPU's sampler: the same tokens and log-probabilities for random rows of many
 * kinds, every row of a batch with settings of its own, and the logits as they were. On a real device there
 * are 100,000 rows and all words' noise, but for builds that tools slow down.
 */
#include "backends/cuda/lowering/steps.h"
#include "cuda/launching.h"
#include "cuda/noise_sum.h"
#include "cuda/random_rows.h"
#include "support/test_arguments.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(GUMBEL_EMULATED_DEVICE) || defined(GUMBEL_CUDA_RACECHECK) /* where each takes long */
#define TESTS_LESS 1
enum { SMALL_BATCHES = 64, LONG_BATCHES = 4, LONG_ROWS = 4 };
#else
enum { SMALL_BATCHES = 3072, LONG_BATCHES = 96, LONG_ROWS = 64 };
#endif
enum { TOGETHER = 16 }; /* batches that the host makes and samples at once */

static const uint32_t small_sizes[] = {48, 49, 1000, 5003, 160, 2048, 1, 300, 129, 777, 4097, 96};
static const uint32_t long_sizes[] = {262144, 248320, 262143, 151936};

typedef struct random_batch {
    sample_rows rows;
    bool is_ready;
    uint32_t kind;
    row_result expected[MOST_ROWS];
} random_batch;

static void *make_batch(void *argument) {
    random_batch *batch = argument;
    sample_rows *r = &batch->rows;
    void *scratch = gb_allocate_aligned(gb_sample_adjusted_scratch_bytes(r->size, BIASES, r->count_limit), 1);
    batch->is_ready = make_rows(r, batch->kind) && scratch;
    for (uint32_t b = 0; batch->is_ready && b < r->count; b++)
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
        assert_true(batches[i].is_ready);
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
    for (uint32_t first = 0; first < (uint32_t)shortened(SMALL_BATCHES, 2 * TOGETHER); first += TOGETHER)
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

/* ---- Counts that are there ----------------------------------------------------------------------------- */

enum { GUARDED_ROWS = 12, GUARDED_COUNTS = 16384, GUARDED_BATCHES = 6 };

/* How many entries of row b's list count_tokens would have written. */
static size_t written_counts(const sample_rows *r, uint32_t b) {
    const gb_token_count *list = r->counts + (size_t)b * r->count_limit;
    const size_t together = GB_CUDA_COUNTS_TOGETHER;
    size_t end = 0;
    if (r->repetition_penalty[b] == 1 && r->frequency_penalty[b] == 0 && r->presence_penalty[b] == 0)
        return 0;
    while (end < r->count_limit && list[end].id >= 0)
        end++;
    const size_t filled = (end / together + 1) * together + 1;
    return filled < r->count_limit ? filled : r->count_limit;
}

/* Puts harmful counts where count_tokens writes none: of tokens that there are, and large. */
static void spoil_counts(sample_rows *r) {
    for (uint32_t b = 0; b < r->count; b++) {
        gb_token_count *list = r->counts + (size_t)b * r->count_limit;
        list[b % 3 ? 150 * b : r->count_limit - 1].id = -1; /* some lists are short */
        for (size_t i = written_counts(r, b); i < r->count_limit; i++)
            list[i] = (gb_token_count){(int32_t)(i % r->size), INT32_MAX, INT32_MAX};
    }
}

/* Memory of the device with the counts; on an emulated one what count_tokens does not write cannot be read,
 * in whole pages. */
#if defined(GUMBEL_EMULATED_DEVICE)
static void *guarded_counts(const sample_rows *r) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = r->count_limit * sizeof *r->counts;
    void *memory = NULL;
    assert_int_equal(bytes % page, 0);
    assert_int_equal(posix_memalign(&memory, page, r->count * bytes), 0);
    memcpy(memory, r->counts, r->count * bytes);
    for (uint32_t b = 0; b < r->count; b++) {
        const size_t written = (written_counts(r, b) * sizeof *r->counts + page - 1) / page * page;
        assert_int_equal(mprotect((char *)memory + b * bytes + written, bytes - written, PROT_NONE), 0);
    }
    return memory;
}
static void free_guarded_counts(const sample_rows *r, void *memory) {
    assert_int_equal(
        mprotect(memory, (size_t)r->count * r->count_limit * sizeof *r->counts, PROT_READ | PROT_WRITE), 0);
    free(memory);
}
#else
static void *guarded_counts(const sample_rows *r) {
    return device_copy(r->counts, (size_t)r->count * r->count_limit * sizeof *r->counts);
}
static void free_guarded_counts(const sample_rows *r, void *memory) {
    (void)r;
    assert_cuda(cudaFree(memory));
}
#endif

/* The sample step reads no counts but those that count_tokens writes. */
static void counts_are_read_where_they_are(void **unused) {
    (void)unused;
    for (uint32_t kind = 0; kind < GUARDED_BATCHES; kind++) {
        sample_rows r = {
            .size = kind % 2 ? 20000 : 262144, .count = GUARDED_ROWS, .count_limit = GUARDED_COUNTS};
        int32_t tokens[GUARDED_ROWS];
        device_step step;
        assert_true(make_rows(&r, kind * 6 + kind % 2 * 5));
        spoil_counts(&r);
        assert_cuda(make_device_step(&r, r.count, NULL, &step));
        void *copied = step.operands[GB_SAMPLE_COUNTS].data, *guarded = guarded_counts(&r);
        step.operands[GB_SAMPLE_COUNTS].data = guarded;
        launch_step(&step, kind % 3 == 0);
        fetch_tensor(&step.token, tokens);
        step.operands[GB_SAMPLE_COUNTS].data = copied;
        void *scratch =
            gb_allocate_aligned(gb_sample_adjusted_scratch_bytes(r.size, BIASES, r.count_limit), 1);
        assert_non_null(scratch);
        for (uint32_t b = 0; b < r.count; b++)
            assert_int_equal(tokens[b], sample_on_cpu(&r, b, scratch).token);
        gb_free(scratch);
        free_guarded_counts(&r, guarded);
        free_device_step(&step);
        free_rows(&r);
    }
}

/* ---- Noise --------------------------------------------------------------------------------------------- */

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
    run_op(gb_cuda_gumbel_noise, &call);
    fetch_tensor(&to, found);
    assert_memory_equal(found, expected, COUNT * sizeof *found);
    free_on_device(&from);
    free_on_device(&to);
    free(bits);
    free(expected);
    free(found);
}

/* The checksum of docs/sampling.md; of the first words alone where each takes long. */
static void checksum_of_the_noise(void **unused) {
    (void)unused;
    uint64_t sum = 0, expected = UINT64_C(0x0d660213b089b00f), words = UINT64_C(1) << 32;
#if defined(TESTS_LESS)
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
        cmocka_unit_test(same_tokens_as_the_cpu),         cmocka_unit_test(same_tokens_of_long_rows),
        cmocka_unit_test(counts_are_read_where_they_are), cmocka_unit_test(same_noise_as_the_cpu),
        cmocka_unit_test(checksum_of_the_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
