/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention in float32 over more positions than a span has: near the exact sums in double, and with the same
 * bits through the kernel for few tokens and the one for many, in caches and in rings that have wrapped.
 */
#include "cuda/attention_case.h"

enum { CHUNK = 200, TOKENS = 3 * CHUNK, LAST = 9 };

static const attention_case cases[] = {
    {TOKENS, 4, 2, 24, 32, 0, TOKENS, GB_BF16, 0.7, false},
    {TOKENS, 8, 1, 16, 40, 0, TOKENS + 7, GB_F32, 0.7, false},
    {TOKENS, 3, 3, 20, 12, 270, 270 + CHUNK, GB_F32, 0.7, false},
    {TOKENS, 3, 3, 20, 12, 270, 270 + LAST, GB_F32, 0.7, false}, /* chunks are longer than the ring's slack */
    {TOKENS, 4, 2, 24, 32, 50, 50 + LAST, GB_BF16, 0.7, false},  /* and than the ring */
    {TOKENS, 16, 1, 64, 264, 90, 90 + CHUNK, GB_BF16, 0.7, false},
    {TOKENS, 2, 1, 128, 128, 0, TOKENS, GB_F32, 0.1, false},
};

static void sums_are_right_and_bits_the_same(void **unused) {
    (void)unused;
    uint64_t random = 9;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const attention_case *c = &cases[i];
        const size_t width = c->heads * c->value_size;
        tokens t = random_tokens(c, &random);
        float *few = malloc(LAST * width * sizeof *few);
        gb_cuda_tensor caches[2] = {new_cache(c, c->key_size), new_cache(c, c->value_size)};
        for (size_t first = 0; first < TOKENS; first += CHUNK)
            attend(c, &t, caches, (attention_batch){first, CHUNK, 1, 1, true, NULL}, t.y + first * width);
        attend(c, &t, caches, (attention_batch){TOKENS - LAST, LAST, 1, 1, false, NULL}, few);
        assert_memory_equal(few, t.y + (TOKENS - LAST) * width, LAST * width * sizeof *few);
        for (size_t n = 3; n < TOKENS; n += 149)
            for (size_t h = 0; h < c->heads; h++)
                assert_row(c, &t, n, h, false, t.y + (n * c->heads + h) * c->value_size, 3e-6);
        free_on_device(&caches[0]);
        free_on_device(&caches[1]);
        free_tokens(&t);
        free(few);
    }
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_right_and_bits_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
