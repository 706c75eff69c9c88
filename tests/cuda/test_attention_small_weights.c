/* SPDX-License-Identifier: Apache-2.0
 *
 * A key that draws nearly all of the attention and whose value is nothing, as the first token of a text often
 * is: the result is what many small weights of small values add up to, in every form of caches.
 */
#include "cuda/attention_case.h"
#include "support/test_arguments.h"

enum { TOKENS = 150, FEW = 132 }; /* more than a round of keys of any size */

static const attention_case cases[] = {
    {TOKENS, 2, 2, 128, 128, 0, TOKENS, GB_BF16, 0.06, true, false},
    {TOKENS, 2, 1, 256, 256, 0, TOKENS, GB_F32, 0.06, true, false},
    {TOKENS, 2, 2, 128, 128, 0, TOKENS, GB_Q8, 0.06, true, false},
    {TOKENS, 2, 1, 256, 256, 0, TOKENS, GB_Q8, 0.06, true, false},
    {TOKENS, 2, 1, 512, 512, 0, TOKENS, GB_Q8, 0.06, true, false},
    {TOKENS, 2, 1, 256, 256, 0, TOKENS, GB_Q4, 0.06, true, false},
};

/* Scores are 11 for the first key and 0 for the others, whose weights are 1.7e-5 then. Values are 0 and
 * around 1e-3. */
static tokens sink_tokens(const attention_case *c, uint64_t *random) {
    const size_t width = c->kv_heads * c->key_size;
    tokens t = random_tokens(c, random);
    for (size_t i = 0; i < c->tokens * c->heads * c->key_size; i++)
        t.query[i] = 1;
    for (size_t i = 0; i < c->tokens * width; i++) {
        t.key[i] = i < width ? (float)(11 / (c->scale * (double)c->key_size)) : 0;
        t.value[i] = i < width ? 0 : 1e-3f + 1e-4f * t.value[i];
    }
    free(t.stored_key);
    free(t.stored_value);
    t.stored_key = stored_rows(c, t.key, c->key_size);
    t.stored_value = stored_rows(c, t.value, c->value_size);
    return t;
}

/* One token alone, and the same in two slots. */
static void many_small_weights_count(void **unused) {
    (void)unused;
    uint64_t random = 23;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        attention_case of_run = cases[i];
        of_run.tokens = of_run.capacity = (size_t)shortened(TOKENS, FEW);
        const attention_case *c = &of_run;
        const size_t width = c->heads * c->value_size, last = c->tokens - 1;
        tokens t = sink_tokens(c, &random);
        float *both = malloc(2 * width * sizeof *both), *alone = malloc(width * sizeof *alone);
        gb_cuda_tensor caches[2] = {new_cache(c, c->key_size), new_cache(c, c->value_size)};
        assert_true(both && alone);
        for (size_t slot = 0; slot < 2 && !is_short_run(); slot++)
            attend(c, &t, caches, (attention_batch){0, last, slot, 1, true, NULL}, t.y);
        for (size_t slot = 0; slot < 2 && is_short_run();
             slot++) { /* a prompt takes long on an emulated device */
            fill_rows(c, t.key, c->key_size, 0, last, &caches[0], slot);
            fill_rows(c, t.value, c->value_size, 0, last, &caches[1], slot);
        }
        attend(c, &t, caches, (attention_batch){last, 1, 0, 2, false, NULL}, both);
        attend(c, &t, caches, (attention_batch){last, 1, 0, 1, false, NULL}, alone);
        assert_memory_equal(both, alone, width * sizeof *alone);
        assert_memory_equal(both + width, alone, width * sizeof *alone);
        for (size_t h = 0; h < c->heads; h++) /* of numbers around 2.5e-6 */
            assert_row(c, &t, last, h, false, alone + h * c->value_size, 5e-8 * (double)c->tokens / TOKENS);
        free_on_device(&caches[0]);
        free_on_device(&caches[1]);
        free_tokens(&t);
        free(both);
        free(alone);
    }
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_small_weights_count)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
