/* SPDX-License-Identifier: Apache-2.0 */
#include "support/checkpoints/gguf_blocks.h"

#include "export/checkpoint/ggml_types.h"
#include "export/random_weights.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Where a block has its float16 scales, biases last, up to a negative one; and what they become. */
static const struct {
    gb_block_type type;
    int scale, bias;
} PLACES[] = {
    {GB_BLOCK_Q4_0, 0, -1},    {GB_BLOCK_Q4_1, 0, 2},    {GB_BLOCK_Q5_0, 0, -1},   {GB_BLOCK_Q5_1, 0, 2},
    {GB_BLOCK_Q8_0, 0, -1},    {GB_BLOCK_Q4_K, 0, 2},    {GB_BLOCK_Q5_K, 0, 2},    {GB_BLOCK_Q6_K, 208, -1},
    {GB_BLOCK_Q2_K, 80, 82},   {GB_BLOCK_Q3_K, 108, -1}, {GB_BLOCK_IQ4_NL, 0, -1}, {GB_BLOCK_IQ4_XS, 0, -1},
    {GB_BLOCK_IQ2_XXS, 0, -1}, {GB_BLOCK_IQ2_XS, 0, -1}, {GB_BLOCK_IQ2_S, 0, -1},  {GB_BLOCK_IQ3_XXS, 0, -1},
    {GB_BLOCK_IQ3_S, 0, -1},   {GB_BLOCK_IQ1_S, 0, -1},  {GB_BLOCK_TQ1_0, 52, -1}, {GB_BLOCK_TQ2_0, 64, -1}};
static const uint8_t SMALL_SCALE[2] = {0x00, 0x18}, SMALLER_SCALE[2] = {0x00, 0x08}, ZERO[2] = {0, 0};

/* Scales that are exponents, or floats of 8 bits. */
static void make_scale_bytes_small(gb_block_type type, uint8_t *block) {
    enum { EXPONENT = 118, LEAST_NORMAL = 8 };
    if (type == GB_BLOCK_MXFP4)
        block[0] = EXPONENT;
    for (int g = 0; g < 4 && type == GB_BLOCK_NVFP4; g++)
        block[g] = (uint8_t)(LEAST_NORMAL | (block[g] & 7));
    for (int w = 0; w < 4 && type == GB_BLOCK_IQ1_M; w++) /* nibbles of a float16 */
        block[49 + 2 * w] = (uint8_t)((block[49 + 2 * w] & 15) | (w == 2 ? 0x80 : 0));
}

/* Of two levels a scale is multiplied by up to 63 or 127 once more, so it is 2^-13 and not 2^-9. */
static uint8_t *random_blocks(const gb_block_info *info, gb_block_type type, uint64_t count, uint64_t seed) {
    uint8_t *blocks = malloc(count * info->bytes);
    assert_non_null(blocks);
    gb_random_bytes(seed, 0, count * info->bytes, blocks);
    for (uint64_t i = 0; i < count; i++)
        make_scale_bytes_small(type, blocks + i * info->bytes);
    for (size_t p = 0; p < sizeof PLACES / sizeof *PLACES; p++) {
        bool is_two_level = info->format.kind == GB_FORMAT_TWO_LEVEL;
        for (uint64_t i = 0; i < count && PLACES[p].type == type; i++) {
            uint8_t *block = blocks + i * info->bytes;
            memcpy(block + PLACES[p].scale, is_two_level ? SMALLER_SCALE : SMALL_SCALE, 2);
            if (PLACES[p].bias >= 0)
                memcpy(block + PLACES[p].bias, is_two_level ? SMALLER_SCALE : ZERO, 2);
        }
    }
    return blocks;
}

static float *numbers_of(const gb_block_info *info, gb_block_type type, const uint8_t *blocks, uint64_t rows,
                         uint64_t columns) {
    float *values = malloc(rows * columns * sizeof *values);
    gb_planes planes;
    assert_true(gb_format_planes(&info->format, 1, columns, &planes));
    uint8_t *data = calloc(1, planes.size);
    assert_true(values && data);
    bool is_two_level = info->format.kind == GB_FORMAT_TWO_LEVEL;
    gb_imported_row row = {data + planes.codes.offset, data + planes.scales.offset,
                           info->format.has_bias ? data + planes.biases.offset : NULL,
                           is_two_level ? data + planes.super_scales.offset : NULL,
                           is_two_level && info->format.has_bias ? data + planes.super_biases.offset : NULL};
    for (uint64_t r = 0; r < rows; r++) {
        gb_import_block_row(type, blocks + r * (columns / info->weights) * info->bytes, columns, &row);
        gb_format_dequantize(&info->format, &planes, data, 0, 0, columns, values + r * columns);
    }
    free(data);
    return values;
}

uint64_t gguf_add_blocks(gguf_writer *writer, const char *name, gb_block_type type, int32_t rank,
                         const int64_t *dims, uint64_t seed, bool as_numbers) {
    const gb_block_info *info = gb_block_find(type);
    uint64_t rows = 1, columns = (uint64_t)dims[rank - 1];
    for (int32_t i = 0; i < rank - 1; i++)
        rows *= (uint64_t)dims[i];
    assert_int_equal(columns % info->weights, 0);
    uint64_t count = rows * (columns / info->weights);
    uint8_t *blocks = random_blocks(info, type, count, seed);
    if (as_numbers) {
        float *values = numbers_of(info, type, blocks, rows, columns);
        gguf_add_tensor(writer, name, GB_GGML_F32, rank, dims, values, rows * columns * sizeof *values);
        free(values);
    } else {
        gguf_add_tensor(writer, name, (uint32_t)type, rank, dims, blocks, count * info->bytes);
    }
    free(blocks);
    return count * info->bytes;
}
