/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/tiny_backend.h"

#include <math.h>

enum { TEXTS = 3, LENGTH = 50 }; /* several times around the ring */

/* What every other way of running must give: alone, token by token, portable, one thread, node by node. */
static void run_reference(const gb_program *program, tiny_logits logits[TEXTS][LENGTH]) {
    gb_backend_options options = tiny_options();
    options.cpu_isa = "portable";
    options.fuse = false;
    gb_backend *backend = new_backend(program, &options);
    for (uint32_t text = 0; text < TEXTS; text++) {
        backend->functions->reset_slot(backend, 0);
        run_text(backend, 0, text, 0, LENGTH, 1, logits[text]);
    }
    backend->functions->destroy(backend);
}

static void assert_same(const tiny_logits *found, const tiny_logits *expected, uint32_t first, uint32_t end,
                        const char *how) {
    for (uint32_t p = first; p < end; p++)
        if (memcmp(found[p], expected[p], sizeof found[p]) != 0)
            fail_msg("%s: the logits after position %u differ", how, p);
}

static void chunks_threads_and_sets(void **unused) {
    (void)unused;
    gb_program *program = new_tiny(false);
    static tiny_logits expected[TEXTS][LENGTH], found[LENGTH];
    run_reference(program, expected);
    const gb_vector_kernels *vector;
    for (size_t set = 0; (vector = gb_available_vector_kernels(set)); set++) {
        for (int threads = 1; threads <= 3; threads++) {
            gb_backend_options options = tiny_options();
            options.cpu_isa = vector->name;
            options.threads = threads;
            gb_backend *backend = new_sharing_backend(program, &options);
            for (uint32_t chunk = 1; chunk <= TINY_CHUNK; chunk++) {
                uint32_t slot = chunk % MOST_SLOTS;
                run_text(backend, slot, 1, 0, LENGTH, chunk, found);
                assert_same((const tiny_logits *)found, (const tiny_logits *)expected[1], 0, LENGTH,
                            backend->description);
            }
            backend->functions->destroy(backend);
        }
    }
    free_tiny(program);
}

/* Limits at which some steps are shared and some are not. */
static void shared_and_unshared_steps(void **unused) {
    (void)unused;
    gb_program *program = new_tiny(false);
    static tiny_logits expected[TEXTS][LENGTH], found[LENGTH];
    run_reference(program, expected);
    static const uint64_t limits[] = {300, 500, 1000, 3000, UINT64_MAX};
    gb_backend_options options = tiny_options();
    options.threads = 2;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        gb_backend *backend;
        gumbel_error error;
        assert_ok(gb_cpu_backend_create_sharing(program, &options, limits[i], &backend, &error), &error);
        run_text(backend, 0, 1, 0, LENGTH, 3, found);
        assert_same((const tiny_logits *)found, (const tiny_logits *)expected[1], 0, LENGTH, "partly shared");
        backend->functions->destroy(backend);
    }
    free_tiny(program);
}

/* Each token that a window still holds has its part in the logits: no equality above is one of nothing. */
static void history_matters(void **unused) {
    (void)unused;
    gb_program *program = new_tiny(false);
    static tiny_logits expected[LENGTH], found[LENGTH];
    gb_backend_options options = tiny_options();
    gb_backend *backend = new_backend(program, &options);
    run_text(backend, 0, 0, 0, LENGTH, 4, expected);
    for (uint32_t other = 0; other + 1 < LENGTH; other += 6) {
        run_text(backend, 1, 0, 0, other, 4, found);
        run_text(backend, 1, 1, other, other + 1, 1, found); /* one token of another text */
        run_text(backend, 1, 0, other + 1, LENGTH, 4, found);
        for (uint32_t p = 0; p < LENGTH; p++) {
            bool same = memcmp(found[p], expected[p], sizeof found[p]) == 0;
            if (same != (p < other || text_token(0, other) == text_token(1, other)))
                fail_msg("another token at %u: the logits after %u are%s the same", other, p,
                         same ? "" : " not");
        }
    }
    backend->functions->destroy(backend);
    free_tiny(program);
}

/* Three sequences join at different times, with chunks of different sizes, and one asks for no rows. */
static void neighbours(void **unused) {
    (void)unused;
    gb_program *program = new_tiny(false);
    static tiny_logits expected[TEXTS][LENGTH];
    run_reference(program, expected);
    gb_backend_options options = tiny_options();
    options.threads = 2;
    gb_backend *backend = new_sharing_backend(program, &options);
    uint32_t position[TEXTS] = {0};
    for (uint32_t round = 0; position[TEXTS - 1] < LENGTH; round++) {
        tiny_batch b = {0};
        uint32_t after[MOST_SLOTS], whose[MOST_SLOTS];
        for (uint32_t text = 0; text < TEXTS; text++) {
            uint32_t count = (round + text) % TINY_CHUNK + 1;
            if (round < 3 * text || position[text] == LENGTH)
                continue;
            count = count < LENGTH - position[text] ? count : LENGTH - position[text];
            add_text(&b, text, text, position[text], count);
            position[text] += count;
            if (round % 3 == 2)
                continue;
            whose[b.batch.row_count] = text;
            after[b.batch.row_count] = position[text] - 1;
            add_row(&b, b.batch.token_count - 1);
        }
        run_batch(backend, &b);
        if (b.batch.row_count == 0)
            assert_null(b.batch.logits);
        for (uint32_t row = 0; row < b.batch.row_count; row++)
            assert_memory_equal(b.batch.logits + row * TINY_VOCABULARY, expected[whose[row]][after[row]],
                                sizeof(tiny_logits));
    }
    backend->functions->destroy(backend);
    free_tiny(program);
}

/* Biases, penalties, masks and min-p of all kinds. */
static void set_settings(tiny_batch *b, uint32_t row, uint32_t position) {
    b->min_p[row] = (float)(row % 3) * 0.03f;
    b->repetition_penalty[row] = 1 + 0.2f * (float)row;
    b->frequency_penalty[row] = 0.3f * (float)(position % 4);
    b->presence_penalty[row] = row == 2 ? 1.5f : -0.5f;
    b->generated_from[row] = (int32_t)(position / 2);
    b->penalize_prompt[row] = (int32_t)(position % 4);
    for (int32_t i = 0; i < TINY_BIASES; i++) {
        b->bias_ids[row * TINY_BIASES + (uint32_t)i] =
            position % 5 == 0 && i == 2 ? -1 : ((int32_t)position + i * i) % TINY_VOCABULARY;
        b->bias_values[row * TINY_BIASES + (uint32_t)i] = i == 1 ? -INFINITY : 2.5f * (float)i + 1;
    }
    b->masked[row] = row == position % 3;
    for (uint32_t i = 0; i < TINY_MASK_WORDS; i++)
        b->mask[row * TINY_MASK_WORDS + i] = (position + i) * 2654435761u;
    b->want_logprobs[row] = row == 1;
}

/* The fused sampler draws what the chain of nodes draws, in batches of greedy and sampled rows. */
static void fused_and_unfused_tokens(void **unused) {
    (void)unused;
    gb_program *program = new_tiny(true);
    gb_backend_options options = tiny_options();
    gb_backend *fused = new_backend(program, &options);
    options.fuse = false;
    options.threads = 2;
    gb_backend *unfused = new_sharing_backend(program, &options);
    static const float temperatures[] = {0, 0.7f, 1, 30};
    uint32_t sampled_apart = 0; /* rows where sampling and argmax differ: the test would be blind without */
    for (uint32_t position = 0; position < TINY_CONTEXT; position++) {
        tiny_batch a = {0};
        for (uint32_t slot = 0; slot < MOST_SLOTS; slot++) {
            add_text(&a, slot, slot, position, 1);
            if (position % 7 == 3)
                continue;
            add_row(&a, slot);
            a.temperature[slot] = temperatures[(position / 3 + slot * (position % 2)) % 4];
            a.top_k[slot] = (int32_t)(position * slot % 9) - 1;
            a.top_p[slot] = slot == 1 ? 0.6f : 1.0f;
            a.seed[slot] = position * 1000003ull << (slot * 8);
            if (position % 3 > 0)
                set_settings(&a, slot, position);
        }
        tiny_batch b = a;
        run_batch(fused, &a);
        run_batch(unfused, &b);
        assert_memory_equal(a.next, b.next, sizeof a.next);
        if (a.batch.row_count > 0)
            assert_memory_equal(a.batch.top_logprobs, b.batch.top_logprobs,
                                a.batch.row_count * TINY_TOP * sizeof(float));
        memset(a.temperature, 0, sizeof a.temperature);
        run_batch(fused, &a);
        for (uint32_t row = 0; row < a.batch.row_count; row++)
            sampled_apart += a.next[row] != b.next[row];
    }
    assert_true(sampled_apart > 30);
    fused->functions->destroy(fused);
    unfused->functions->destroy(unfused);
    free_tiny(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_threads_and_sets),  cmocka_unit_test(shared_and_unshared_steps),
        cmocka_unit_test(history_matters),          cmocka_unit_test(neighbours),
        cmocka_unit_test(fused_and_unfused_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
