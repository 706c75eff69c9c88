/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of 256 weights that are points of a grid, with signs.
 */
#include "export/quantize/grids.h"
#include "export/quantize/import_block.h"

enum { WEIGHTS = 256, SIGN_IQ2 = 4, SIGN_IQ1 = 4, SIGN_IQ3 = 8 };

static uint32_t read_u32(const uint8_t *bytes) {
    return gb_read_u16(bytes) | gb_read_u16(bytes + 2) << 16;
}

/* A scale that counts halves from a half. */
static void put_odd_scale(const gb_block *b, uint32_t groups, uint32_t g, uint32_t half_steps) {
    b->row->scales[b->index * groups + g] = (uint8_t)(2 * half_steps + 1);
}

/* Seven signs, and the eighth, which makes their number even. */
static uint32_t eight_signs(uint32_t seven) {
    uint32_t parity = seven ^ seven >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return seven | (parity & 1u) << 7;
}

/* ---- Two bits ------------------------------------------------------------------------------------------ */

/* Eight weights from number 8 k on. */
static void put_iq2(const gb_block *b, uint32_t k, uint32_t point, uint32_t signs) {
    for (uint32_t i = 0; i < 8; i++) {
        const uint32_t sign = signs >> i & 1u ? SIGN_IQ2 : 0;
        gb_put_weight(b, WEIGHTS, 8 * k + i, (point >> (2 * i) & 3u) | sign);
    }
}

/* Super-scale; for 32 weights four bytes, points, and a word with four times seven signs and a scale. */
void gb_import_iq2_xxs(const gb_block *b) {
    gb_put_super_scale(b, b->from);
    for (uint32_t g = 0; g < 8; g++) {
        const uint8_t *points = b->from + 2 + 8 * g;
        const uint32_t word = read_u32(points + 4);
        put_odd_scale(b, 8, g, word >> 28);
        for (uint32_t k = 0; k < 4; k++)
            put_iq2(b, 4 * g + k, gb_grid_iq2_xxs[points[k]], eight_signs(word >> (7 * k) & 127u));
    }
}

/* Super-scale; for eight weights nine bits, a point, and seven signs; scales as nibbles. */
void gb_import_iq2_xs(const gb_block *b) {
    gb_put_super_scale(b, b->from);
    for (uint32_t g = 0; g < 16; g++)
        put_odd_scale(b, 16, g, gb_nibble_at(b->from + 66, g));
    for (uint32_t k = 0; k < 32; k++) {
        const uint32_t word = gb_read_u16(b->from + 2 + 2 * k);
        put_iq2(b, k, gb_grid_iq2_xs[word & 511u], eight_signs(word >> 9));
    }
}

/* Super-scale; the points' low bytes; signs; the points' high pairs; scales as nibbles. */
void gb_import_iq2_s(const gb_block *b) {
    const uint8_t *low = b->from + 2, *signs = low + 32, *high = signs + 32, *scales = high + 8;
    gb_put_super_scale(b, b->from);
    for (uint32_t g = 0; g < 16; g++)
        put_odd_scale(b, 16, g, gb_nibble_at(scales, g));
    for (uint32_t k = 0; k < 32; k++) {
        const uint32_t over = (uint32_t)high[k / 4] >> (k % 4 * 2) & 3u;
        put_iq2(b, k, gb_grid_iq2_s[low[k] | over << 8], signs[k]);
    }
}

/* ---- Three bits ---------------------------------------------------------------------------------------- */

/* Super-scale; points of four weights; for 32 weights a word with four times seven signs and a scale. */
void gb_import_iq3_xxs(const gb_block *b) {
    const uint8_t *points = b->from + 2, *words = points + 64;
    gb_put_super_scale(b, b->from);
    for (uint32_t g = 0; g < 8; g++)
        put_odd_scale(b, 8, g, read_u32(words + 4 * g) >> 28);
    for (uint32_t i = 0; i < WEIGHTS; i++) {
        const uint32_t magnitude = (uint32_t)gb_grid_iq3_xxs[points[i / 4]] >> (i % 4 * 4) & 7u;
        const uint32_t signs = eight_signs(read_u32(words + i / 32 * 4) >> (i % 32 / 8 * 7) & 127u);
        gb_put_weight(b, WEIGHTS, i, magnitude | (signs >> (i % 8) & 1u ? SIGN_IQ3 : 0));
    }
}

/* Super-scale; the points' low bytes; their ninth bits; signs; scales as nibbles. Magnitudes are odd and go
 * on below zero, so that a code less 7.5 is half the weight. */
void gb_import_iq3_s(const gb_block *b) {
    const uint8_t *low = b->from + 2, *high = low + 64, *signs = high + 8, *scales = signs + 32;
    gb_put_super_scale(b, b->from);
    for (uint32_t g = 0; g < 8; g++)
        put_odd_scale(b, 8, g, gb_nibble_at(scales, g));
    for (uint32_t i = 0; i < WEIGHTS; i++) {
        const uint32_t k = i / 4, over = (uint32_t)high[k / 8] >> (k % 8) & 1u;
        const uint32_t magnitude = (uint32_t)gb_grid_iq3_s[low[k] | over << 8] >> (i % 4 * 4) & 7u;
        gb_put_weight(b, WEIGHTS, i, signs[i / 8] >> (i % 8) & 1 ? 7u - magnitude : 8u + magnitude);
    }
}

/* ---- One and a half bits ------------------------------------------------------------------------------- */

/* Eight weights from number 8 k on: -1, 0 or 1, and an eighth more, or less. */
static void put_iq1(const gb_block *b, uint32_t k, uint32_t point, bool is_less) {
    for (uint32_t i = 0; i < 8; i++)
        gb_put_weight(b, WEIGHTS, 8 * k + i, (point >> (2 * i) & 3u) | (is_less ? SIGN_IQ1 : 0));
}

/* Super-scale; the points' low bytes; for 32 weights a word with the points' high bits, a scale, and whether
 * weights are less. */
void gb_import_iq1_s(const gb_block *b) {
    const uint8_t *low = b->from + 2;
    gb_put_super_scale(b, b->from);
    for (uint32_t g = 0; g < 8; g++) {
        const uint32_t word = gb_read_u16(b->from + 34 + 2 * g);
        put_odd_scale(b, 8, g, word >> 12 & 7u);
        for (uint32_t k = 4 * g; k < 4 * g + 4; k++)
            put_iq1(b, k, gb_grid_iq1[low[k] | (word >> (k % 4 * 3) & 7u) << 8], word >> 15);
    }
}

/* The points' low bytes; nibbles of their high bits and whether weights are less; four words with four scales
 * and a nibble of the super-scale each. */
void gb_import_iq1_m(const gb_block *b) {
    const uint8_t *high = b->from + 32, *words = high + 16;
    uint32_t super = 0;
    for (uint32_t w = 0; w < 4; w++) {
        const uint32_t word = gb_read_u16(words + 2 * w);
        super |= word >> 12 << (4 * w);
        for (uint32_t g = 0; g < 4; g++)
            put_odd_scale(b, 16, 4 * w + g, word >> (3 * g) & 7u);
    }
    gb_put_super_scale(b, (const uint8_t[]){(uint8_t)super, (uint8_t)(super >> 8)});
    for (uint32_t k = 0; k < 32; k++) {
        const uint32_t nibble = gb_nibble_at(high, k);
        put_iq1(b, k, gb_grid_iq1[b->from[k] | (nibble & 7u) << 8], nibble & 8u);
    }
}
