/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/vector/vector_sources.h"

#include "program/program.h"

/* Weights stand channel by channel; lanes are channels, so a block of them is turned around first. */

enum { BLOCK = 64 };

typedef struct workspace {
    float lines[BLOCK * GB_MAX_CONV_WIDTH]; /* each of one channel's weights */
    float panel[GB_MAX_CONV_WIDTH][BLOCK];
} workspace;

_Static_assert(sizeof(workspace) <= GB_CONV_SCRATCH, "the scratch holds a workspace");

static void turn_weights(const gb_conv *c, size_t first, size_t count, workspace *space) {
    const uint8_t *from = (const uint8_t *)c->weight + first * c->width * gb_dtype_size(c->dtype);
    GB_FOR_ISA(gb_widen)(from, c->dtype, count * c->width, space->lines);
    for (size_t i = 0; i < count; i++)
        for (size_t w = 0; w < c->width; w++)
            space->panel[w][i] = space->lines[i * c->width + w];
}

/* The row of x that is `back` tokens before that token. */
static const float *earlier_row(const gb_conv *c, size_t token, size_t back) {
    return token >= back ? c->x + (token - back) * c->channels
                         : c->tail + (c->width - 1 + token - back) * c->channels;
}

static void add_products(const float *x, const float *weight, size_t count, float *y) {
    for (size_t i = 0; i < count; i++)
        y[i] += x[i] * weight[i];
}

static void convolve_block(const gb_conv *c, size_t first, size_t count, workspace *space) {
    turn_weights(c, first, count, space);
    for (size_t t = 0; t < c->tokens; t++) {
        float *y = c->y + t * c->channels + first;
        GB_FOR_ISA(gb_multiply)(earlier_row(c, t, c->width - 1) + first, space->panel[0], count, y);
        for (size_t w = 1; w < c->width; w++)
            add_products(earlier_row(c, t, c->width - 1 - w) + first, space->panel[w], count, y);
    }
}

void GB_FOR_ISA(gb_conv)(const gb_conv *c, size_t first, size_t end, void *scratch) {
    for (; first < end; first += BLOCK)
        convolve_block(c, first, end - first < BLOCK ? end - first : BLOCK, scratch);
}
