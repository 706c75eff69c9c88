/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/interleaved/interleaved.h"

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
uint32_t GB_FOR_ISA(gb_peak)(const uint8_t *codes, uint64_t rounds, uint64_t *products) {
    gb_wide sums[SUMS];
    gb_codes low = gb_load_codes(codes), high = gb_load_codes(codes + sizeof low);
#pragma GCC unroll 8
    for (int i = 0; i < SUMS; i++)
        sums[i] = gb_fill_wide(0);
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
    uint32_t sum = 0;
#pragma GCC unroll 8
    for (int i = 0; i < SUMS; i++)
#pragma GCC unroll 4
        for (int p = 0; p < GB_PARTS; p++)
            for (int l = 0; l < GB_VECTOR_LANES; l++)
                sum += (uint32_t)sums[i].part[p][l];
    *products = rounds * CODES * SUMS * 4 * GB_LANES;
    return sum;
}

uint32_t GB_FOR_ISA(gb_read)(const void *memory, size_t bytes) {
    enum { LINES = 4, LINE = 64, AHEAD = 8192, SMALL_PAGE = 4096 };
    const uint8_t *from = memory;
    gb_codes sums[LINES] = {0};
    for (size_t i = 0; i < bytes; i += LINES * LINE) {
        if (i % SMALL_PAGE == 0)
            gb_find_page(from + i, GB_PAGE_LEAD_BYTES);
#pragma GCC unroll 4
        for (size_t j = 0; j < LINES; j++) {
            const gb_codes line = gb_load_codes(from + i + j * LINE);
            gb_fetch(from + i + j * LINE, AHEAD);
#pragma GCC unroll 4
            for (int p = 0; p < GB_PARTS; p++)
                sums[j % (LINES / GB_PARTS)].part[p] += line.part[p];
        }
    }
    uint32_t sum = 0;
    for (int j = 0; j < LINES / GB_PARTS; j++)
#pragma GCC unroll 4
        for (int p = 0; p < GB_PARTS; p++)
            for (int l = 0; l < GB_VECTOR_LANES; l++)
                sum += sums[j].part[p][l];
    return sum;
}
