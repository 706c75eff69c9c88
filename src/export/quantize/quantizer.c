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
    if (!gb_format_valid(format) || format->bits < 4 || format->book != GB_BOOK_NONE)
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

float gb_inverse_scale(gb_affine affine) {
    const float inverse = affine.scale != 0 ? 1.0f / affine.scale : 0.0f;
    return isfinite(inverse) ? inverse : 0.0f;
}

/* ---- Rows ---------------------------------------------------------------------------------------------- */

bool gb_begin_row(const gb_format *format, const float *values, uint64_t columns, const gb_quantized_row *row,
                  float *row_scale) {
    memset(row->codes, 0, (size_t)(columns * format->bits + 7) / 8);
    *row_scale = 0;
    if (format->kind != GB_FORMAT_PROGRESSIVE)
        return true;
    if (!gb_find_row_scale(format, values, columns, row_scale))
        return false;
    *row->super_scale = gb_f16_from_float(*row_scale);
    return true;
}

static bool fit_one_level(gb_quantize_method method, const gb_format *format, const float *values,
                          uint64_t count, uint64_t group, const gb_quantized_row *row, gb_affine *affine) {
    range found;
    if (!find_range(values, count, &found))
        return false;
    *affine =
        format->has_bias ? affine_of(method, format, values, count, found) : symmetric_of(format, found);
    if (!isfinite(affine->scale) || !isfinite(affine->bias))
        return false;
    row->scales[group] = gb_round_half(affine->scale, format->scale);
    if (format->has_bias)
        row->biases[group] = gb_round_half(affine->bias, format->scale);
    return true;
}

bool gb_fit_group(gb_quantize_method method, const gb_format *format, float row_scale, const float *values,
                  uint64_t count, uint64_t group, const gb_quantized_row *row, gb_affine *affine) {
    if (format->kind != GB_FORMAT_PROGRESSIVE)
        return fit_one_level(method, format, values, count, group, row, affine);
    const gb_group_integers integers = gb_find_group_integers(format, values, row_scale);
    row->group_bytes[group] = gb_put_group_integers(format->bits, integers);
    *affine = gb_group_affine(row_scale, integers);
    return true;
}

static void put_codes(const gb_format *format, const float *values, uint64_t first, uint64_t count,
                      gb_affine affine, uint8_t *codes) {
    const float inverse = gb_inverse_scale(affine);
    for (uint64_t i = first; i < first + count; i++)
        gb_put_code(codes, format->bits, i, (uint32_t)gb_nearest_code(format, affine, inverse, values[i]));
}

bool gb_quantize_row(gb_quantize_method method, const gb_format *format, const float *values,
                     uint64_t columns, const gb_quantized_row *row) {
    const uint64_t size = format->group ? format->group : columns;
    float row_scale;
    if (!gb_begin_row(format, values, columns, row, &row_scale))
        return false;
    for (uint64_t group = 0; group < columns / size; group++) {
        gb_affine affine;
        if (!gb_fit_group(method, format, row_scale, values + group * size, size, group, row, &affine))
            return false;
        put_codes(format, values, group * size, size, affine, row->codes);
    }
    return true;
}
