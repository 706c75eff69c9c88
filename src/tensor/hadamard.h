/* SPDX-License-Identifier: Apache-2.0
 *
 * The Walsh-Hadamard transform, in natural order. Divided by the square root of its size it is orthonormal
 * and its own inverse: it spreads an outlier over a whole block and leaves products of two transformed rows
 * as they were.
 */
#ifndef GUMBEL_TENSOR_HADAMARD_H
#define GUMBEL_TENSOR_HADAMARD_H

#include "base/anywhere.h"

#include <stddef.h>
#include <stdint.h>

/* Transforms a block of `size` values, a power of two, in place and without the division. For h = 1, 2, 4 ..
 * size / 2 each pair (i, i + h), of the i whose bit h is clear, becomes its sum and its difference, each
 * rounded to float32. This is the definition. */
static inline void gb_hadamard(float *block, size_t size) {
    for (size_t h = 1; h < size; h *= 2)
        for (size_t first = 0; first < size; first += 2 * h)
            for (size_t i = first; i < first + h; i++) {
                const float a = block[i], c = block[i + h];
                block[i] = a + c;
                block[i + h] = a - c;
            }
}

/* 1 / sqrt(size) rounded to float32; size is a power of two. */
GB_ANYWHERE float gb_hadamard_scale(size_t size) {
    float scale = 1;
    for (; size >= 4; size /= 4)
        scale *= 0.5f;
    return size == 2 ? scale * 0x1.6a09e6p-1f : scale;
}

#endif
