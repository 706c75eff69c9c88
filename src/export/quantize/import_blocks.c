/* SPDX-License-Identifier: Apache-2.0 */
#include "export/quantize/import_block.h"

/* Q4_0: scale, nibbles. Q4_1: scale, bias, nibbles. Q5_0 and Q5_1 have 32 fifth bits before the nibbles. */
static void import_nibbles(const gb_block *b, bool has_bias) {
    const uint8_t *from = b->from + (has_bias ? 4 : 2);
    memcpy(b->row->scales + 2 * b->index, b->from, 2);
    if (has_bias)
        memcpy(b->row->biases + 2 * b->index, b->from + 2, 2);
    const uint8_t *nibbles = b->bits == 5 ? from + 4 : from;
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t fifth = b->bits == 5 ? ((uint32_t)from[i / 8] >> (i % 8) & 1u) << 4 : 0;
        gb_put_weight(b, 32, i, gb_nibble32(nibbles, i) | fifth);
    }
}

/* Scale, then signed bytes. */
static void import_q8_0(const gb_block *b) {
    memcpy(b->row->scales + 2 * b->index, b->from, 2);
    for (uint32_t i = 0; i < 32; i++)
        gb_put_weight(b, 32, i, b->from[2 + i] ^ 0x80u);
}

/* Twelve bytes hold eight 6-bit scales and eight 6-bit biases: the first four of each in the low six bits of
 * bytes 0-3 and 4-7; of the others the low four bits in bytes 8-11, the high two in the top of bytes 0-7. */
static void import_k_scales(const gb_block *b, const uint8_t *from) {
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
static void import_k(const gb_block *b) {
    memcpy(b->row->super_scales + 2 * b->index, b->from, 2);
    memcpy(b->row->super_biases + 2 * b->index, b->from + 2, 2);
    import_k_scales(b, b->from + 4);
    const uint8_t *fifths = b->from + 16, *nibbles = b->bits == 5 ? fifths + 32 : fifths;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t group = i / 32, byte = nibbles[group / 2 * 32 + i % 32];
        uint32_t fifth = b->bits == 5 ? ((uint32_t)fifths[i % 32] >> group & 1u) << 4 : 0;
        gb_put_weight(b, 256, i, (group % 2 ? byte >> 4 : byte & 15u) | fifth);
    }
}

/* Low nibbles, 64 bytes for each half of the block; high bit pairs, 32 bytes for each half; sixteen signed
 * scales; the super-scale. */
static void import_q6_k(const gb_block *b) {
    const uint8_t *nibbles = b->from, *pairs = b->from + 128;
    memcpy(b->row->scales + 16 * b->index, b->from + 192, 16);
    memcpy(b->row->super_scales + 2 * b->index, b->from + 208, 2);
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t half = i / 128, quarter = i / 32 % 4;
        uint32_t byte = nibbles[half * 64 + i % 64];
        uint32_t pair = (uint32_t)pairs[half * 32 + i % 32] >> (2 * quarter) & 3u;
        gb_put_weight(b, 256, i, (quarter < 2 ? byte & 15u : byte >> 4) | pair << 4);
    }
}

static void import_flat(const gb_block *b) {
    import_nibbles(b, false);
}

static void import_biased(const gb_block *b) {
    import_nibbles(b, true);
}

/* ---- The types ----------------------------------------------------------------------------------------- */

#define ONE_LEVEL(code_bits, bias, dtype, size, code_book)                                                   \
    {                                                                                                        \
        .kind = GB_FORMAT_ONE_LEVEL, .bits = (code_bits), .has_bias = (bias), .scale = (dtype),              \
        .group = (size), .book = (code_book)                                                                 \
    }
#define TWO_LEVEL(code_bits, bias, sub_bits, size, code_book)                                                \
    {                                                                                                        \
        .kind = GB_FORMAT_TWO_LEVEL, .bits = (code_bits), .has_bias = (bias), .scale_bits = (sub_bits),      \
        .scale = GB_F16, .group = (size), .book = (code_book)                                                \
    }

typedef struct block_type {
    gb_block_info info;
    void (*import)(const gb_block *b);
} block_type;

static const block_type types[] = {
    [GB_BLOCK_Q4_0] = {{"Q4_0", 32, 18, ONE_LEVEL(4, false, GB_F16, 32, GB_BOOK_NONE)}, import_flat},
    [GB_BLOCK_Q4_1] = {{"Q4_1", 32, 20, ONE_LEVEL(4, true, GB_F16, 32, GB_BOOK_NONE)}, import_biased},
    [GB_BLOCK_Q5_0] = {{"Q5_0", 32, 22, ONE_LEVEL(5, false, GB_F16, 32, GB_BOOK_NONE)}, import_flat},
    [GB_BLOCK_Q5_1] = {{"Q5_1", 32, 24, ONE_LEVEL(5, true, GB_F16, 32, GB_BOOK_NONE)}, import_biased},
    [GB_BLOCK_Q8_0] = {{"Q8_0", 32, 34, ONE_LEVEL(8, false, GB_F16, 32, GB_BOOK_NONE)}, import_q8_0},
    [GB_BLOCK_Q2_K] = {{"Q2_K", 256, 84, TWO_LEVEL(2, true, 4, 16, GB_BOOK_NONE)}, gb_import_q2_k},
    [GB_BLOCK_Q3_K] = {{"Q3_K", 256, 110, TWO_LEVEL(3, false, 8, 16, GB_BOOK_NONE)}, gb_import_q3_k},
    [GB_BLOCK_Q4_K] = {{"Q4_K", 256, 144, TWO_LEVEL(4, true, 6, 32, GB_BOOK_NONE)}, import_k},
    [GB_BLOCK_Q5_K] = {{"Q5_K", 256, 176, TWO_LEVEL(5, true, 6, 32, GB_BOOK_NONE)}, import_k},
    [GB_BLOCK_Q6_K] = {{"Q6_K", 256, 210, TWO_LEVEL(6, false, 8, 16, GB_BOOK_NONE)}, import_q6_k},
    [GB_BLOCK_IQ2_XXS] = {{"IQ2_XXS", 256, 66, TWO_LEVEL(3, false, 8, 32, GB_BOOK_IQ2)}, gb_import_iq2_xxs},
    [GB_BLOCK_IQ2_XS] = {{"IQ2_XS", 256, 74, TWO_LEVEL(3, false, 8, 16, GB_BOOK_IQ2)}, gb_import_iq2_xs},
    [GB_BLOCK_IQ3_XXS] = {{"IQ3_XXS", 256, 98, TWO_LEVEL(4, false, 8, 32, GB_BOOK_IQ3XXS)},
                          gb_import_iq3_xxs},
    [GB_BLOCK_IQ1_S] = {{"IQ1_S", 256, 50, TWO_LEVEL(3, false, 8, 32, GB_BOOK_IQ1)}, gb_import_iq1_s},
    [GB_BLOCK_IQ3_S] = {{"IQ3_S", 256, 110, TWO_LEVEL(4, false, 8, 32, GB_BOOK_IQ3S)}, gb_import_iq3_s},
    [GB_BLOCK_IQ2_S] = {{"IQ2_S", 256, 82, TWO_LEVEL(3, false, 8, 16, GB_BOOK_IQ2)}, gb_import_iq2_s},
    [GB_BLOCK_IQ1_M] = {{"IQ1_M", 256, 56, TWO_LEVEL(3, false, 8, 16, GB_BOOK_IQ1)}, gb_import_iq1_m},
    [GB_BLOCK_IQ4_NL] = {{"IQ4_NL", 32, 18, ONE_LEVEL(4, false, GB_F16, 32, GB_BOOK_IQ4)}, gb_import_iq4_nl},
    [GB_BLOCK_IQ4_XS] = {{"IQ4_XS", 256, 136, TWO_LEVEL(4, false, 8, 32, GB_BOOK_IQ4)}, gb_import_iq4_xs},
    [GB_BLOCK_TQ1_0] = {{"TQ1_0", 256, 54, ONE_LEVEL(2, false, GB_F16, 128, GB_BOOK_NONE)}, gb_import_tq1_0},
    [GB_BLOCK_TQ2_0] = {{"TQ2_0", 256, 66, ONE_LEVEL(2, true, GB_F16, 128, GB_BOOK_NONE)}, gb_import_tq2_0},
    [GB_BLOCK_MXFP4] = {{"MXFP4", 32, 17, ONE_LEVEL(4, false, GB_BF16, 32, GB_BOOK_E2M1)}, gb_import_mxfp4},
    [GB_BLOCK_NVFP4] = {{"NVFP4", 64, 36, ONE_LEVEL(4, false, GB_BF16, 16, GB_BOOK_E2M1)}, gb_import_nvfp4},
};

const gb_block_info *gb_block_find(uint32_t type) {
    const bool is_known = type < sizeof types / sizeof *types && types[type].info.name;
    return is_known ? &types[type].info : NULL;
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
        const gb_block b = {blocks + i * info->bytes, row, i, info->format.bits};
        types[type].import(&b);
    }
}
