/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of slots that is mapped as it is used: what is mapped keeps its bytes and addresses, what is not
 * takes nothing, and empty slots give theirs to others.
 */
#include "backends/cuda/runtime/slots.h"
#include "backends/cuda/runtime/virtual_range.h"
#include "device_memory.h"
#include "run/handles.h"
#include "support/assertions.h"
#include "support/programs/random_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SLOTS = 3, PAGES = 6 };

static gumbel_error error;

static size_t free_bytes(void) {
    size_t left, all;
    assert_int_equal(cudaMemGetInfo(&left, &all), cudaSuccess);
    return left;
}

/* A range of some pages a slot; it says how large they are. */
static gb_cuda_virtual_range new_region(void) {
    gb_cuda_virtual_range range;
    assert_ok(gb_cuda_virtual_range_create(1, 1, "a test", &range, &error), &error);
    const uint64_t page = range.page_bytes;
    gb_cuda_virtual_range_destroy(&range);
    assert_ok(gb_cuda_virtual_range_create(SLOTS, (page ? page : 4096) * PAGES - 5, "a test", &range, &error),
              &error);
    return range;
}

static void fill(const gb_cuda_virtual_range *range, uint32_t slot, uint64_t offset, uint64_t size,
                 int value) {
    uint8_t *at = range->memory + slot * range->slot_bytes + offset;
    assert_int_equal(cudaMemsetAsync(at, value, (size_t)size, NULL), cudaSuccess);
}

static void assert_filled(const gb_cuda_virtual_range *range, uint32_t slot, uint64_t offset, int value) {
    uint8_t found;
    const uint8_t *at = range->memory + slot * range->slot_bytes + offset;
    assert_int_equal(cudaMemcpy(&found, at, 1, cudaMemcpyDeviceToHost), cudaSuccess);
    assert_int_equal(found, value);
}

static void memory_comes_with_mapping(void **unused) {
    (void)unused;
    gb_cuda_virtual_range range = new_region();
    const uint64_t page = range.page_bytes;
    if (page == 0)
        skip();
    const uint8_t *memory = range.memory;
    assert_int_equal(range.slot_bytes, PAGES * page);
    assert_int_equal(range.used_bytes, 0);
    assert_ok(gb_cuda_virtual_range_map(&range, 1, 0, 1, "a test", &error), &error);
    assert_int_equal(range.used_bytes, page);
    fill(&range, 1, 0, page, 7);
    assert_ok(gb_cuda_virtual_range_map(&range, 1, page - 1, 2 * page, "a test", &error), &error);
    assert_int_equal(range.used_bytes, 3 * page);
    fill(&range, 1, page, 2 * page, 8);
    assert_ok(gb_cuda_virtual_range_map(&range, 1, 5 * page, page, "a test", &error), &error);
    assert_ok(gb_cuda_virtual_range_map(&range, 1, 0, 6 * page, "a test", &error), &error);
    assert_ok(gb_cuda_virtual_range_map(&range, 2, 0, 6 * page, "a test", &error), &error);
    assert_int_equal(range.used_bytes, 12 * page);
    fill(&range, 1, 3 * page, 3 * page, 9);
    fill(&range, 2, 0, 6 * page, 10);
    assert_ptr_equal(range.memory, memory);
    for (uint64_t i = 0; i < PAGES; i++)
        assert_filled(&range, 1, i * page + 3, i < 1 ? 7 : i < 3 ? 8 : 9);
    gb_cuda_virtual_range_unmap(&range, 1);
    assert_int_equal(range.used_bytes, 6 * page);
    assert_filled(&range, 2, 6 * page - 1, 10);
    assert_ok(gb_cuda_virtual_range_map(&range, 1, 2 * page, page, "a test", &error), &error);
    gb_cuda_virtual_range_destroy(&range);
}

static void memory_goes_with_the_range(void **unused) {
    (void)unused;
    const size_t before = free_bytes();
    for (int i = 0; i < 3; i++) {
        gb_cuda_virtual_range range = new_region();
        for (uint32_t slot = 0; slot < SLOTS; slot++)
            assert_ok(gb_cuda_virtual_range_map(&range, slot, 0, range.slot_bytes, "a test", &error), &error);
        assert_int_equal(range.used_bytes, SLOTS * range.slot_bytes);
        assert_true(free_bytes() < before);
        gb_cuda_virtual_range_destroy(&range);
        assert_int_equal(free_bytes(), before);
    }
}

#if defined(GUMBEL_EMULATED_DEVICE)

static void without_virtual_memory_all_is_there(void **unused) {
    (void)unused;
    const size_t before = free_bytes();
    emulated_driver_has_no_memory = true;
    gb_cuda_virtual_range range = new_region();
    assert_int_equal(range.page_bytes, 0);
    assert_int_equal(before - free_bytes(), SLOTS * range.slot_bytes);
    assert_ok(gb_cuda_virtual_range_map(&range, 2, 0, range.slot_bytes, "a test", &error), &error);
    fill(&range, 2, 0, range.slot_bytes, 3);
    gb_cuda_virtual_range_unmap(&range, 2);
    assert_filled(&range, 2, 0, 3);
    gb_cuda_virtual_range_destroy(&range);
    emulated_driver_has_no_memory = false;
    assert_int_equal(free_bytes(), before);
}

/* So much memory is left, and no more. */
static void leave(size_t bytes) {
    emulated_memory_bytes -= free_bytes() - bytes;
}

/* As steps up to that position do. */
static void write_states(const gb_cuda_slots *slots, uint32_t slot, uint32_t position) {
    for (uint32_t i = 0; i < slots->states.count; i++) {
        const gb_state_place *place = &slots->states.places[i];
        slots->states.clear(slots->states.user, gb_state_memory(&slots->states, place, slot),
                            gb_state_used_bytes(place, position));
    }
}

static void slots_without_memory_take_that_of_empty_ones(void **unused) {
    (void)unused;
    const size_t all = emulated_memory_bytes;
    gumbel_program *program = open_random_program("small.json", false);
    const gb_backend_options options = {.slots = SLOTS, .max_context = 128, .snapshots = true};
    gb_cuda_slots slots;
    cudaStream_t stream;
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    assert_ok(gb_cuda_slots_create(program->program, &options, stream, &slots, &error), &error);
    assert_int_equal(slots.caches.used_bytes, 0);
    assert_ok(gb_cuda_slots_map(&slots, 0, 100, &error), &error);
    const uint64_t of_slot = slots.caches.used_bytes;
    assert_true(of_slot > 0);
    leave(0);
    assert_fails(gb_cuda_slots_map(&slots, 1, 50, &error), GUMBEL_ERROR_MEMORY, &error,
                 "the caches of slot 1 up to position 256 (see --max-context)");
    gb_cuda_slots_reset(&slots, 0);
    assert_ok(gb_cuda_slots_map(&slots, 1, 50, &error), &error);
    assert_int_equal(slots.caches.used_bytes, of_slot);
    write_states(&slots, 1, 50);
    assert_fails(gb_cuda_slots_take_snapshot(&slots, 1, 50, &error), GUMBEL_ERROR_MEMORY, &error,
                 "the snapshot of slot 1");
    assert_fails(gb_cuda_slots_copy(&slots, 1, 2, 50, &error), GUMBEL_ERROR_MEMORY, &error, "slot 2");
    leave(of_slot);
    assert_ok(gb_cuda_slots_copy(&slots, 1, 2, 50, &error), &error);
    gb_cuda_slots_destroy(&slots);
    cudaStreamDestroy(stream);
    gumbel_program_close(program);
    emulated_memory_bytes = all;
}

/* A session that gets no memory for its next step is where it was, and goes on when there is some. */
static void steps_without_memory_move_nobody(void **unused) {
    (void)unused;
    const size_t all = emulated_memory_bytes;
    gumbel_program *program = open_random_program("small.json", false);
    gumbel_engine *engine;
    gumbel_session *first, *second;
    const gumbel_engine_options options = {.size = sizeof options, .backend = "cuda", .slots = 2};
    const int32_t prompt[] = {3, 4, 5};
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &first, &error), &error);
    assert_ok(gumbel_session_create(engine, &second, &error), &error);
    assert_ok(gumbel_session_append(first, prompt, 3, &error), &error);
    leave(0);
    assert_fails(gumbel_session_append(second, prompt, 3, &error), GUMBEL_ERROR_MEMORY, &error, "slot 1");
    assert_int_equal(gumbel_session_position(second, NULL), 0);
    gumbel_session *copy = first;
    assert_ok(gumbel_session_append(first, prompt, 3, &error), &error);
    gumbel_session_destroy(second);
    assert_fails(gumbel_session_fork(first, &copy, &error), GUMBEL_ERROR_MEMORY, &error, "slot 1");
    assert_null(copy);
    gumbel_session_destroy(first);
    assert_ok(gumbel_session_create(engine, &first, &error), &error);
    assert_ok(gumbel_session_append(first, prompt, 3, &error), &error);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
    emulated_memory_bytes = all;
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_comes_with_mapping),
        cmocka_unit_test(memory_goes_with_the_range),
#if defined(GUMBEL_EMULATED_DEVICE)
        cmocka_unit_test(without_virtual_memory_all_is_there),
        cmocka_unit_test(slots_without_memory_take_that_of_empty_ones),
        cmocka_unit_test(steps_without_memory_move_nobody),
#endif
    };
    need_device();
    assert_cuda(cudaSetDevice(0));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
