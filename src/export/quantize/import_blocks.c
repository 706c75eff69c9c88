/* SPDX-License-Identifier: Apache-2.0 */
#include "export/quantize/import_blocks.h"

#include <string.h>

#define ONE_LEVEL(code_bits, bias)                                                                           \
    { .kind = GB_FORMAT_ONE_LEVEL, .bits = (code_bits), .has_bias = (bias), .scale = GB_F16, .group = 32 }
#define TWO_LEVEL(code_bits, bias, sub_bits, size)                                                           \
    {                                                                                                        \
        .kind = GB_FORMAT_TWO_LEVEL, .bits = (code_bits), .has_bias = (bias), .scale_bits = (sub_bits),      \
        .scale = GB_F16, .group = (size)                                                                     \
    }

const gb_block_info *gb_block_find(uint32_t type) {
    static const gb_block_info blocks[] = {
        [GB_BLOCK_Q4_0] = {"Q4_0", 32, 18, ONE_LEVEL(4, false)},
        [GB_BLOCK_Q4_1] = {"Q4_1", 32, 20, ONE_LEVEL(4, true)},
        [GB_BLOCK_Q5_0] = {"Q5_0", 32, 22, ONE_LEVEL(5, false)},
        [GB_BLOCK_Q5_1] = {"Q5_1", 32, 24, ONE_LEVEL(5, true)},
        [GB_BLOCK_Q8_0] = {"Q8_0", 32, 34, ONE_LEVEL(8, false)},
        [GB_BLOCK_Q4_K] = {"Q4_K", 256, 144, TWO_LEVEL(4, true, 6, 32)},
        [GB_BLOCK_Q5_K] = {"Q5_K", 256, 176, TWO_LEVEL(5, true, 6, 32)},
        [GB_BLOCK_Q6_K] = {"Q6_K", 256, 210, TWO_LEVEL(6, false, 8, 16)},
    };
    bool is_known = type < sizeof blocks / sizeof *blocks && blocks[type].name;
    return is_known ? &blocks[type] : NULL;
}

/* One block on its way: where it comes from, and which of the row's blocks it is. */
typedef struct block {
    const uint8_t *from;
    const gb_imported_row *row;
    uint64_t index;
    uint32_t bits;
} block;

static void put(const block *b, uint32_t weights, uint32_t i, uint32_t code) {
    gb_put_code(b->row->codes, b->bits, b->index * weights + i, code);
}

/* Nibbles of 32 weights: the first 16 are low, the others high. */
static uint32_t nibble32(const uint8_t *nibbles, uint32_t i) {
    return i < 16 ? nibbles[i] & 15u : (uint32_t)nibbles[i - 16] >> 4;
}

/* Q4_0: scale, nibbles. Q4_1: scale, bias, nibbles. Q5_0 and Q5_1 have 32 fifth bits before the nibbles. */
static void import_nibbles(const block *b, bool has_bias) {
    const uint8_t *from = b->from + (has_bias ? 4 : 2);
    memcpy(b->row->scales + 2 * b->index, b->from, 2);
    if (has_bias)
        memcpy(b->row->biases + 2 * b->index, b->from + 2, 2);
    const uint8_t *nibbles = b->bits == 5 ? from + 4 : from;
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t fifth = b->bits == 5 ? ((uint32_t)from[i / 8] >> (i % 8) & 1u) << 4 : 0;
        put(b, 32, i, nibble32(nibbles, i) | fifth);
    }
}

/* Scale, then signed bytes. */
static void import_q8_0(const block *b) {
    memcpy(b->row->scales + 2 * b->index, b->from, 2);
    for (uint32_t i = 0; i < 32; i++)
        put(b, 32, i, b->from[2 + i] ^ 0x80u);
}

/* Twelve bytes hold eight 6-bit scales and eight 6-bit biases: the first four of each in the low six bits of
 * bytes 0-3 and 4-7; of the others the low four bits in bytes 8-11, the high two in the top of bytes 0-7. */
static void import_k_scales(const block *b, const uint8_t *from) {
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t scale = from[i], bias = from[4 + i], rest = from[8 + i];
        uint64_t at = b->index * 8 + i;
        gb_put_code(b->row->scales, 6, at, scale & 63u);
        gb_put_code(b->row->biases, 6, at, bias & 63u);
        gb_put_code(b->row->scales, 6, at + 4, (rest & 15u) | (scale >> 6) << 4);
        gb_put_code(b->row->biases, 6, at + 4, rest >> 4 | (bias >> 6) << 4);
    }
}

/* Super-scale, super-bias, scales and biases; for Q5_K 32 bytes of fifth bits, byte i of them that of weight
 * i of each group; nibbles of two groups in 32 bytes, the first group's low. */
static void import_k(const block *b) {
    memcpy(b->row->super_scales + 2 * b->index, b->from, 2);
    memcpy(b->row->super_biases + 2 * b->index, b->from + 2, 2);
    import_k_scales(b, b->from + 4);
    const uint8_t *fifths = b->from + 16, *nibbles = b->bits == 5 ? fifths + 32 : fifths;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t group = i / 32, byte = nibbles[group / 2 * 32 + i % 32];
        uint32_t fifth = b->bits == 5 ? ((uint32_t)fifths[i % 32] >> group & 1u) << 4 : 0;
        put(b, 256, i, (group % 2 ? byte >> 4 : byte & 15u) | fifth);
    }
}

/* Low nibbles, 64 bytes for each half of the block; high bit pairs, 32 bytes for each half; sixteen signed
 * scales; the super-scale. */
static void import_q6_k(const block *b) {
    const uint8_t *nibbles = b->from, *pairs = b->from + 128;
    memcpy(b->row->scales + 16 * b->index, b->from + 192, 16);
    memcpy(b->row->super_scales + 2 * b->index, b->from + 208, 2);
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t half = i / 128, quarter = i / 32 % 4;
        uint32_t byte = nibbles[half * 64 + i % 64];
        uint32_t pair = (uint32_t)pairs[half * 32 + i % 32] >> (2 * quarter) & 3u;
        put(b, 256, i, (quarter < 2 ? byte & 15u : byte >> 4) | pair << 4);
    }
}

static void import_block(gb_block_type type, const block *b) {
    switch (type) {
    case GB_BLOCK_Q4_0:
    case GB_BLOCK_Q5_0:
        import_nibbles(b, false);
        break;
    case GB_BLOCK_Q4_1:
    case GB_BLOCK_Q5_1:
        import_nibbles(b, true);
        break;
    case GB_BLOCK_Q8_0:
        import_q8_0(b);
        break;
    case GB_BLOCK_Q4_K:
    case GB_BLOCK_Q5_K:
        import_k(b);
        break;
    case GB_BLOCK_Q6_K:
        import_q6_k(b);
        break;
    }
}

void gb_import_block_row(gb_block_type type, const uint8_t *blocks, uint64_t columns,
                         const gb_imported_row *row) {
    const gb_block_info *info = gb_block_find(type);
    gb_planes planes;
    if (!info || !gb_format_planes(&info->format, 1, columns, &planes))
        return;
    memset(row->codes, 0, (size_t)planes.codes.row_bytes);
    memset(row->scales, 0, (size_t)planes.scales.row_bytes);
    if (row->biases)
        memset(row->biases, 0, (size_t)planes.biases.row_bytes);
    for (uint64_t i = 0; i < columns / info->weights; i++) {
        block b = {blocks + i * info->bytes, row, i, info->format.bits};
        import_block(type, &b);
    }
}
