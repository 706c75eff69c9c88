/* SPDX-License-Identifier: Apache-2.0
 *
 * From the sums H = X^T X of a block of inputs to what error feedback needs, the rows of U over their
 * diagonal, where H^-1 = U^T U and U is upper triangular. With H = V V^T and V upper triangular, which is
 * Cholesky's factorization from the last row up, U is V^-1: H itself is never inverted.
 */
#include "base/memory.h"
#include "export/parallel.h"
#include "export/quantize/feedback.h"

#include <math.h>
#include <string.h>

enum { LANES = 8 };

/* Of the mean square of an input, what is added to each: it bounds how far few tokens are believed. */
static const double DAMPING = 0.05;

/* The sum in an order that is fixed, and that compilers make vectors of. */
static double dot(const double *a, const double *b, uint64_t count) {
    double sums[LANES] = {0}, total = 0;
    uint64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            sums[lane] += a[i + (uint64_t)lane] * b[i + (uint64_t)lane];
    for (; i < count; i++)
        sums[0] += a[i] * b[i];
    for (int lane = 0; lane < LANES; lane++)
        total += sums[lane];
    return total;
}

static double mean_square(const float *sums, uint64_t size) {
    double total = 0;
    for (uint64_t i = 0; i < size; i++)
        total += (double)sums[i * size + i];
    return total / (double)size;
}

/* V of the upper triangle of sums with damping on its diagonal; false where that is not positive. */
static bool factorize(const float *sums, uint64_t size, double damping, double *v) {
    for (uint64_t i = 0; i < size * size; i++)
        v[i] = (double)sums[i];
    for (uint64_t j = size; j-- > 0;) {
        double *row = v + j * size;
        const uint64_t after = size - j - 1;
        const double square = row[j] + damping - dot(row + j + 1, row + j + 1, after);
        if (!(square > 0))
            return false;
        row[j] = sqrt(square);
        for (uint64_t i = 0; i < j; i++) {
            double *above = v + i * size;
            above[j] = (above[j] - dot(above + j + 1, row + j + 1, after)) / row[j];
        }
    }
    return true;
}

/* Row i of V^-1 over its diagonal; left: [size] of scratch. */
static void invert_row(const double *v, uint64_t size, uint64_t i, double *left, float *spread) {
    memset(left, 0, size * sizeof *left);
    left[i] = 1;
    for (uint64_t k = i; k < size; k++) {
        const double *row = v + k * size, found = left[k] / row[k];
        for (uint64_t j = k + 1; j < size; j++)
            left[j] -= found * row[j];
        spread[i * size + k] = (float)(found * v[i * size + i]);
    }
}

static void spread_block(const float *sums, uint64_t size, double *scratch, float *spread) {
    double *v = scratch, *left = scratch + size * size;
    double damping = DAMPING * mean_square(sums, size);
    memset(spread, 0, size * size * sizeof *spread);
    if (!(damping > 0) || !isfinite(damping)) /* inputs that are always 0 have no say */
        return;
    while (!factorize(sums, size, damping, v))
        damping *= 10;
    for (uint64_t i = 0; i < size; i++)
        invert_row(v, size, i, left, spread);
}

typedef struct spread_work {
    const float *sums;
    gb_feedback *feedback;
    double *scratch; /* for each thread */
    uint64_t scratch_size;
} spread_work;

static void spread_blocks(void *user, unsigned thread, size_t first, size_t end) {
    const spread_work *work = user;
    const gb_feedback *f = work->feedback;
    for (size_t b = first; b < end; b++) {
        const uint64_t begin = b * f->block, at = b * f->block * f->block;
        const uint64_t size = f->columns - begin < f->block ? f->columns - begin : f->block;
        spread_block(work->sums + at, size, work->scratch + thread * work->scratch_size, f->spread + at);
    }
}

uint64_t gb_block_squares(uint64_t columns, uint64_t block) {
    const uint64_t whole = columns / block, left = columns % block;
    return whole * block * block + left * left;
}

bool gb_feedback_create(const float *sums, uint64_t columns, uint64_t block, unsigned threads,
                        gb_feedback *feedback) {
    const uint64_t blocks = (columns + block - 1) / block;
    const unsigned used = blocks < threads ? (unsigned)blocks : threads;
    *feedback = (gb_feedback){.columns = columns, .block = block};
    feedback->spread = gb_allocate((size_t)gb_block_squares(columns, block), sizeof *feedback->spread);
    spread_work work = {.sums = sums, .feedback = feedback, .scratch_size = block * block + block};
    work.scratch = gb_allocate((size_t)(used * work.scratch_size), sizeof *work.scratch);
    const bool is_made = feedback->spread && work.scratch;
    if (is_made)
        gb_parallel_for(used, (size_t)blocks, spread_blocks, &work);
    else
        gb_feedback_free(feedback);
    gb_free(work.scratch);
    return is_made;
}

void gb_feedback_free(gb_feedback *feedback) {
    gb_free(feedback->spread);
    feedback->spread = NULL;
}
