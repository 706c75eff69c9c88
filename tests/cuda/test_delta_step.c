/* SPDX-License-Identifier: Apache-2.0
 *
 * The delta net of a decode step in one launch: it computes what the ops' own kernels compute, and a token's
 * bits depend neither on what else is in the batch nor on how a run was cut, nor do those of its states.
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

/* Drafts: runs of these lengths, on slots of their own. Tokens leave versions behind these slots; those of
 * the last run one for the first, which is its own slot, and one for the others. */
enum { RUNS = 5, LAST = 3, DRAFTS = 2 + 9 + 1 + 17 + LAST };
static const size_t lengths[RUNS] = {2, 9, 1, 17, LAST};

/* `before` is where each token finds the state if it is run alone. */
typedef struct drafts {
    int32_t slots[DRAFTS], before[DRAFTS], to[DRAFTS];
    size_t ends[DRAFTS], run_ends[RUNS];
} drafts;

static drafts make_drafts(void) {
    drafts d = {.slots = {0}};
    size_t n = 0;
    for (int32_t slot = 0; slot < RUNS; slot++) {
        for (size_t i = 0; i < lengths[slot]; i++, n++) {
            const int32_t own = RUNS + (int32_t)n;
            d.slots[n] = slot;
            d.before[n] = i ? d.to[n - 1] : slot;
            d.to[n] = n < DRAFTS - LAST ? own : i ? SLOTS - 1 : slot;
            d.ends[n] = n + 1;
        }
        d.run_ends[slot] = n;
    }
    return d;
}

/* A batch of few runs is done by several blocks a head, where there are clusters. */
static void as_token_by_token(void **state) {
    const drafts d = make_drafts();
    const layer_run single = {.slots = d.before, .tokens = DRAFTS, .is_one = true, .to = d.to};
    const layer_run together = {.slots = d.slots, .tokens = DRAFTS, .is_one = true, .to = d.to};
    (void)state;
    run_layer(&single, d.ends, DRAFTS - 1, &expected);
    for (size_t cuts = 0; cuts < RUNS; cuts += RUNS - 1) {
        run_layer(&together, d.run_ends, cuts, &found);
        assert_memory_equal(found.y, expected.y, DRAFTS * WIDTH * sizeof(float));
        assert_memory_equal(found.states, expected.states, sizeof found.states);
    }
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_ops_alone),
                                       cmocka_unit_test(same_bits_in_any_batch),
                                       cmocka_unit_test(as_token_by_token)};
    return cmocka_run_group_tests(tests, make_inputs, NULL);
}
