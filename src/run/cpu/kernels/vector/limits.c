/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/vector/interleaved.h"

#if GB_VECTOR_LANES == 16
enum { SUMS = 8 };
#elif GB_VECTOR_LANES == 8
enum { SUMS = 4 };
#else
enum { SUMS = 2 };
#endif

enum { CODES = 4 };

/* Enough independent sums to hide how long one takes. The codes change places, so that no round is like the
 * one before. */
uint64_t GB_FOR_ISA(gb_peak)(uint64_t rounds, const uint8_t *codes, int32_t *result) {
    const uint64_t products = 4 * GB_LANES;
    gb_wide sums[SUMS];
    gb_codes low = gb_load_codes(codes), high = gb_load_codes(codes + sizeof low);
#pragma GCC unroll 8
    for (int i = 0; i < SUMS; i++)
        sums[i] = gb_fill_wide(i);
    for (uint64_t round = 0; round < rounds; round++) {
        const gb_codes next = low;
        gb_narrow narrow[SUMS];
#pragma GCC unroll 8
        for (int i = 0; i < SUMS; i++)
            narrow[i] = gb_zero_narrow();
#pragma GCC unroll 8
        for (int c = 0; c < CODES; c++)
#pragma GCC unroll 8
            for (int i = 0; i < SUMS; i++)
                gb_dot(&sums[i], &narrow[i], c % 2 ? low : high, (const int8_t *)codes + 4 * (c * SUMS + i));
#pragma GCC unroll 8
        for (int i = 0; i < SUMS; i++)
            gb_fold(&sums[i], &narrow[i]);
        low = high;
        high = next;
    }
#pragma GCC unroll 8
    for (int i = 0; i < SUMS; i++)
        memcpy(result + i * GB_LANES, &sums[i], sizeof sums[i]);
    return rounds * CODES * SUMS * products;
}

uint32_t GB_FOR_ISA(gb_read)(const void *memory, size_t bytes) {
    enum { STREAMS = 4, LINE = 64 };
    const uint8_t *from = memory;
    gb_codes sums[STREAMS] = {0};
    uint32_t all[16], sum = 0;
    for (size_t i = 0; i < bytes; i += STREAMS * LINE)
#pragma GCC unroll 4
        for (size_t j = 0; j < STREAMS; j++) {
            const gb_codes line = gb_load_codes(from + i + j * LINE);
            gb_fetch(from + i + j * LINE, 8192);
#pragma GCC unroll 4
            for (int p = 0; p < GB_PARTS; p++)
                sums[j].part[p] += line.part[p];
        }
    for (int j = 0; j < STREAMS; j++) {
        memcpy(all, &sums[j], sizeof all);
        for (int l = 0; l < GB_LANES; l++)
            sum += all[l];
    }
    return sum;
}
