/* SPDX-License-Identifier: Apache-2.0
 *
 * The delta net of a decode step in one launch: it computes what the ops' own kernels compute, and a token's
 * bits depend neither on what else is in the batch nor on how a run was cut.
 */
#include "cuda/delta_layer.h"

enum { TOKENS = 7 };

/* Which slots the tokens are of: runs of one, three, one and two. */
static const int32_t slots[TOKENS] = {3, 0, 0, 0, 4, 1, 1};

static layer_results expected, found;

static void run(bool is_tiled, bool is_one, size_t at_once, layer_results *results) {
    const layer_run r = {.slots = slots, .tokens = TOKENS, .is_tiled = is_tiled, .is_one = is_one};
    size_t ends[TOKENS] = {0}, count = 0;
    for (size_t end = at_once; end < TOKENS; end += at_once)
        ends[count++] = end;
    run_layer(&r, ends, count, results);
}

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
        assert_memory_equal(found.y, expected.y, TOKENS * WIDTH * sizeof(float));
        assert_memory_equal(found.states, expected.states, sizeof found.states);
    }
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_ops_alone),
                                       cmocka_unit_test(same_bits_in_any_batch)};
    return cmocka_run_group_tests(tests, make_inputs, NULL);
}
