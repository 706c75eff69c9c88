/* SPDX-License-Identifier: Apache-2.0
 *
 * States that are copied to the host and back, through rooms and blocks that are smaller than they are: what
 * the slot computes after the call does not change the copy.
 */
#include "backends/cuda/runtime/host_copies.h"
#include "device_memory.h"
#include "support/assertions.h"

enum { SLOTS = 3, ROWS = 200, RING = 96, WINDOW = 64, ROW = 1000, RECURRENT = 150000, MOST_BYTES = 1 << 20 };

static gb_state_place places[] = {
    {.kind = GB_STATE_CACHE, .row_bytes = ROW, .rows = ROWS},
    {.kind = GB_STATE_RING, .row_bytes = ROW, .rows = RING, .window = WINDOW, .offset = ROWS * ROW},
    {.kind = GB_STATE_RECURRENT, .row_bytes = RECURRENT, .rows = 1},
};
enum { STATES = sizeof places / sizeof places[0], CACHES = (ROWS + RING) * ROW };

static gumbel_error error;
static cudaStream_t stream;
static gb_states states;
static gb_cuda_host_copies copies;

static void clear(void *user, void *at, size_t size) {
    (void)user;
    assert_cuda(cudaMemsetAsync(at, 0, size, stream));
}

/* Rooms are for slots of so many bytes. */
static void begin(uint64_t slot_bytes) {
    assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    states = (gb_states){
        .count = STATES,
        .places = places,
        .caches = {.bytes = CACHES, .stride = CACHES, .memory = device_copy(NULL, SLOTS * CACHES)},
        .recurrent = {.bytes = RECURRENT,
                      .stride = RECURRENT,
                      .memory = device_copy(NULL, SLOTS * (size_t)RECURRENT)},
        .clear = clear};
    assert_ok(gb_cuda_host_copies_create(slot_bytes, stream, &copies, &error), &error);
}

static void end(void) {
    gb_cuda_host_copies_destroy(&copies);
    assert_cuda(cudaFree(states.caches.memory));
    assert_cuda(cudaFree(states.recurrent.memory));
    assert_cuda(cudaStreamDestroy(stream));
}

/* As a step writes them, in the stream's order. */
static void fill(uint32_t slot, uint64_t seed) {
    static uint8_t bytes[CACHES + RECURRENT]; /* not pinned: it may change after the call */
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)next_random(&seed);
    assert_cuda(
        cudaMemcpyAsync(gb_slot_part(&states.caches, slot), bytes, CACHES, cudaMemcpyHostToDevice, stream));
    assert_cuda(cudaMemcpyAsync(gb_slot_part(&states.recurrent, slot), bytes + CACHES, RECURRENT,
                                cudaMemcpyHostToDevice, stream));
}

typedef struct content {
    size_t size;
    uint8_t bytes[MOST_BYTES];
} content;

static gumbel_status append(void *user, const void *data, uint64_t size, gumbel_error *told) {
    content *c = user;
    (void)told;
    assert_true(c->size + size <= MOST_BYTES);
    assert_cuda(cudaMemcpy(c->bytes + c->size, data, (size_t)size, cudaMemcpyDeviceToHost));
    c->size += (size_t)size;
    return GUMBEL_OK;
}

static void read_slot(uint32_t slot, uint32_t position, gb_saved_states saved, content *c) {
    c->size = 0;
    assert_cuda(cudaStreamSynchronize(stream));
    assert_ok(gb_states_save(&states, slot, position, saved, append, c, &error), &error);
}

static gb_host_states *copy_of(uint32_t slot, uint32_t position, gb_saved_states saved) {
    gb_host_states *made;
    assert_ok(gb_cuda_copy_to_host(&copies, &states, slot, position, saved, &made, &error), &error);
    return made;
}

static void give(uint32_t slot, uint32_t position, gb_saved_states saved, const gb_host_states *from) {
    assert_ok(gb_cuda_copy_from_host(&copies, &states, slot, position, saved, from, &error), &error);
}

static void assert_slot(uint32_t slot, uint32_t position, gb_saved_states saved, const content *expected) {
    static content found;
    read_slot(slot, position, saved, &found);
    assert_int_equal(found.size, expected->size);
    assert_memory_equal(found.bytes, expected->bytes, found.size);
}

static void what_was_there_then(void **unused) {
    (void)unused;
    static const uint32_t positions[] = {1, WINDOW, WINDOW + 1, RING, RING + 37, ROWS};
    static content expected;
    begin(1); /* the smallest rooms and blocks */
    for (size_t i = 0; i < sizeof positions / sizeof positions[0]; i++)
        for (int all = 0; all < 2; all++) {
            const gb_saved_states saved = all ? GB_SAVED_ALL : GB_SAVED_WITHOUT_CACHES;
            fill(0, i + 1);
            read_slot(0, positions[i], saved, &expected);
            gb_host_states *copy = copy_of(0, positions[i], saved);
            assert_true(copy->bytes >= expected.size &&
                        copy->bytes < expected.size + copies.blocks.block_bytes);
            fill(0, i + 100);
            give(1, positions[i], saved, copy);
            gb_host_states_release(copy);
            assert_slot(1, positions[i], saved, &expected);
        }
    end();
}

/* A snapshot leaves the rows of caches as they are. */
static void caches_stay(void **unused) {
    (void)unused;
    static content expected;
    begin(1);
    fill(0, 1);
    gb_host_states *copy = copy_of(0, 100, GB_SAVED_WITHOUT_CACHES);
    read_slot(0, 100, GB_SAVED_ALL, &expected);
    fill(0, 1);
    assert_cuda(cudaMemsetAsync(gb_slot_part(&states.recurrent, 0), 0, RECURRENT, stream));
    assert_cuda(cudaMemsetAsync(gb_slot_part(&states.caches, 0) + ROWS * ROW, 0, RING * ROW, stream));
    give(0, 100, GB_SAVED_WITHOUT_CACHES, copy);
    assert_slot(0, 100, GB_SAVED_ALL, &expected);
    gb_host_states_release(copy);
    end();
}

/* Blocks of copies that are released go to later ones, in any order, while others wait. */
static void blocks_are_used_again(void **unused) {
    (void)unused;
    enum { COPIES = 5, ROUNDS = 60 };
    static content expected[COPIES];
    gb_host_states *held[COPIES] = {NULL};
    uint32_t positions[COPIES];
    uint64_t random = 7;
    begin(1);
    for (int round = 0; round < ROUNDS; round++) {
        const uint32_t i = next_random(&random) % COPIES, slot = next_random(&random) % SLOTS;
        if (!held[i]) {
            fill(slot, random);
            positions[i] = 1 + next_random(&random) % ROWS;
            read_slot(slot, positions[i], GB_SAVED_ALL, &expected[i]);
            held[i] = copy_of(slot, positions[i], GB_SAVED_ALL);
            continue;
        }
        give(slot, positions[i], GB_SAVED_ALL, held[i]);
        gb_host_states_release(held[i]);
        held[i] = NULL;
        assert_slot(slot, positions[i], GB_SAVED_ALL, &expected[i]);
    }
    for (int i = 0; i < COPIES; i++)
        gb_host_states_release(held[i]);
    end();
}

#if defined(GUMBEL_EMULATED_DEVICE)

static size_t free_bytes(void) {
    size_t left, all;
    assert_cuda(cudaMemGetInfo(&left, &all));
    return left;
}

/* Large rooms come with large states and go when the slots need the memory; copies are then as right. */
static void rooms_give_way(void **unused) {
    (void)unused;
    enum { SLOT = 40 << 20 };
    static content expected;
    const size_t all = emulated_memory_bytes;
    begin(SLOT);
    const size_t before = free_bytes();
    fill(0, 3);
    read_slot(0, ROWS, GB_SAVED_ALL, &expected);
    copies.room_bytes = 1000; /* as if these states were large */
    gb_host_states *first = copy_of(0, ROWS, GB_SAVED_ALL);
    assert_int_equal(copies.room_bytes, SLOT);
    assert_true(free_bytes() < before);
    emulated_memory_bytes -= free_bytes();
    assert_true(gb_cuda_host_copies_shrink(&copies));
    assert_false(gb_cuda_host_copies_shrink(&copies));
    assert_true(free_bytes() > SLOT);
    gb_host_states *second = copy_of(0, ROWS, GB_SAVED_ALL);
    give(1, ROWS, GB_SAVED_ALL, first);
    give(2, ROWS, GB_SAVED_ALL, second);
    assert_slot(1, ROWS, GB_SAVED_ALL, &expected);
    assert_slot(2, ROWS, GB_SAVED_ALL, &expected);
    gb_host_states_release(first);
    gb_host_states_release(second);
    end();
    emulated_memory_bytes = all;
}

/* Where the system pins nothing, states are copied all the same. */
static void memory_that_is_not_pinned(void **unused) {
    (void)unused;
    static content expected;
    emulated_pinning_fails = true;
    begin(1);
    fill(0, 5);
    read_slot(0, ROWS, GB_SAVED_ALL, &expected);
    gb_host_states *copy = copy_of(0, ROWS, GB_SAVED_ALL);
    give(1, ROWS, GB_SAVED_ALL, copy);
    gb_host_states_release(copy);
    assert_slot(1, ROWS, GB_SAVED_ALL, &expected);
    end();
    emulated_pinning_fails = false;
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_there_then),
        cmocka_unit_test(caches_stay),
        cmocka_unit_test(blocks_are_used_again),
#if defined(GUMBEL_EMULATED_DEVICE)
        cmocka_unit_test(rooms_give_way),
        cmocka_unit_test(memory_that_is_not_pinned),
#endif
    };
    need_device();
    assert_cuda(cudaSetDevice(0));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
