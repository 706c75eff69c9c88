/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks whose 4-bit codes are numbers in a book.
 */
#include "export/quantize/import_block.h"
#include "tensor/convert.h"

static void put_nibbles32(const gb_block *b, uint32_t weights, uint32_t first, const uint8_t *nibbles) {
    for (uint32_t i = 0; i < 32; i++)
        gb_put_weight(b, weights, first + i, gb_nibble32(nibbles, i));
}

/* Scale, nibbles. */
void gb_import_iq4_nl(const gb_block *b) {
    memcpy(b->row->scales + 2 * b->index, b->from, 2);
    put_nibbles32(b, 32, 0, b->from + 2);
}

/* Super-scale; of eight 6-bit scales plus 32 the high pairs in two bytes, then the low nibbles; nibbles. */
void gb_import_iq4_xs(const gb_block *b) {
    const uint32_t high = gb_read_u16(b->from + 2);
    gb_put_super_scale(b, b->from);
    for (uint32_t g = 0; g < 8; g++) {
        const uint32_t scale = gb_nibble_at(b->from + 4, g) | (high >> (2 * g) & 3u) << 4;
        b->row->scales[b->index * 8 + g] = (uint8_t)(scale - 32u);
        put_nibbles32(b, 256, 32 * g, b->from + 8 + 16 * g);
    }
}

static void put_scale(const gb_block *b, uint64_t group, uint32_t bf16) {
    b->row->scales[2 * group] = (uint8_t)bf16;
    b->row->scales[2 * group + 1] = (uint8_t)(bf16 >> 8);
}

/* 2^(e - 128), half of what the exponent stands for, since the book's integers are doubled. */
static uint32_t half_of_exponent(uint32_t e) {
    return e < 2 ? 0x20u << e : (e - 1) << 7;
}

/* An exponent, nibbles. */
void gb_import_mxfp4(const gb_block *b) {
    put_scale(b, b->index, half_of_exponent(b->from[0]));
    put_nibbles32(b, 32, 0, b->from + 1);
}

/* Half of an E4M3 without a sign; its NaN is 0, as GGUF reads it. */
static uint32_t half_of_e4m3(uint32_t byte) {
    const uint32_t exponent = byte >> 3 & 15u, mantissa = byte & 7u;
    if (byte == 0x7f)
        return 0;
    if (exponent == 0)
        return gb_bf16_from_float((float)mantissa * 0x1p-10f);
    return (exponent + 127 - 8) << 7 | mantissa << 4;
}

float gb_nvfp4_block_scale(uint8_t byte) {
    return 2 * gb_float_from_bf16((uint16_t)half_of_e4m3(byte));
}

/* Four scales, then eight bytes of nibbles for each: low ones first. */
void gb_import_nvfp4(const gb_block *b) {
    for (uint32_t g = 0; g < 4; g++) {
        const uint8_t *nibbles = b->from + 4 + 8 * g;
        put_scale(b, b->index * 4 + g, half_of_e4m3(b->from[g]));
        for (uint32_t i = 0; i < 8; i++) {
            gb_put_weight(b, 64, 16 * g + i, nibbles[i] & 15u);
            gb_put_weight(b, 64, 16 * g + 8 + i, (uint32_t)nibbles[i] >> 4);
        }
    }
}
