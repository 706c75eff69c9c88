/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a program's states lie in slots, and what of them is copied, kept, saved and loaded at a position.
 */
#include "backends/states/states.h"
#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { CACHE, RING, RECURRENT, STATES };
enum { CACHE_ROWS = 8, RING_ROWS = 6, WINDOW = 4, ALIGNMENT = 16, SLOTS = 2, MOST_BYTES = 512 };

static gumbel_error error;

/* Rows of 12, 4 and, of the recurrent state, 20 bytes. */
static gb_state program_states[STATES];
static const gb_program program = {.states = program_states, .state_count = STATES};

static int make_program(void **unused) {
    (void)unused;
    program_states[CACHE] =
        (gb_state){.kind = GB_STATE_CACHE, .type = {GB_F32, {2, {CACHE_ROWS, 3}}}, .window = 0};
    program_states[RING] =
        (gb_state){.kind = GB_STATE_RING, .type = {GB_I32, {1, {RING_ROWS}}}, .window = WINDOW};
    program_states[RECURRENT] = (gb_state){.kind = GB_STATE_RECURRENT, .type = {GB_F32, {1, {5}}}};
    return 0;
}

/* ---- Slots --------------------------------------------------------------------------------------------- */

typedef struct slots {
    gb_states states;
    gb_state_place places[STATES];
    uint8_t caches[MOST_BYTES], recurrent[MOST_BYTES], snapshots[MOST_BYTES];
    size_t copied; /* bytes */
} slots;

static void copy_bytes(void *user, void *to, const void *from, size_t size) {
    ((slots *)user)->copied += size;
    memcpy(to, from, size);
}

static void clear_bytes(void *user, void *at, size_t size) {
    (void)user;
    memset(at, 0, size);
}

static void give_memory(gb_slot_area *area, uint8_t memory[MOST_BYTES]) {
    area->stride = area->bytes + ALIGNMENT;
    area->memory = memory;
    assert_true(SLOTS * area->stride <= MOST_BYTES);
}

static void make_slots(slots *s, uint32_t max_context) {
    memset(s, 0, sizeof *s);
    s->states = (gb_states){.places = s->places, .copy = copy_bytes, .clear = clear_bytes, .user = s};
    assert_ok(gb_states_place(&program, max_context, ALIGNMENT, &s->states, &error), &error);
    give_memory(&s->states.caches, s->caches);
    give_memory(&s->states.recurrent, s->recurrent);
    give_memory(&s->states.snapshots, s->snapshots);
}

static uint8_t *row_of(const slots *s, int state, uint32_t slot, uint64_t row) {
    return gb_state_memory(&s->states, &s->places[state], slot) + row * s->places[state].row_bytes;
}

/* Writes a slot's states as position tokens leave them. */
static void run_tokens(slots *s, uint32_t slot, uint32_t position) {
    for (uint32_t p = 0; p < position; p++) {
        memset(row_of(s, CACHE, slot, p), 100 + (int)p, 12);
        memset(row_of(s, RING, slot, p % s->places[RING].rows), 200 + (int)p, 4);
    }
    memset(row_of(s, RECURRENT, slot, 0), 50 + (int)position, 20);
}

static void assert_row(const slots *s, int state, uint32_t slot, uint64_t row, int value) {
    for (uint64_t i = 0; i < s->places[state].row_bytes; i++)
        assert_int_equal(row_of(s, state, slot, row)[i], value);
}

/* ---- Streams ------------------------------------------------------------------------------------------- */

typedef struct bytes {
    uint8_t data[MOST_BYTES];
    size_t count, read;
} bytes;

static gumbel_status write_bytes(void *user, const void *data, uint64_t size, gumbel_error *told) {
    bytes *to = user;
    (void)told;
    assert_true(to->count + size <= MOST_BYTES);
    memcpy(to->data + to->count, data, (size_t)size);
    to->count += (size_t)size;
    return GUMBEL_OK;
}

static gumbel_status read_bytes(void *user, void *data, uint64_t size, gumbel_error *told) {
    bytes *from = user;
    (void)told;
    assert_true(from->read + size <= from->count);
    memcpy(data, from->data + from->read, (size_t)size);
    from->read += (size_t)size;
    return GUMBEL_OK;
}

static gumbel_status refuse(void *user, const void *data, uint64_t size, gumbel_error *told) {
    (void)user, (void)data, (void)size;
    return gb_fail(told, GUMBEL_ERROR_IO, "no room");
}

/* ---- Tests --------------------------------------------------------------------------------------------- */

static void states_lie_apart(void **unused) {
    (void)unused;
    slots s;
    make_slots(&s, 5);
    const gb_state_place *cache = &s.places[CACHE], *ring = &s.places[RING],
                         *recurrent = &s.places[RECURRENT];
    assert_int_equal(s.states.count, STATES);
    assert_true(cache->kind == GB_STATE_CACHE && cache->row_bytes == 12 && cache->rows == 5);
    assert_true(ring->kind == GB_STATE_RING && ring->row_bytes == 4 && ring->rows == RING_ROWS);
    assert_true(recurrent->kind == GB_STATE_RECURRENT && recurrent->row_bytes == 20 && recurrent->rows == 1);
    assert_int_equal(ring->window, WINDOW);
    assert_true(cache->offset == 0 && ring->offset == 64 && recurrent->offset == 0);
    assert_true(ring->snapshot_offset == 0 && recurrent->snapshot_offset == 32);
    assert_int_equal(s.states.caches.bytes, 96);
    assert_int_equal(s.states.recurrent.bytes, 32);
    assert_int_equal(s.states.snapshots.bytes, 64);
    make_slots(&s, 100); /* no more rows than the program has */
    assert_int_equal(cache->rows, CACHE_ROWS);
    assert_ptr_equal(row_of(&s, RING, 1, 2), s.caches + s.states.caches.stride + 96 + 8);
    assert_ptr_equal(row_of(&s, RECURRENT, 1, 0), s.recurrent + s.states.recurrent.stride);
}

static void sizes_out_of_range(void **unused) {
    (void)unused;
    static const int64_t large[] = {INT64_MAX / 4, INT64_MAX};
    gb_state_place places[STATES];
    for (size_t i = 0; i < 2; i++) { /* with what lies before it, or by itself */
        gb_states states = {.places = places};
        program_states[RING].type.shape.dims[0] = large[i];
        assert_fails(gb_states_place(&program, 5, ALIGNMENT, &states, &error), GUMBEL_ERROR_FORMAT, &error,
                     "the states of one slot are out of range");
    }
    make_program(NULL);
}

static void bytes_used_at_a_position(void **unused) {
    (void)unused;
    slots s;
    make_slots(&s, CACHE_ROWS);
    static const size_t expected[][STATES] = {{0, 0, 20}, {36, 12, 20}, {84, 24, 20}, {96, 24, 20}};
    static const uint32_t positions[] = {0, 3, 7, 100};
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++)
        for (int state = 0; state < STATES; state++)
            assert_int_equal(gb_state_used_bytes(&s.places[state], positions[i]), expected[i][state]);
}

static void rows_are_taken_from_other_states(void **unused) {
    (void)unused;
    slots s, others;
    make_slots(&s, CACHE_ROWS);
    make_slots(&others, CACHE_ROWS);
    run_tokens(&others, 1, 5);
    gb_states_take_rows(&s.states, 0, CACHE, &others.states,
                        &(gb_rows_of_slot){.slot = 1, .state = CACHE, .first = 1, .end = 4});
    for (uint32_t row = 0; row < 5; row++)
        assert_row(&s, CACHE, 0, row, row >= 1 && row < 4 ? 100 + (int)row : 0);
}

static void slots_are_copied_up_to_a_position(void **unused) {
    (void)unused;
    slots s;
    make_slots(&s, CACHE_ROWS);
    run_tokens(&s, 0, 5);
    gb_states_copy(&s.states, 0, 0, 5);
    assert_int_equal(s.copied, 0);
    gb_states_copy(&s.states, 0, 1, 3);
    assert_int_equal(s.copied, 36 + 12 + 20);
    for (uint32_t row = 0; row < 5; row++) {
        assert_row(&s, CACHE, 1, row, row < 3 ? 100 + (int)row : 0);
        assert_row(&s, RING, 1, row, row < 3 ? 200 + (int)row : 0);
    }
    assert_row(&s, RECURRENT, 1, 0, 55);
}

static void snapshots_leave_caches_alone(void **unused) {
    (void)unused;
    slots s;
    make_slots(&s, CACHE_ROWS);
    run_tokens(&s, 1, 4);
    gb_states_take_snapshot(&s.states, 1, 4);
    assert_int_equal(s.copied, 16 + 20);
    run_tokens(&s, 1, CACHE_ROWS);
    assert_row(&s, RING, 1, 0, 206);
    gb_states_restore_snapshot(&s.states, 1, 4);
    for (uint32_t row = 0; row < 4; row++)
        assert_row(&s, RING, 1, row, 200 + (int)row);
    assert_row(&s, RECURRENT, 1, 0, 54);
    assert_row(&s, CACHE, 1, 7, 107);
    s.states.snapshots.memory = NULL;
    s.copied = 0;
    gb_states_take_snapshot(&s.states, 1, 4);
    gb_states_restore_snapshot(&s.states, 1, 4);
    assert_int_equal(s.copied, 0);
}

/* What is saved of 8 tokens: the cache's rows, the last of the ring in the order of positions, although they
 * lie around its end, and the recurrent state. */
static void saved_bytes_do_not_depend_on_capacities(void **unused) {
    (void)unused;
    slots small, large;
    bytes saved = {.count = 0}, again = {.count = 0};
    make_slots(&small, CACHE_ROWS);
    run_tokens(&small, 1, 8);
    assert_ok(gb_states_save(&small.states, 1, 8, GB_SAVED_ALL, write_bytes, &saved, &error), &error);
    assert_int_equal(saved.count, 8 * 12 + WINDOW * 4 + 20);
    for (size_t i = 0; i < saved.count; i++)
        assert_int_equal(saved.data[i], i < 96 ? 100 + i / 12 : i < 112 ? 204 + (i - 96) / 4 : 58);

    program_states[CACHE].type.shape.dims[0] = 12;
    program_states[RING].type.shape.dims[0] = 5;
    make_slots(&large, 100);
    memset(large.caches, 7, sizeof large.caches); /* of a session before */
    assert_ok(gb_states_load(&large.states, 0, 8, GB_SAVED_ALL, read_bytes, &saved, &error), &error);
    assert_int_equal(saved.read, saved.count);
    for (uint32_t p = 4; p < 8; p++)
        assert_row(&large, RING, 0, p % 5, 200 + (int)p);
    assert_row(&large, RING, 0, 3, 0); /* of position 3, which was not saved */
    assert_row(&large, CACHE, 0, 8, 7);
    assert_row(&large, CACHE, 0, 7, 107);
    assert_ok(gb_states_save(&large.states, 0, 8, GB_SAVED_ALL, write_bytes, &again, &error), &error);
    assert_int_equal(again.count, saved.count);
    assert_memory_equal(again.data, saved.data, saved.count);
    make_program(NULL);
}

/* Without caches: a snapshot, which leaves a slot's caches alone. */
static void saved_without_caches(void **unused) {
    (void)unused;
    slots s;
    bytes saved = {.count = 0};
    make_slots(&s, CACHE_ROWS);
    run_tokens(&s, 0, 6);
    assert_ok(gb_states_save(&s.states, 0, 6, GB_SAVED_WITHOUT_CACHES, write_bytes, &saved, &error), &error);
    assert_int_equal(saved.count, WINDOW * 4 + 20);
    run_tokens(&s, 1, CACHE_ROWS);
    assert_ok(gb_states_load(&s.states, 1, 6, GB_SAVED_WITHOUT_CACHES, read_bytes, &saved, &error), &error);
    assert_int_equal(saved.read, saved.count);
    assert_row(&s, CACHE, 1, 7, 107);
    assert_row(&s, RING, 1, 5, 205);
    assert_row(&s, RECURRENT, 1, 0, 56);
}

static void an_empty_slot_saves_what_is_recurrent(void **unused) {
    (void)unused;
    slots s;
    bytes saved = {.count = 0};
    make_slots(&s, CACHE_ROWS);
    assert_ok(gb_states_save(&s.states, 0, 0, GB_SAVED_ALL, write_bytes, &saved, &error), &error);
    assert_int_equal(saved.count, 20);
    assert_fails(gb_states_save(&s.states, 0, 0, GB_SAVED_ALL, refuse, NULL, &error), GUMBEL_ERROR_IO, &error,
                 "no room");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_lie_apart),
        cmocka_unit_test(sizes_out_of_range),
        cmocka_unit_test(bytes_used_at_a_position),
        cmocka_unit_test(rows_are_taken_from_other_states),
        cmocka_unit_test(slots_are_copied_up_to_a_position),
        cmocka_unit_test(snapshots_leave_caches_alone),
        cmocka_unit_test(saved_bytes_do_not_depend_on_capacities),
        cmocka_unit_test(saved_without_caches),
        cmocka_unit_test(an_empty_slot_saves_what_is_recurrent),
    };
    return cmocka_run_group_tests(tests, make_program, NULL);
}
