/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/mlx/codes.hpp"

extern "C" {
#include "tensor/cache_codes.h"
}

#include <cmath>

namespace gb_mlx {

static int code_bytes(gb_dtype dtype, int elements) {
    return static_cast<int>(gb_code_bytes(dtype, static_cast<size_t>(elements)));
}

static int scale_bytes(int elements) {
    return static_cast<int>(gb_code_scale_bytes(static_cast<size_t>(elements)));
}

int coded_bytes(gb_dtype dtype, int elements) {
    return code_bytes(dtype, elements) + scale_bytes(elements);
}

/* The last axis as two, of which the inner one has that size; and the last two as one. */
static mx::array split_last(const mx::array &x, int size) {
    return mx::unflatten(x, -1, {x.shape(-1) / size, size});
}

static mx::array join_last(const mx::array &x) {
    return mx::flatten(x, -2, -1);
}

/* ---- Rounding ------------------------------------------------------------------------------------------ */

/* The NaN that is stored: MLX has several ways to narrow one. */
static mx::array stored_nan() {
    return mx::view(mx::array(uint16_t{0x7e00}, mx::uint16), mx::float16);
}

/* The scale [..,1] of each group [..,32], in float16. MLX's max is NaN where an element is. */
static mx::array scales_of(const mx::array &groups, gb_dtype dtype) {
    const mx::array largest = mx::max(mx::abs(groups), -1, true);
    mx::array scale = mx::divide(largest, number(127));
    if (dtype == GB_Q4) {
        const mx::array is_above = mx::greater(mx::min(groups, -1, true), mx::negative(largest));
        scale = mx::multiply(largest, mx::where(is_above, number(-0.125), number(0.125)));
    }
    const mx::array narrow = mx::astype(scale, mx::float16);
    return mx::where(mx::less(mx::abs(narrow), number(INFINITY)), narrow, stored_nan());
}

/* The codes of groups, int8; of a scale that is 0 or NaN they are 0. */
static mx::array codes_of(const mx::array &groups, const mx::array &scales, gb_dtype dtype) {
    const mx::array step = mx::astype(scales, mx::float32), is_usable = mx::greater(mx::abs(step), number(0));
    const mx::array least = number(dtype == GB_Q8 ? -127 : -8), most = number(dtype == GB_Q8 ? 127 : 7);
    const mx::array code = mx::round(mx::clip(mx::divide(groups, step), least, most));
    return mx::astype(mx::where(is_usable, code, number(0)), mx::int8);
}

/* Groups of codes [..,32] to bytes [..,32] or [..,16]. */
static mx::array packed(const mx::array &codes, gb_dtype dtype) {
    if (dtype == GB_Q8)
        return mx::view(codes, mx::uint8);
    const mx::array nibbles = mx::view(mx::add(codes, mx::array(8, mx::int8)), mx::uint8);
    const mx::array low = part(nibbles, -1, 0, GB_CODE_GROUP / 2);
    const mx::array high = part(nibbles, -1, GB_CODE_GROUP / 2, GB_CODE_GROUP);
    return mx::bitwise_or(low, mx::left_shift(high, mx::array(4, mx::uint8)));
}

mx::array round_to_codes(const mx::array &x, gb_dtype dtype) {
    const mx::array groups = split_last(x, GB_CODE_GROUP), scales = scales_of(groups, dtype);
    const mx::array codes = join_last(packed(codes_of(groups, scales, dtype), dtype));
    return mx::concatenate({codes, mx::view(join_last(scales), mx::uint8)}, -1);
}

/* ---- Reading ------------------------------------------------------------------------------------------- */

/* Bytes of codes to groups of int8 [..,32]. */
static mx::array unpacked(const mx::array &bytes, gb_dtype dtype) {
    if (dtype == GB_Q8)
        return split_last(mx::view(bytes, mx::int8), GB_CODE_GROUP);
    const mx::array groups = split_last(bytes, GB_CODE_GROUP / 2);
    const mx::array low = mx::bitwise_and(groups, mx::array(15, mx::uint8));
    const mx::array high = mx::right_shift(groups, mx::array(4, mx::uint8));
    return mx::subtract(mx::view(mx::concatenate({low, high}, -1), mx::int8), mx::array(8, mx::int8));
}

mx::array numbers_of_codes(const mx::array &heads, gb_dtype dtype, int elements) {
    const int end = code_bytes(dtype, elements);
    const mx::array codes = unpacked(part(heads, -1, 0, end), dtype);
    const mx::array scales = mx::view(part(heads, -1, end, heads.shape(-1)), mx::float16);
    return join_last(
        mx::multiply(mx::astype(codes, mx::float32), mx::expand_dims(mx::astype(scales, mx::float32), -1)));
}

/* ---- Saving -------------------------------------------------------------------------------------------- */

mx::array to_saved(const mx::array &heads, gb_dtype dtype, int elements) {
    const int end = code_bytes(dtype, elements);
    return mx::concatenate(
        {join_last(part(heads, -1, 0, end)), join_last(part(heads, -1, end, heads.shape(-1)))}, -1);
}

mx::array from_saved(const mx::array &rows, gb_dtype dtype, int elements) {
    const int codes = code_bytes(dtype, elements), scales = scale_bytes(elements);
    const int end = rows.shape(-1) / (codes + scales) * codes;
    return mx::concatenate(
        {split_last(part(rows, -1, 0, end), codes), split_last(part(rows, -1, end, rows.shape(-1)), scales)},
        -1);
}

} // namespace gb_mlx
