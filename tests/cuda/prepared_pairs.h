/* SPDX-License-Identifier: Apache-2.0
 *
 * The prepared rows that a kernel's epilogue has stored.
 */
#ifndef GUMBEL_TESTS_CUDA_PREPARED_PAIRS_H
#define GUMBEL_TESTS_CUDA_PREPARED_PAIRS_H

#include "cuda/device_memory.h"
#include "tensor/convert.h"

/* Fails unless the pairs on the device are those of the rows [count, width] rounded to bfloat16. */
static inline void check_prepared(const void *prepared, const float *rows, size_t count, size_t width) {
    const size_t units = (width + 31) / 32;
    uint32_t *words = malloc(count * units * 64);
    assert_non_null(words);
    assert_cuda(cudaMemcpy(words, prepared, count * units * 64, cudaMemcpyDeviceToHost));
    for (size_t row = 0; row < count; row++)
        for (size_t w = 0; w < units * 16; w++) {
            const size_t first = w / 4 * 8 + w % 4, second = first + 4;
            const float *x = rows + row * width;
            const uint32_t low = first < width ? gb_bf16_from_float(x[first]) : 0;
            const uint32_t high = second < width ? gb_bf16_from_float(x[second]) : 0;
            assert_int_equal(words[row * units * 16 + w], low | high << 16);
        }
    free(words);
}

#endif
