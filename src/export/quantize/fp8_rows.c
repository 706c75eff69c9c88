/* SPDX-License-Identifier: Apache-2.0 */
#include "export/quantize/fp8_rows.h"

#include "export/quantize/import_block.h"
#include "tensor/convert.h"

#include <math.h>
#include <string.h>

float gb_float_from_e4m3(uint8_t code) {
    const uint32_t magnitude = code & 0x7fu, sign = (uint32_t)(code & 0x80u) << 24;
    const uint32_t smallest_normal = 8, nan = 0x7f, bias_difference = 127 - 7;
    if (magnitude == nan)
        return gb_float_from_bits(sign | 0x7fc00000u);
    if (magnitude < smallest_normal)
        return (sign ? -1.0f : 1.0f) * (float)magnitude * 0x1p-9f;
    return gb_float_from_bits(sign | ((magnitude << 20) + (bias_difference << 23)));
}

float gb_float_from_e2m1(uint32_t code) {
    static const float magnitudes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    return code & 8 ? -magnitudes[code & 7] : magnitudes[code & 7];
}

static float scale_at(const gb_fp8 *fp8, uint64_t index) {
    uint16_t half;
    float whole;
    if (fp8->has_4_bits) {
        whole = gb_float_from_e4m3(fp8->scales[index]);
        return fp8->is_divisor ? whole / fp8->global : whole * fp8->global;
    }
    if (fp8->has_exponents)
        return fp8->scales[index] == 255 ? NAN : ldexpf(1, (int)fp8->scales[index] - 127);
    if (fp8->scale_dtype == GB_F32) {
        memcpy(&whole, fp8->scales + 4 * index, sizeof whole);
        return whole;
    }
    memcpy(&half, fp8->scales + 2 * index, sizeof half);
    return gb_widen_half(half, fp8->scale_dtype);
}

static float code_at(const gb_fp8 *fp8, const uint8_t *row, uint64_t at) {
    return fp8->has_4_bits ? gb_float_from_e2m1(row[at / 2] >> (4 * (at % 2)) & 15u)
                           : gb_float_from_e4m3(row[at]);
}

static float read_block(const uint8_t *block, uint64_t at, float global) {
    const uint64_t group = at / 16, i = at % 16;
    const uint32_t byte = block[4 + 8 * group + i % 8];
    return gb_float_from_e2m1(i < 8 ? byte & 15u : byte >> 4) * (gb_nvfp4_block_scale(block[group]) * global);
}

static void read_blocks(const gb_fp8 *fp8, const uint8_t *row, uint64_t first, uint64_t count, float *to) {
    float global;
    memcpy(&global, fp8->scales, sizeof global);
    for (uint64_t at = first; at < first + count; at++) {
        const uint8_t *block = row + at / GB_NVFP4_BLOCK * GB_NVFP4_BLOCK_BYTES;
        *to++ = gb_float_from_bf16(gb_bf16_from_float(read_block(block, at % GB_NVFP4_BLOCK, global)));
    }
}

void gb_fp8_read(const gb_fp8_tensors *tensors, const gb_stacked_bytes *codes, uint64_t columns, uint64_t row,
                 uint64_t first, uint64_t count, float *to) {
    const uint64_t part = gb_locate_row(&codes->stacking, row).part;
    const gb_fp8 *fp8 = &tensors->list[tensors->count > 1 ? part : 0];
    const uint64_t row_bytes = gb_fp8_row_bytes(fp8, columns);
    const uint8_t *from = gb_stacked_row(codes, row, row_bytes);
    if (fp8->has_blocks) {
        read_blocks(fp8, from, first, count, to);
        return;
    }
    const uint64_t own_row = (uint64_t)(from - fp8->codes) / row_bytes;
    const uint64_t scales = own_row / fp8->block_rows * fp8->scale_columns;
    for (uint64_t at = first; at < first + count;) {
        const uint64_t block = at / fp8->block_columns, last = (block + 1) * fp8->block_columns;
        const float scale = scale_at(fp8, scales + block);
        for (; at < last && at < first + count; at++)
            *to++ = gb_float_from_bf16(gb_bf16_from_float(code_at(fp8, from, at) * scale));
    }
}
