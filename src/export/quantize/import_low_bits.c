/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of 256 weights of 2 or 3 bits.
 */
#include "export/quantize/import_block.h"

/* 64 bytes of pairs of bits: of each half of the block 32, whose pairs are weights 32 apart. */
static uint32_t pair_at(const uint8_t *pairs, uint32_t i) {
    return (uint32_t)pairs[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3u;
}

/* Sixteen bytes of 4-bit scales (low) and biases; pairs; super-scale, super-bias. */
void gb_import_q2_k(const gb_block *b) {
    gb_put_super_scale(b, b->from + 80);
    memcpy(b->row->super_biases + 2 * b->index, b->from + 82, 2);
    for (uint32_t i = 0; i < 16; i++) {
        gb_put_code(b->row->scales, 4, b->index * 16 + i, b->from[i] & 15u);
        gb_put_code(b->row->biases, 4, b->index * 16 + i, (uint32_t)b->from[i] >> 4);
    }
    for (uint32_t i = 0; i < 256; i++)
        gb_put_weight(b, 256, i, pair_at(b->from + 16, i));
}

/* Twelve bytes hold sixteen 6-bit scales plus 32: nibbles of eight bytes, first the low ones; the other bits
 * in pairs of four bytes, which are scales 4 apart. */
static uint8_t q3_k_scale(const uint8_t *bytes, uint32_t i) {
    const uint32_t low = (uint32_t)bytes[i % 8] >> (i / 8 * 4) & 15u;
    const uint32_t high = (uint32_t)bytes[8 + i % 4] >> (i / 4 * 2) & 3u;
    return (uint8_t)((low | high << 4) - 32u);
}

/* 32 bytes of third bits, byte i of them that of weight i of each 32; pairs; scales; the super-scale. */
void gb_import_q3_k(const gb_block *b) {
    gb_put_super_scale(b, b->from + 108);
    for (uint32_t i = 0; i < 16; i++)
        b->row->scales[b->index * 16 + i] = q3_k_scale(b->from + 96, i);
    for (uint32_t i = 0; i < 256; i++) {
        const uint32_t third = (uint32_t)b->from[i % 32] >> (i / 32) & 1u;
        gb_put_weight(b, 256, i, pair_at(b->from + 32, i) | third << 2);
    }
}

/* ---- Ternary ------------------------------------------------------------------------------------------- */

/* The block's scale, for two groups of ours. */
static void put_ternary_scale(uint8_t *scales, uint64_t index, const uint8_t *half, uint8_t sign) {
    for (uint64_t g = 2 * index; g < 2 * index + 2; g++) {
        scales[2 * g] = half[0];
        scales[2 * g + 1] = half[1] ^ sign;
    }
}

/* Digit `place` in base 3 of a byte that is a fraction of 256, plus 1: ours count from 2. */
static uint32_t digit_of(uint8_t byte, uint32_t place) {
    static const uint8_t powers[] = {1, 3, 9, 27, 81};
    return ((uint32_t)(uint8_t)(byte * powers[place]) * 3u >> 8) + 1u;
}

/* 32, 16 and 4 bytes, each with 5, 5 and 4 weights as far apart as there are bytes; the scale. */
void gb_import_tq1_0(const gb_block *b) {
    static const struct { uint32_t bytes, digits; } parts[] = {{32, 5}, {16, 5}, {4, 4}};
    const uint8_t *from = b->from;
    put_ternary_scale(b->row->scales, b->index, b->from + 52, 0);
    for (uint32_t p = 0, first = 0; p < 3; from += parts[p].bytes, p++)
        for (uint32_t place = 0; place < parts[p].digits; place++)
            for (uint32_t i = 0; i < parts[p].bytes; i++)
                gb_put_weight(b, 256, first++, digit_of(from[i], place));
}

/* Pairs that count from 1, up to 2 though nothing makes that; the scale, whose negative is our bias. */
void gb_import_tq2_0(const gb_block *b) {
    put_ternary_scale(b->row->scales, b->index, b->from + 64, 0);
    put_ternary_scale(b->row->biases, b->index, b->from + 64, 0x80);
    for (uint32_t i = 0; i < 256; i++)
        gb_put_weight(b, 256, i, pair_at(b->from, i));
}
