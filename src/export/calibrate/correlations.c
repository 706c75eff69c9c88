/* SPDX-License-Identifier: Apache-2.0 */
#include "export/calibrate/correlations.h"

#include "base/memory.h"
#include "export/parallel.h"

#include <string.h>

/* A block of the sums. */
typedef struct block {
    uint64_t begin, size; /* columns */
    float *sums;
} block;

static uint64_t count_blocks(const gb_correlations *c) {
    return (c->columns + c->block - 1) / c->block;
}

static block block_of(const gb_correlations *c, uint64_t index) {
    const uint64_t begin = index * c->block, left = c->columns - begin;
    return (block){begin, left < c->block ? left : c->block, c->sums + index * c->block * c->block};
}

bool gb_correlations_create(uint64_t columns, uint64_t size, gb_correlations *correlations) {
    *correlations = (gb_correlations){.columns = columns, .block = size};
    const uint64_t count = gb_block_squares(columns, size);
    correlations->sums = gb_allocate((size_t)count, sizeof *correlations->sums);
    if (correlations->sums)
        memset(correlations->sums, 0, (size_t)count * sizeof *correlations->sums);
    return correlations->sums != NULL;
}

void gb_correlations_free(gb_correlations *correlations) {
    gb_free(correlations->sums);
    correlations->sums = NULL;
}

uint64_t gb_correlations_bytes(const gb_correlations *correlations) {
    return gb_block_squares(correlations->columns, correlations->block) * sizeof *correlations->sums;
}

/* ---- Halving ------------------------------------------------------------------------------------------- */

/* Moves rows of `size` sums down to where they then stand. */
static void move_square(const float *from, uint64_t from_stride, uint64_t size, float *to) {
    for (uint64_t i = 0; i < size; i++)
        memmove(to + i * size, from + i * from_stride, (size_t)size * sizeof *to);
}

/* Each square goes to a place at or before its own, the earlier ones first, so that none is overwritten. */
void gb_correlations_halve(gb_correlations *c) {
    const uint64_t half = c->block / 2, blocks = count_blocks(c);
    float *to = c->sums;
    for (uint64_t b = 0; b < blocks; b++) {
        const block whole = block_of(c, b);
        const uint64_t first = whole.size < half ? whole.size : half, second = whole.size - first;
        move_square(whole.sums, whole.size, first, to);
        to += first * first;
        move_square(whole.sums + first * whole.size + first, whole.size, second, to);
        to += second * second;
    }
    c->block = half;
    float *smaller = gb_reallocate(c->sums, (size_t)gb_block_squares(c->columns, half), sizeof *smaller);
    c->sums = smaller ? smaller : c->sums;
}

/* ---- Adding -------------------------------------------------------------------------------------------- */

enum { ROWS_AT_ONCE = 4 };

/* Adds the products of input i with those from it on, of four rows; one after the other in each sum. */
static void add_rows(const float *rows, uint64_t columns, uint64_t i, uint64_t size, float *sums) {
    const float *r0 = rows, *r1 = r0 + columns, *r2 = r1 + columns, *r3 = r2 + columns;
    const float x0 = r0[i], x1 = r1[i], x2 = r2[i], x3 = r3[i];
    for (uint64_t j = i; j < size; j++) {
        float sum = sums[j] + x0 * r0[j];
        sum += x1 * r1[j];
        sum += x2 * r2[j];
        sums[j] = sum + x3 * r3[j];
    }
}

static void add_row(const float *row, uint64_t i, uint64_t size, float *sums) {
    for (uint64_t j = i; j < size; j++)
        sums[j] += row[i] * row[j];
}

static void add_block(const block *b, const float *rows, uint64_t columns, uint64_t count, unsigned thread,
                      unsigned threads) {
    const float *from = rows + b->begin;
    for (uint64_t i = thread; i < b->size; i += threads) {
        uint64_t row = 0;
        for (; row + ROWS_AT_ONCE <= count; row += ROWS_AT_ONCE)
            add_rows(from + row * columns, columns, i, b->size, b->sums + i * b->size);
        for (; row < count; row++)
            add_row(from + row * columns, i, b->size, b->sums + i * b->size);
    }
}

void gb_correlations_add(gb_correlations *c, const float *rows, uint64_t count, unsigned thread,
                         unsigned threads) {
    for (uint64_t index = 0; index < count_blocks(c); index++) {
        const block b = block_of(c, index);
        add_block(&b, rows, c->columns, count, thread, threads);
    }
}

/* ---- Products ------------------------------------------------------------------------------------------ */

/* In lanes that vector units can add side by side. */
static double dot(const float *a, const float *b, uint64_t count) {
    enum { LANES = 16 };
    float lanes[LANES] = {0};
    double sum = 0;
    uint64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (uint64_t lane = 0; lane < LANES; lane++)
            lanes[lane] += a[i + lane] * b[i + lane];
    for (; i < count; i++)
        sum += (double)(a[i] * b[i]);
    for (uint64_t lane = 0; lane < LANES; lane++)
        sum += (double)lanes[lane];
    return sum;
}

double gb_correlations_power(const gb_correlations *c, const float *weights) {
    double power = 0;
    for (uint64_t index = 0; index < count_blocks(c); index++) {
        const block b = block_of(c, index);
        const float *w = weights + b.begin;
        for (uint64_t i = 0; i < b.size; i++) {
            const float *sums = b.sums + i * b.size;
            const double others = dot(sums + i + 1, w + i + 1, b.size - i - 1);
            power += (double)w[i] * ((double)sums[i] * (double)w[i] + 2 * others);
        }
    }
    return power;
}

/* ---- Feedback ------------------------------------------------------------------------------------------ */

/* A copy of a block with both triangles, so that rows can be rotated as they stand. */
static void fill_triangles(const block *from, float *to) {
    for (uint64_t i = 0; i < from->size; i++)
        for (uint64_t j = i; j < from->size; j++)
            to[i * from->size + j] = to[j * from->size + i] = from->sums[i * from->size + j];
}

static void transpose(float *square, uint64_t size) {
    for (uint64_t i = 0; i < size; i++)
        for (uint64_t j = i + 1; j < size; j++) {
            const float kept = square[i * size + j];
            square[i * size + j] = square[j * size + i];
            square[j * size + i] = kept;
        }
}

typedef struct rotate_work {
    const gb_correlations *from;
    float *to;
    uint32_t rotation;
} rotate_work;

/* R H R^T, of the symmetric H: rows, and then, transposed, the others. */
static void rotate_blocks(void *user, unsigned thread, size_t first, size_t end) {
    const rotate_work *work = user;
    (void)thread;
    for (size_t index = first; index < end; index++) {
        const block b = block_of(work->from, index);
        float *to = work->to + (b.sums - work->from->sums);
        fill_triangles(&b, to);
        for (int side = 0; side < 2 && work->rotation > 0; side++) {
            for (uint64_t i = 0; i < b.size; i++)
                gb_rotate_row(to + i * b.size, b.size, work->rotation);
            transpose(to, b.size);
        }
    }
}

bool gb_correlations_feedback(const gb_correlations *correlations, uint32_t rotation, unsigned threads,
                              gb_feedback *feedback) {
    const uint64_t count = gb_block_squares(correlations->columns, correlations->block);
    rotate_work work = {correlations, gb_allocate((size_t)count, sizeof *work.to), rotation};
    *feedback = (gb_feedback){0};
    if (!work.to)
        return false;
    gb_parallel_for(threads, (size_t)count_blocks(correlations), rotate_blocks, &work);
    const bool is_made =
        gb_feedback_create(work.to, correlations->columns, correlations->block, threads, feedback);
    gb_free(work.to);
    return is_made;
}
