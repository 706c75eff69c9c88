/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of decode, whose blocks share the positions of all tokens of a launch: tokens of very different
 * lengths have the bits that they have alone, however their spans were cut, and are near the sums in double.
 */
#include "cuda/attention_case.h"
#include "support/test_arguments.h"

enum { MOST_ROWS = 90 };

/* So many kv heads that few blocks have one, and each of these several tokens' spans. */
static const attention_case cases[] = {
    {640, 44, 44, 128, 128, 0, 640, GB_BF16, 0.1, true, false},
    {600, 33, 33, 128, 128, 300, 310, GB_BF16, 0.1, true, false},
    {400, 72, 24, 256, 256, 0, 400, GB_BF16, 0.06, true, false},
    {300, 44, 44, 256, 256, 0, 300, GB_F32, 0.06, true, false},
    {1100, 2, 1, 512, 512, 0, 1100, GB_BF16, 0.04, true, false}, /* spans of two rounds */
    {1100, 40, 40, 512, 512, 0, 1100, GB_BF16, 0.04, true, false},
    /* codes, of few queries of a kv head and of many */
    {640, 88, 44, 128, 128, 0, 640, GB_Q8, 0.1, true, false},
    {700, 72, 24, 256, 256, 0, 700, GB_Q8, 0.06, true, false},
    {700, 120, 24, 256, 256, 300, 310, GB_Q4, 0.06, true, false},
    {1100, 40, 40, 512, 512, 0, 1100, GB_Q8, 0.04, true, false},
    {1100, 6, 1, 512, 512, 0, 1100, GB_Q4, 0.04, true, false},
    {640, 44, 44, 128, 128, 300, 310, GB_Q4, 0.1, true, false},
};
enum { CASES = sizeof cases / sizeof *cases };

/* The same with fewer rounds of keys or, where these are to be many, fewer heads; still more in all than the
 * emulated device has blocks. */
static const attention_case short_cases[CASES] = {
    {160, 44, 44, 128, 128, 0, 160, GB_BF16, 0.1, true, false},
    {300, 33, 33, 128, 128, 260, 270, GB_BF16, 0.1, true, false},
    {200, 72, 24, 256, 256, 0, 200, GB_BF16, 0.06, true, false},
    {80, 44, 44, 256, 256, 0, 80, GB_F32, 0.06, true, false},
    {1100, 2, 1, 512, 512, 0, 1100, GB_BF16, 0.04, true, false},
    {1100, 3, 3, 512, 512, 0, 1100, GB_BF16, 0.04, true, false},
    {400, 88, 44, 128, 128, 0, 400, GB_Q8, 0.1, true, false},
    {600, 24, 24, 256, 256, 0, 600, GB_Q8, 0.06, true, false},
    {360, 120, 24, 256, 256, 300, 310, GB_Q4, 0.06, true, false},
    {1100, 3, 3, 512, 512, 0, 1100, GB_Q8, 0.04, true, false},
    {1100, 6, 1, 512, 512, 0, 1100, GB_Q4, 0.04, true, false},
    {400, 44, 44, 128, 128, 300, 310, GB_Q4, 0.1, true, false},
};

/* Every slot has all of the case's keys, or values, up to its first position, as a cache has them. */
static gb_cuda_tensor filled_cache(const attention_case *c, const float *x, size_t size,
                                   const size_t first_of_slot[ATTENTION_SLOTS]) {
    const gb_cuda_tensor cache = new_cache(c, size);
    for (size_t s = 0; s < ATTENTION_SLOTS; s++)
        fill_rows(c, x, size, 0, first_of_slot[s], &cache, s);
    return cache;
}

static void check_together(const attention_case *c, uint64_t *random) {
    const size_t first_of_slot[ATTENTION_SLOTS] = {c->tokens - 1, c->tokens / 3, 30};
    const size_t width = c->heads * c->value_size;
    tokens t = random_tokens(c, random);
    gb_cuda_tensor caches[2] = {filled_cache(c, t.key, c->key_size, first_of_slot),
                                filled_cache(c, t.value, c->value_size, first_of_slot)};
    float *together = malloc(ATTENTION_SLOTS * width * sizeof *together),
          *alone = malloc(width * sizeof *alone);
    assert_true(together && alone);
    attend(c, &t, caches, (attention_batch){0, 1, 0, ATTENTION_SLOTS, false, first_of_slot}, together);
    for (size_t s = 0; s < ATTENTION_SLOTS; s++) {
        attend(c, &t, caches, (attention_batch){first_of_slot[s], 1, s, 1, false, NULL}, alone);
        assert_memory_equal(together + s * width, alone, width * sizeof *alone);
        for (size_t h = 0; h < c->heads; h += 11)
            assert_row(c, &t, first_of_slot[s], h, false, alone + h * c->value_size,
                       gb_dtype_has_codes(c->cache) ? 4e-5 : 2e-5);
    }
    free_on_device(&caches[0]);
    free_on_device(&caches[1]);
    free_tokens(&t);
    free(together);
    free(alone);
}

static void lengths_may_differ(void **unused) {
    (void)unused;
    uint64_t random = 17;
    for (size_t i = 0; i < CASES; i++)
        check_together(is_short_run() ? &short_cases[i] : &cases[i], &random);
}

/* More tokens than one launch takes, of drafts. */
static void rows_may_be_many(void **unused) {
    (void)unused;
    const size_t heads = (size_t)shortened(2, 1);
    const attention_case c = {300, heads, heads, 128, 128, 0, 300, GB_BF16, 0.1, true, false};
    const size_t first_of_slot[ATTENTION_SLOTS] = {(size_t)shortened(200, 60), 0, (size_t)shortened(77, 20)},
                 width = c.heads * c.value_size;
    uint64_t random = 19;
    tokens t = random_tokens(&c, &random);
    gb_cuda_tensor caches[2] = {filled_cache(&c, t.key, c.key_size, first_of_slot),
                                filled_cache(&c, t.value, c.value_size, first_of_slot)};
    float *together = malloc((size_t)ATTENTION_SLOTS * MOST_ROWS * width * sizeof *together),
          *alone = malloc(width * sizeof *alone);
    assert_true(together && alone);
    attend(&c, &t, caches, (attention_batch){0, MOST_ROWS, 0, ATTENTION_SLOTS, false, first_of_slot},
           together);
    for (size_t s = 0; s < ATTENTION_SLOTS; s++)
        for (size_t n = 0; n < MOST_ROWS; n += 17) {
            attend(&c, &t, caches, (attention_batch){first_of_slot[s] + n, 1, s, 1, false, NULL}, alone);
            assert_memory_equal(together + (s * MOST_ROWS + n) * width, alone, width * sizeof *alone);
        }
    free_on_device(&caches[0]);
    free_on_device(&caches[1]);
    free_tokens(&t);
    free(together);
    free(alone);
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(lengths_may_differ),
                                       cmocka_unit_test(rows_may_be_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
