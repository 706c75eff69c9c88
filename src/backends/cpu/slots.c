/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/slots.h"

#include "base/memory.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNMENT = 64 };

#if !defined(MAP_ANONYMOUS)
#define MAP_ANONYMOUS MAP_ANON
#endif
#if !defined(MAP_NORESERVE)
#define MAP_NORESERVE 0
#endif

/* ---- Reserving ----------------------------------------------------------------------------------------- */

static gumbel_status reserve(uint64_t slot_count, gb_slot_area *area, gumbel_error *error) {
    uint64_t size;
    if (!gb_multiply_size(slot_count, area->stride, &size) || size > SIZE_MAX / 2)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%llu slots of %llu bytes are more than there can be",
                       (unsigned long long)slot_count, (unsigned long long)area->stride);
    if (size == 0)
        return GUMBEL_OK;
    void *mapped =
        mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return gb_fail(error, GUMBEL_ERROR_MEMORY,
                       "no memory for the caches of %llu slots, %llu bytes each (see --max-context)",
                       (unsigned long long)slot_count, (unsigned long long)area->stride);
#if defined(MADV_HUGEPAGE) /* attention reads a few rows of each small page: it would wait for page tables   \
                            */
    madvise(mapped, (size_t)size, MADV_HUGEPAGE);
#endif
    area->memory = mapped;
    return GUMBEL_OK;
}

static gumbel_status place_states(const gb_program *program, uint32_t max_context, gb_states *states,
                                  gumbel_error *error) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t bytes;
    GB_TRY(gb_states_place(program, max_context, ALIGNMENT, states, error));
    if (!gb_add_size(states->caches.bytes, states->recurrent.bytes, &bytes) || bytes > INT64_MAX ||
        !gb_align_size(bytes, page, &states->caches.stride) ||
        !gb_align_size(states->snapshots.bytes, page, &states->snapshots.stride))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the states of one slot are out of range");
    states->recurrent.stride = states->caches.stride;
    return GUMBEL_OK;
}

static void copy_bytes(void *unused, void *to, const void *from, size_t size) {
    (void)unused;
    memcpy(to, from, size);
}

static void clear_bytes(void *unused, void *at, size_t size) {
    (void)unused;
    memset(at, 0, size);
}

gumbel_status gb_slots_create(const gb_program *program, uint32_t slot_count, uint32_t max_context,
                              bool snapshots, gb_slots *slots, gumbel_error *error) {
    gb_states *states = &slots->states;
    *slots = (gb_slots){.slot_count = slot_count, .states = {.copy = copy_bytes, .clear = clear_bytes}};
    states->places = gb_allocate(program->state_count, sizeof *states->places);
    if (!states->places)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the list of states");
    gumbel_status status = place_states(program, max_context, states, error);
    if (status == GUMBEL_OK)
        status = reserve(slot_count, &states->caches, error);
    if (status == GUMBEL_OK && snapshots)
        status = reserve(slot_count, &states->snapshots, error);
    if (status != GUMBEL_OK)
        gb_slots_destroy(slots);
    else if (states->caches.memory)
        states->recurrent.memory = states->caches.memory + states->caches.bytes;
    return status;
}

static void release(uint64_t slot_count, const gb_slot_area *area) {
    if (area->memory)
        munmap(area->memory, (size_t)(slot_count * area->stride));
}

void gb_slots_destroy(gb_slots *slots) {
    release(slots->slot_count, &slots->states.caches);
    release(slots->slot_count, &slots->states.snapshots);
    gb_free(slots->states.places);
    *slots = (gb_slots){0};
}

/* ---- Emptying ------------------------------------------------------------------------------------------ */

/* Gives the memory back to the system, which makes it zero on Linux; elsewhere only a recurrent state has to
 * be made so, since nothing reads a cache's row before it is written. */
void gb_slots_reset(gb_slots *slots, uint32_t slot) {
    const gb_slot_area *caches = &slots->states.caches, *recurrent = &slots->states.recurrent;
    if (!caches->memory)
        return;
    madvise(gb_slot_part(caches, slot), (size_t)caches->stride, MADV_DONTNEED);
    memset(gb_slot_part(recurrent, slot), 0, (size_t)recurrent->bytes);
}
