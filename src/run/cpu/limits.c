/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/limits.h"

#include "base/memory.h"
#include "run/cpu/int8_peak.h"

#include <string.h>
#include <time.h>

enum {
    LINE = 64,
    READ_BYTES = 512 << 20, /* far more than caches hold */
    READ_TRIES = 8,
    PEAK_TRIES = 4,
    PEAK_ROUNDS = 1 << 20, /* some milliseconds */
    STREAMS = 4
};

typedef uint64_t line __attribute__((vector_size(LINE)));

typedef struct probe {
    unsigned thread_count;
    line *memory; /* [READ_BYTES / LINE] */
    size_t streams;
    gb_int8_loop multiply;
    struct result {
        line sum;
        uint64_t products;
        uint32_t product_sum;
    } * results; /* [thread_count] */
} probe;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The thread's part of the memory. */
static line *part_of(const probe *p, unsigned index, size_t *lines) {
    *lines = READ_BYTES / LINE / p->thread_count / STREAMS * STREAMS;
    return p->memory + index * *lines;
}

/* By the thread that will read it, so that the system gives it memory close to that. */
static void fill_part(void *user, unsigned index) {
    probe *p = user;
    size_t lines;
    line *part = part_of(p, index, &lines);
    memset(part, 1, lines * LINE);
}

/* Adds up all words, from one end to the other or from several places at once. */
static void read_part(void *user, unsigned index) {
    probe *p = user;
    size_t lines;
    const line *part = part_of(p, index, &lines);
    size_t next = p->streams == 1 ? 1 : lines / STREAMS, step = p->streams == 1 ? STREAMS : 1;
    line sums[STREAMS] = {0};
    for (size_t i = 0; i < lines / STREAMS; i++)
        for (size_t s = 0; s < STREAMS; s++)
            sums[s] += part[i * step + s * next];
    p->results[index].sum = sums[0] + sums[1] + sums[2] + sums[3];
}

static void multiply(void *user, unsigned index) {
    probe *p = user;
    p->results[index].product_sum = p->multiply(PEAK_ROUNDS, &p->results[index].products);
}

static double seconds_of(gb_team *team, gb_team_work work, probe *p) {
    double begin = now();
    gb_team_run(team, work, p);
    return now() - begin;
}

static double measure_reading(gb_team *team, probe *p) {
    size_t lines;
    part_of(p, 0, &lines);
    double bytes = (double)lines * LINE * p->thread_count, best = 0;
    gb_team_run(team, fill_part, p);
    for (size_t i = 0; i < READ_TRIES; i++) {
        p->streams = i % 2 ? STREAMS : 1;
        double rate = bytes / seconds_of(team, read_part, p);
        best = rate > best ? rate : best;
    }
    return best;
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

gumbel_status gb_measure_limits(gb_team *team, unsigned thread_count, const char *instruction_set,
                                gumbel_machine_limits *limits, gumbel_error *error) {
    probe p = {.thread_count = thread_count, .multiply = gb_int8_peak_loop(instruction_set)};
    uint8_t *block = gb_allocate(READ_BYTES + LINE, 1); /* whose pages nobody has touched yet */
    p.memory = block ? (line *)(void *)(block + (LINE - (uintptr_t)block % LINE)) : NULL;
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
