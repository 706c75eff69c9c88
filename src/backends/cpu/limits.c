/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/limits.h"

#include "base/clock.h"
#include "base/memory.h"

#include <string.h>
#include <sys/mman.h>

enum {
    LARGE_PAGE = 2 << 20,
    READ_BYTES = 512 << 20, /* far more than caches hold */
    READ_TRIES = 8,
    PEAK_TRIES = 4,
    PEAK_ROUNDS = 1 << 18, /* some milliseconds */
    READ_UNIT = 256
};

typedef struct probe {
    unsigned thread_count;
    uint8_t *memory; /* [READ_BYTES] */
    const gb_vector_kernels *vector;
    struct result {
        uint64_t products;
        uint32_t sum; /* keeps the compiler from leaving the work out */
    } * results;      /* [thread_count] */
} probe;

/* The thread's part of the memory. */
static uint8_t *part_of(const probe *p, unsigned index, size_t *bytes) {
    *bytes = READ_BYTES / p->thread_count / READ_UNIT * READ_UNIT;
    return p->memory + index * *bytes;
}

/* By the thread that will read it, so that the system gives it memory close to that. */
static void fill_part(void *user, unsigned index) {
    size_t bytes;
    uint8_t *part = part_of(user, index, &bytes);
    memset(part, 1, bytes);
}

static void read_part(void *user, unsigned index) {
    probe *p = user;
    size_t bytes;
    const uint8_t *part = part_of(p, index, &bytes);
    p->results[index].sum = p->vector->read(part, bytes);
}

static void multiply(void *user, unsigned index) {
    probe *p = user;
    uint8_t codes[128];
    memset(codes, 1, sizeof codes);
    p->results[index].sum = p->vector->peak(codes, PEAK_ROUNDS, &p->results[index].products);
}

static double seconds_of(gb_team *team, gb_team_work work, probe *p) {
    double begin = gb_seconds();
    gb_team_run(team, work, p);
    return gb_seconds() - begin;
}

/* Large pages, as programs and caches have where the system has any. */
static void fill_memory(gb_team *team, probe *p) {
#if defined(MADV_HUGEPAGE)
    madvise(p->memory, READ_BYTES, MADV_HUGEPAGE);
#endif
    gb_team_run(team, fill_part, p);
}

static double measure_reading(gb_team *team, probe *p) {
    size_t bytes;
    part_of(p, 0, &bytes);
    fill_memory(team, p);
    seconds_of(team, read_part, p); /* the first time the threads may still have to wake up */
    double seconds = 0;
    for (size_t i = 0; i < READ_TRIES; i++)
        seconds += seconds_of(team, read_part, p);
    return (double)bytes * p->thread_count * (double)READ_TRIES / seconds;
}

static double measure_products(gb_team *team, probe *p) {
    double best = 0;
    for (size_t i = 0; i < PEAK_TRIES; i++) {
        double seconds = seconds_of(team, multiply, p);
        double rate = (double)p->results[0].products * p->thread_count / seconds;
        best = rate > best ? rate : best;
    }
    return best;
}

gumbel_status gb_measure_limits(gb_team *team, unsigned thread_count, const gb_vector_kernels *vector,
                                gumbel_machine_limits *limits, gumbel_error *error) {
    probe p = {.thread_count = thread_count, .vector = vector};
    uint8_t *block = gb_allocate(READ_BYTES + LARGE_PAGE, 1); /* whose pages nobody has touched yet */
    p.memory = block ? block + (LARGE_PAGE - (uintptr_t)block % LARGE_PAGE) : NULL;
    p.results = gb_allocate_aligned(thread_count, sizeof *p.results);
    gumbel_status status = GUMBEL_OK;
    if (p.memory && p.results) {
        limits->read_bytes_per_second = measure_reading(team, &p);
        limits->int8_products_per_second = measure_products(team, &p);
    } else {
        status = gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory to measure how fast it is read: %d MB",
                         READ_BYTES >> 20);
    }
    gb_free(p.results);
    gb_free(block);
    return status;
}
