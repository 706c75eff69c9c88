/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention in float32 over more positions than a span has: near the exact sums in double, and with the same
 * bits through the kernel for few tokens and the one for many, in caches and in rings that have wrapped.
 */
#include "cuda/attention_case.h"
#include "support/test_arguments.h"

enum { CHUNK = 200, TOKENS = 3 * CHUNK, LAST = 9, SHORT_CHUNK = 60 };

static const attention_case cases[] = {
    {TOKENS, 4, 2, 24, 32, 0, TOKENS, GB_BF16, 0.7, false, false},
    {TOKENS, 8, 1, 16, 40, 0, TOKENS + 7, GB_F32, 0.7, false, false},
    {TOKENS, 3, 3, 20, 12, 270, 270 + CHUNK, GB_F32, 0.7, false, false},
    {TOKENS, 3, 3, 20, 12, 270, 270 + LAST, GB_F32, 0.7, false,
     false}, /* chunks are longer than the ring's slack */
    {TOKENS, 4, 2, 24, 32, 50, 50 + LAST, GB_BF16, 0.7, false, false}, /* and than the ring */
    {TOKENS, 16, 1, 64, 264, 90, 90 + CHUNK, GB_BF16, 0.7, false, false},
    {TOKENS, 2, 1, 128, 128, 0, TOKENS, GB_F32, 0.1, false, false},
    {TOKENS, 4, 2, 32, 96, 0, TOKENS, GB_Q8, 0.3, false, false},
    {TOKENS, 3, 1, 64, 32, 270, 270 + LAST, GB_Q8, 0.2, false, false},
    {TOKENS, 4, 2, 128, 64, 90, 90 + CHUNK, GB_Q4, 0.1, false, false},
};

/* A short run computes the first and the last tokens alone, in chunks that are still longer than the shortest
 * ring. */
static bool is_left_out(size_t token) {
    return is_short_run() && token >= SHORT_CHUNK && token < TOKENS - SHORT_CHUNK;
}

static void sums_are_right_and_bits_the_same(void **unused) {
    (void)unused;
    const size_t chunk = (size_t)shortened(CHUNK, SHORT_CHUNK);
    uint64_t random = 9;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        attention_case with_sinks = cases[i];
        with_sinks.has_sinks = i % 2 == 1;
        const attention_case *c = &with_sinks;
        const size_t width = c->heads * c->value_size;
        tokens t = random_tokens(c, &random);
        float *few = malloc(LAST * width * sizeof *few);
        gb_cuda_tensor caches[2] = {new_cache(c, c->key_size), new_cache(c, c->value_size)};
        for (size_t first = 0; first < TOKENS; first += chunk) {
            if (is_left_out(first)) {
                fill_rows(c, t.key, c->key_size, first, first + chunk, &caches[0], 1);
                fill_rows(c, t.value, c->value_size, first, first + chunk, &caches[1], 1);
            } else {
                attend(c, &t, caches, (attention_batch){first, chunk, 1, 1, true, NULL}, t.y + first * width);
            }
        }
        attend(c, &t, caches, (attention_batch){TOKENS - LAST, LAST, 1, 1, false, NULL}, few);
        assert_memory_equal(few, t.y + (TOKENS - LAST) * width, LAST * width * sizeof *few);
        for (size_t n = 3; n < TOKENS; n += 149)
            for (size_t h = 0; h < c->heads && !is_left_out(n); h++)
                assert_row(c, &t, n, h, false, t.y + (n * c->heads + h) * c->value_size, 3e-6);
        free_on_device(&caches[0]);
        free_on_device(&caches[1]);
        free_tokens(&t);
        free(few);
    }
}

/* What is appended is rounded as the definition says it, also numbers of all sizes and what is no number. */
static void codes_are_those_of_the_definition(void **unused) {
    (void)unused;
    static const gb_dtype dtypes[] = {GB_Q8, GB_Q4};
    uint64_t random = 3;
    for (size_t d = 0; d < 2; d++) {
        const attention_case c = {24, 2, 1, 352, 64, 0, 24, dtypes[d], 0.1, false, false};
        tokens t = random_tokens(&c, &random);
        const size_t size = c.key_size, row = gb_code_bytes(c.cache, size) + gb_code_scale_bytes(size);
        uint8_t found[24 * 2 * 352], expected[2 * 352];
        for (size_t i = 0; i < c.tokens * size; i++)
            t.key[i] = ldexpf(t.key[i], (int)(i / 32 * 5 % 60) - 40) * (i / 96 % 5 ? 1 : 0);
        for (size_t i = 0; i < 3; i++)
            t.key[i * 7 * size + 40] = (const float[]){NAN, INFINITY, 3e38f}[i];
        gb_cuda_tensor caches[2] = {new_cache(&c, size), new_cache(&c, c.value_size)};
        attend(&c, &t, caches, (attention_batch){0, c.tokens, 0, 1, true, NULL}, t.y);
        assert_cuda(cudaMemcpy(found, caches[0].data, c.tokens * row, cudaMemcpyDeviceToHost));
        rotate(t.key, c.tokens * size, rotation_of(&c, size));
        for (size_t n = 0; n < c.tokens; n++) {
            round_row(c.cache, t.key + n * size, size, expected);
            assert_memory_equal(found + n * row, expected, row);
        }
        free_on_device(&caches[0]);
        free_on_device(&caches[1]);
        free_tokens(&t);
    }
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_right_and_bits_the_same),
                                       cmocka_unit_test(codes_are_those_of_the_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
