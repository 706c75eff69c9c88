/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/sampler/scan.h"

#include "backends/sampler/rule.h"

#include <stddef.h>
#include <string.h>

static inline float larger(float a, float b) {
    return a > b ? a : b;
}

/* Folds a whole block onto a few columns: elementwise loops of fixed length, which compilers vectorize
 * without being allowed to reorder anything. One comparison finds a NaN in either of two values. Where
 * another core wrote the row its lines take long to come: they are prefetched. */
static float full_block_max(const float *x, bool *has_nan) {
    enum { COLUMNS = GB_BLOCK / 8, LINE = 16, AHEAD = 8192 };
    float max[COLUMNS];
    uint32_t unordered = 0;
    for (size_t i = 0; i < GB_BLOCK; i += LINE)
        __builtin_prefetch((const void *)((uintptr_t)(x + i) + AHEAD));
    for (size_t i = 0; i < COLUMNS; i++) {
        const float *column = x + i;
        const float a = column[0], b = column[COLUMNS], c = column[2 * COLUMNS], d = column[3 * COLUMNS];
        const float e = column[4 * COLUMNS], f = column[5 * COLUMNS];
        const float g = column[6 * COLUMNS], h = column[7 * COLUMNS];
        max[i] = larger(larger(larger(a, b), larger(c, d)), larger(larger(e, f), larger(g, h)));
        unordered |= (uint32_t)(__builtin_isunordered(a, b) | __builtin_isunordered(c, d) |
                                __builtin_isunordered(e, f) | __builtin_isunordered(g, h));
    }
    for (size_t i = 0; i < 16; i++)
        max[i] = larger(max[i], max[i + 16]);
    for (size_t i = 0; i < 8; i++)
        max[i] = larger(max[i], max[i + 8]);
    for (size_t i = 0; i < 4; i++)
        max[i] = larger(max[i], max[i + 4]);
    *has_nan |= unordered != 0;
    return larger(larger(max[0], max[1]), larger(max[2], max[3]));
}

float gb_block_max(const float *x, uint32_t count, bool *has_nan) {
    if (count == GB_BLOCK)
        return full_block_max(x, has_nan);
    float padded[GB_BLOCK];
    memcpy(padded, x, count * sizeof *x);
    for (size_t i = count; i < GB_BLOCK; i++)
        padded[i] = gb_negative_infinity();
    return full_block_max(padded, has_nan);
}

uint32_t gb_find_from(const float *x, uint32_t count, float bound, uint32_t limit, uint32_t *indices) {
    enum { STEP = 32 };
    uint32_t found = 0;
    for (uint32_t begin = 0; begin < count && found < limit; begin += STEP) {
        const uint32_t end = count - begin < STEP ? count : begin + STEP;
        /* Mostly there is none, which a vectorized loop sees at once. */
        uint32_t any = end - begin < STEP;
        if (end - begin == STEP) {
            for (size_t i = 0; i < STEP; i++)
                any |= x[begin + i] >= bound;
        }
        for (uint32_t i = begin; any != 0 && i < end; i++) {
            indices[found] = i;
            found += x[i] >= bound;
        }
    }
    return found;
}

uint32_t gb_first_equal(const float *x, float value) {
    uint32_t i = 0;
    while (x[i] != value)
        i++;
    return i;
}
