/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/vector_sources.h"

#include "program/program.h"

/* Weights stand channel by channel; lanes are channels, so a block of them is turned around first. */

enum { BLOCK = 64 };

typedef struct workspace {
    float lines[BLOCK * GB_MAX_CONV_WIDTH]; /* each of one channel's weights */
    float panel[GB_MAX_CONV_WIDTH][BLOCK];
} workspace;

_Static_assert(sizeof(workspace) <= GB_CONV_SCRATCH, "the scratch holds a workspace");

/* Every other lane of two vectors, from the first one or from the second one on. */
#if GB_VECTOR_LANES == 16
#define EVENS(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define ODDS(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#elif GB_VECTOR_LANES == 8
#define EVENS(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODDS(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#else
#define EVENS(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define ODDS(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7)
#endif

/* As many channels as a vector has lanes, of four weights each. */
static void turn_four(const float *lines, size_t at, workspace *space) {
    gb_vector a[4], even[2], odd[2];
    for (int i = 0; i < 4; i++)
        a[i] = gb_load_vector(lines, GB_F32, (size_t)i * GB_VECTOR_LANES);
    for (int i = 0; i < 2; i++) {
        even[i] = EVENS(a[2 * i], a[2 * i + 1]);
        odd[i] = ODDS(a[2 * i], a[2 * i + 1]);
    }
    const gb_vector turned[4] = {EVENS(even[0], even[1]), EVENS(odd[0], odd[1]), ODDS(even[0], even[1]),
                                 ODDS(odd[0], odd[1])};
    for (int w = 0; w < 4; w++)
        memcpy(&space->panel[w][at], &turned[w], sizeof turned[w]);
}

static void turn_weights(const gb_conv *c, size_t first, size_t count, workspace *space) {
    const uint8_t *from = (const uint8_t *)c->weight + first * c->width * gb_dtype_size(c->dtype);
    size_t turned = 0;
    GB_FOR_ISA(gb_widen)(from, c->dtype, count * c->width, space->lines);
    for (; c->width == 4 && count - turned >= GB_VECTOR_LANES; turned += GB_VECTOR_LANES)
        turn_four(space->lines + turned * 4, turned, space);
    for (size_t i = turned; i < count; i++)
        for (size_t w = 0; w < c->width; w++)
            space->panel[w][i] = space->lines[i * c->width + w];
}

/* The row of x that is `back` tokens before that token. */
static const float *earlier_row(const gb_conv *c, size_t token, size_t back) {
    return token >= back ? c->x + (token - back) * c->channels
                         : c->tail + (c->width - 1 + token - back) * c->channels;
}

/* y = the sum over w of row w of x times row w of the panel, from the first one on. */
GB_INLINE void convolve(const float *const *x, size_t width, const workspace *space, size_t count, float *y) {
    size_t i = 0;
    for (; count - i >= GB_VECTOR_LANES; i += GB_VECTOR_LANES) {
        gb_vector sum = gb_load_vector(x[0], GB_F32, i) * gb_load_vector(space->panel[0], GB_F32, i);
#pragma GCC unroll 8
        for (size_t w = 1; w < width; w++)
            sum += gb_load_vector(x[w], GB_F32, i) * gb_load_vector(space->panel[w], GB_F32, i);
        memcpy(y + i, &sum, sizeof sum);
    }
    for (; i < count; i++) {
        float sum = x[0][i] * space->panel[0][i];
        for (size_t w = 1; w < width; w++)
            sum += x[w][i] * space->panel[w][i];
        y[i] = sum;
    }
}

static void convolve_block(const gb_conv *c, size_t first, size_t count, workspace *space) {
    const float *x[GB_MAX_CONV_WIDTH];
    turn_weights(c, first, count, space);
    for (size_t t = 0; t < c->tokens; t++) {
        float *y = c->y + t * c->channels + first;
        for (size_t w = 0; w < c->width; w++)
            x[w] = earlier_row(c, t, c->width - 1 - w) + first;
        if (c->width == 4)
            convolve(x, 4, space, count, y);
        else
            convolve(x, c->width, space, count, y);
    }
}

void GB_FOR_ISA(gb_conv)(const gb_conv *c, size_t first, size_t end, void *scratch) {
    for (; first < end; first += BLOCK)
        convolve_block(c, first, end - first < BLOCK ? end - first : BLOCK, scratch);
}
