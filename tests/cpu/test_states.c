/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/tiny_backend.h"

enum { LENGTH = 50 };

static gb_program *program;
static tiny_logits expected[2][LENGTH];

static int set_up(void **unused) {
    (void)unused;
    program = new_tiny(false);
    gb_backend_options options = tiny_options();
    gb_backend *backend = new_backend(program, &options);
    for (uint32_t text = 0; text < 2; text++) {
        backend->functions->reset_slot(backend, 0);
        run_text(backend, 0, text, 0, LENGTH, 1, expected[text]);
    }
    backend->functions->destroy(backend);
    return 0;
}

static int tear_down(void **unused) {
    (void)unused;
    free_tiny(program);
    return 0;
}

static void assert_continues(gb_backend *backend, uint32_t slot, uint32_t text, uint32_t from) {
    static tiny_logits found[LENGTH];
    run_text(backend, slot, text, from, LENGTH, 3, found);
    for (uint32_t p = from; p < LENGTH; p++)
        assert_memory_equal(found[p], expected[text][p], sizeof found[p]);
}

/* Before and after the ring is full. */
static const uint32_t turns[] = {1, 7, TINY_WINDOW, 11, TINY_RING, 13, 29, 44};
enum { TURNS = sizeof turns / sizeof *turns };

static void copy(void **unused) {
    (void)unused;
    gb_backend_options options = tiny_options();
    for (size_t i = 0; i < TURNS; i++) {
        gb_backend *backend = new_backend(program, &options);
        static tiny_logits scrap[LENGTH];
        run_text(backend, 3, 1, 0, LENGTH, 4, scrap); /* what the copy replaces */
        run_text(backend, 1, 0, 0, turns[i], 2, scrap);
        backend->functions->copy_slot(backend, 1, 3, turns[i], NULL);
        assert_continues(backend, 1, 0, turns[i]);
        assert_continues(backend, 3, 0, turns[i]);
        backend->functions->destroy(backend);
    }
}

static void snapshot(void **unused) {
    (void)unused;
    gb_backend_options options = tiny_options();
    gb_backend *backend = new_backend(program, &options);
    for (size_t i = 0; i < TURNS; i++) {
        static tiny_logits scrap[LENGTH];
        backend->functions->reset_slot(backend, 2);
        run_text(backend, 2, 0, 0, turns[i], 4, scrap);
        backend->functions->take_snapshot(backend, 2, turns[i], NULL);
        run_text(backend, 2, 1, turns[i], LENGTH, 4, scrap); /* another continuation */
        backend->functions->restore_snapshot(backend, 2, turns[i]);
        assert_continues(backend, 2, 0, turns[i]);
    }
    backend->functions->destroy(backend);
}

static void save_at(gb_backend *backend, uint32_t slot, uint32_t position, tiny_stream *s) {
    static tiny_logits scrap[LENGTH];
    gumbel_error error;
    run_text(backend, slot, 0, 0, position, 4, scrap);
    s->size = s->position = 0;
    assert_ok(backend->functions->save_slot(backend, slot, position, GB_SAVED_ALL, tiny_write, s, &error),
              &error);
}

/* Between backends of different slots, threads and contexts; and the bytes are the same from each. */
static void save_and_load(void **unused) {
    (void)unused;
    static tiny_stream saved, again;
    gumbel_error error;
    gb_backend_options options = tiny_options(), other = options;
    other.slots = MOST_SLOTS - 1;
    other.max_context = LENGTH;
    other.threads = 2;
    for (size_t i = 0; i < TURNS; i++) {
        gb_backend *from = new_backend(program, &options), *to = new_backend(program, &other);
        save_at(from, 3, turns[i], &saved);
        save_at(to, 1, turns[i], &again);
        assert_int_equal(saved.size, again.size);
        assert_memory_equal(saved.bytes, again.bytes, saved.size);
        uint64_t row = 2 * TINY_KEY_HEADS * TINY_HEAD_WIDTH * sizeof(float);
        uint64_t ring_rows = turns[i] < TINY_WINDOW ? turns[i] : TINY_WINDOW;
        assert_int_equal(saved.size, row * (turns[i] + ring_rows));
        assert_ok(to->functions->load_slot(to, 0, turns[i], GB_SAVED_ALL, tiny_read, &saved, &error), &error);
        assert_int_equal(saved.position, saved.size);
        assert_continues(to, 0, 0, turns[i]);
        from->functions->destroy(from);
        to->functions->destroy(to);
    }
}

static void failures_of_streams_are_passed_on(void **unused) {
    (void)unused;
    static tiny_stream s;
    gumbel_error error;
    gb_backend_options options = tiny_options();
    gb_backend *backend = new_backend(program, &options);
    save_at(backend, 0, 20, &s);
    s.size--;
    assert_fails(backend->functions->load_slot(backend, 0, 20, GB_SAVED_ALL, tiny_read, &s, &error),
                 GUMBEL_ERROR_FORMAT, &error, "short");
    s.size = sizeof s.bytes;
    assert_fails(backend->functions->save_slot(backend, 0, 20, GB_SAVED_ALL, tiny_write, &s, &error),
                 GUMBEL_ERROR_IO, &error, "full");
    backend->functions->destroy(backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copy),
        cmocka_unit_test(snapshot),
        cmocka_unit_test(save_and_load),
        cmocka_unit_test(failures_of_streams_are_passed_on),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
