/* SPDX-License-Identifier: Apache-2.0 */
#include "export/quantize/quantizer.h"

#include "tensor/convert.h"
#include "tensor/hadamard.h"

#include <math.h>
#include <string.h>

const char *gb_quantize_method_name(gb_quantize_method method) {
    static const char *const names[] = {"min-max", "hqq", "search"};
    return names[method];
}

bool gb_can_quantize(gb_quantize_method method, const gb_format *format) {
    if (!gb_format_valid(format))
        return false;
    if (format->kind == GB_FORMAT_PROGRESSIVE || method == GB_METHOD_SEARCH)
        return format->kind == GB_FORMAT_PROGRESSIVE && method == GB_METHOD_SEARCH;
    if (format->kind != GB_FORMAT_ONE_LEVEL)
        return false;
    return method == GB_METHOD_MIN_MAX || (format->group > 0 && format->has_bias);
}

gb_quantized_row gb_quantized_row_in(const gb_format *format, const gb_planes *planes, uint64_t row,
                                     uint8_t *codes, uint8_t *data, uint64_t begin) {
    uint8_t *scales = data + (planes->scales.offset - begin) + row * planes->scales.row_bytes;
    gb_quantized_row to = {.codes = codes};
    if (format->kind == GB_FORMAT_PROGRESSIVE) {
        to.group_bytes = scales;
        to.super_scale = (uint16_t *)(void *)(data + (planes->super_scales.offset - begin) +
                                              row * planes->super_scales.row_bytes);
        return to;
    }
    to.scales = (uint16_t *)(void *)scales;
    if (format->has_bias)
        to.biases =
            (uint16_t *)(void *)(data + (planes->biases.offset - begin) + row * planes->biases.row_bytes);
    return to;
}

void gb_rotate_row(float *values, uint64_t columns, uint32_t rotation) {
    const float scale = gb_hadamard_scale(rotation);
    for (uint64_t at = 0; at < columns; at += rotation)
        gb_hadamard(values + at, rotation);
    for (uint64_t i = 0; i < columns; i++)
        values[i] *= scale;
}

/* ---- One group ----------------------------------------------------------------------------------------- */

typedef struct range {
    float low, high;
} range;

/* False where a value is not finite. */
static bool find_range(const float *values, uint64_t count, range *found) {
    *found = (range){values[0], values[0]};
    bool is_finite = true;
    for (uint64_t i = 0; i < count; i++) {
        is_finite &= isfinite(values[i]) != 0;
        found->low = values[i] < found->low ? values[i] : found->low;
        found->high = values[i] > found->high ? values[i] : found->high;
    }
    return is_finite;
}

/* The rounded scale is what the bias then works with. A rounded bias may lie above the lowest weight and the
 * last code below the highest one by half a unit of 16 bits, which is far below half a step. */
static gb_affine affine_of(gb_quantize_method method, const gb_format *format, const float *values,
                           uint64_t count, range found) {
    float steps = (float)((1u << format->bits) - 1u);
    float scale =
        gb_widen_half(gb_round_half((found.high - found.low) / steps, format->scale), format->scale);
    float bias = found.low;
    if (method == GB_METHOD_HQQ && scale > 0)
        bias = gb_hqq_bias(values, (uint32_t)count, format->bits, scale, bias);
    return (gb_affine){scale, gb_widen_half(gb_round_half(bias, format->scale), format->scale)};
}

/* Without a bias codes reach one step further below the center than above it, so the weight of the largest
 * magnitude goes below it, by a negative scale where it is positive. */
static gb_affine symmetric_of(const gb_format *format, range found) {
    float largest = -found.low > found.high ? found.low : found.high;
    float scale = largest / -(float)(1u << (format->bits - 1));
    return (gb_affine){gb_widen_half(gb_round_half(scale, format->scale), format->scale), 0};
}

static void put_codes(const gb_format *format, const float *values, uint64_t first, uint64_t count,
                      gb_affine affine, uint8_t *codes) {
    float highest = (float)((1u << format->bits) - 1u), center = (float)gb_format_center(format);
    float inverse = affine.scale != 0 ? 1.0f / affine.scale : 0.0f;
    if (!isfinite(inverse))
        inverse = 0;
    for (uint64_t i = 0; i < count; i++) {
        float code = rintf((values[first + i] - affine.bias) * inverse) + center;
        code = code < 0 ? 0 : code > highest ? highest : code;
        gb_put_code(codes, format->bits, first + i, (uint32_t)code);
    }
}

bool gb_quantize_row(gb_quantize_method method, const gb_format *format, const float *values,
                     uint64_t columns, const gb_quantized_row *row) {
    uint64_t size = format->group ? format->group : columns;
    memset(row->codes, 0, (size_t)(columns * format->bits + 7) / 8);
    if (method == GB_METHOD_SEARCH)
        return gb_quantize_progressive(format, values, columns, row);
    for (uint64_t group = 0; group < columns / size; group++) {
        const float *weights = values + group * size;
        range found;
        if (!find_range(weights, size, &found))
            return false;
        gb_affine affine =
            format->has_bias ? affine_of(method, format, weights, size, found) : symmetric_of(format, found);
        if (!isfinite(affine.scale) || !isfinite(affine.bias))
            return false;
        row->scales[group] = gb_round_half(affine.scale, format->scale);
        if (format->has_bias)
            row->biases[group] = gb_round_half(affine.bias, format->scale);
        put_codes(format, values, group * size, size, affine, row->codes);
    }
    return true;
}
