/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention on tensor cores, over caches of bfloat16, float32 and codes: prefill and decode are near the sums
 * in double, and have the same bits however a prompt was cut and whoever else is in the batch.
 */
#include "cuda/attention_case.h"

enum { CHUNK = 96, GENERATED = 3 };

static const attention_case cases[] = {
    {2 * CHUNK + 21, 4, 2, 128, 128, 0, 2 * CHUNK + 30, GB_BF16, 0.1, true, false},
    {2 * CHUNK + 5, 2, 1, 256, 256, 70, 70 + CHUNK, GB_BF16, 0.06, true, false},
    {2 * CHUNK + 108, 3, 1, 512, 512, 0, 2 * CHUNK + 108, GB_BF16, 0.04, true, false},
    {3 * CHUNK, 10, 1, 128, 128, 33, 33 + CHUNK, GB_BF16, 0.5, true, false},
    {2 * CHUNK + 21, 4, 2, 128, 128, 0, 2 * CHUNK + 30, GB_F32, 0.1, true, false},
    {2 * CHUNK + 5, 2, 1, 256, 256, 70, 70 + CHUNK, GB_F32, 0.06, true, false},
    {2 * CHUNK + 108, 3, 1, 512, 512, 0, 2 * CHUNK + 108, GB_F32, 0.04, true, false},
    {3 * CHUNK, 10, 1, 256, 256, 33, 33 + CHUNK, GB_F32, 0.3, true, false},
    /* pieces are longer than the ring's slack, and than the ring */
    {2 * CHUNK + 5, 2, 1, 256, 256, 70, 70 + GENERATED, GB_BF16, 0.06, true, false},
    {3 * CHUNK, 4, 2, 512, 512, 130, 130 + GENERATED, GB_BF16, 0.04, true, false},
    {2 * CHUNK + 5, 2, 2, 128, 128, 61, 61 + GENERATED, GB_F32, 0.1, true, false},
    {2 * CHUNK + 21, 4, 2, 128, 128, 0, 2 * CHUNK + 30, GB_Q8, 0.1, true, false},
    {2 * CHUNK + 5, 2, 1, 256, 256, 70, 70 + GENERATED, GB_Q8, 0.06, true, false},
    {2 * CHUNK + 108, 3, 1, 512, 512, 0, 2 * CHUNK + 108, GB_Q8, 0.04, true, false},
    {3 * CHUNK, 10, 1, 256, 256, 100, 100 + CHUNK, GB_Q8, 0.06, true, false},
    {2 * CHUNK + 21, 8, 1, 128, 128, 0, 2 * CHUNK + 30, GB_Q4, 0.1, true, false},
    {2 * CHUNK + 5, 6, 1, 256, 256, 70, 70 + GENERATED, GB_Q4, 0.06, true, false},
    {2 * CHUNK + 21, 6, 1, 512, 512, 0, 2 * CHUNK + 21, GB_Q4, 0.04, true, false},
    /* heads of which two are one */
    {2 * CHUNK + 21, 8, 4, 64, 64, 0, 2 * CHUNK + 30, GB_BF16, 0.15, true, false},
    {2 * CHUNK + 5, 16, 2, 64, 64, 70, 70 + CHUNK, GB_BF16, 0.12, true, false},
    {2 * CHUNK + 5, 6, 2, 64, 64, 70, 70 + GENERATED, GB_F32, 0.12, true, false},
    {2 * CHUNK + 21, 12, 4, 64, 64, 0, 2 * CHUNK + 30, GB_Q8, 0.12, true, false},
    {2 * CHUNK + 21, 8, 4, 64, 64, 0, 2 * CHUNK + 30, GB_Q4, 0.12, true, false},
};

/* The prompt in pieces of at most that many tokens, to a slot. */
static void run_prompt(const attention_case *c, const tokens *t, gb_cuda_tensor caches[2], size_t piece,
                       size_t slot, float *y) {
    const size_t width = c->heads * c->value_size, end = c->tokens - GENERATED;
    for (size_t first = 0; first < end; first += piece) {
        const size_t count = first + piece < end ? piece : end - first;
        attend(c, t, caches, (attention_batch){first, count, slot, 1, true, NULL}, y + first * width);
    }
}

static void check_prompt(const attention_case *c, const tokens *t) {
    const bool is_rounded = c->cache == GB_BF16; /* to bfloat16, as are the weights of the values */
    const bool rounds_codes =
        gb_dtype_has_codes(c->cache) && gb_cuda_wgmma_blocks() > 0 && !attention_without_wgmma;
    const double tolerance = rounds_codes ? 1.5e-2 : is_rounded ? 4e-3 : 2e-5;
    for (size_t n = 0; n < c->tokens - GENERATED; n += n < 3 ? 1 : 41)
        for (size_t h = 0; h < c->heads; h++)
            assert_row(c, t, n, h, is_rounded, t->y + (n * c->heads + h) * c->value_size, tolerance);
}

/* The last tokens one by one, in the slots that have the prompt: all slots at a time, then one alone. */
static void run_generated(const attention_case *c, const tokens *t, gb_cuda_tensor caches[2]) {
    const size_t width = c->heads * c->value_size;
    const double tolerance = gb_dtype_has_codes(c->cache) ? 4e-5 : 2e-5;
    float *all = malloc(2 * width * sizeof *all), *alone = malloc(width * sizeof *alone);
    for (size_t n = c->tokens - GENERATED; n < c->tokens; n++) {
        attend(c, t, caches, (attention_batch){n, 1, 0, 2, false, NULL}, all);
        attend(c, t, caches, (attention_batch){n, 1, 1, 1, false, NULL}, alone);
        assert_memory_equal(all, alone, width * sizeof *all);
        assert_memory_equal(all + width, alone, width * sizeof *all);
        for (size_t h = 0; h < c->heads; h++)
            assert_row(c, t, n, h, false, alone + h * c->value_size, tolerance);
    }
    free(all);
    free(alone);
}

/* Generated tokens that are run again, several of a slot at a time, have the bits that they had one by one.
 */
static void run_again(const attention_case *c, const tokens *t, gb_cuda_tensor caches[2]) {
    const size_t width = c->heads * c->value_size, first = c->tokens - GENERATED;
    float *again = malloc(GENERATED * width * sizeof *again), *alone = malloc(width * sizeof *alone);
    attend(c, t, caches, (attention_batch){first, GENERATED, 0, 1, false, NULL}, again);
    attend(c, t, caches, (attention_batch){first + 1, 1, 1, 1, false, NULL}, alone);
    assert_memory_equal(again + width, alone, width * sizeof *alone);
    free(again);
    free(alone);
}

static void compare(bool only_bf16) {
    uint64_t random = 11;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        attention_case with_sinks = cases[i];
        with_sinks.has_sinks = i % 2 == 1;
        const attention_case *c = &with_sinks;
        if (only_bf16 && c->cache != GB_BF16)
            continue;
        const size_t size = (c->tokens - GENERATED) * c->heads * c->value_size * sizeof(float);
        tokens t = random_tokens(c, &random);
        float *other = malloc(size);
        gb_cuda_tensor caches[2] = {new_cache(c, c->key_size), new_cache(c, c->value_size)};
        run_prompt(c, &t, caches, CHUNK, 0, t.y);
        run_prompt(c, &t, caches, 37, 1, other);
        assert_memory_equal(other, t.y, size);
        check_prompt(c, &t);
        run_generated(c, &t, caches);
        run_again(c, &t, caches);
        free_on_device(&caches[0]);
        free_on_device(&caches[1]);
        free_tokens(&t);
        free(other);
    }
}

static void sums_are_right_and_bits_the_same(void **unused) {
    (void)unused;
    compare(false);
}

/* Over float32 caches there is no other kernel. */
static void so_they_are_before_hopper(void **unused) {
    (void)unused;
    attention_without_wgmma = true;
    compare(true);
    attention_without_wgmma = false;
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_right_and_bits_the_same),
                                       cmocka_unit_test(so_they_are_before_hopper)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
