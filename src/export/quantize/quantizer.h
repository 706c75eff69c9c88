/* SPDX-License-Identifier: Apache-2.0
 *
 * From float32 weights to the planes of a one-level or progressive format, one row at a time. Rows do not
 * depend on each other, so that any number of threads gives the same bytes.
 */
#ifndef GUMBEL_EXPORT_QUANTIZE_QUANTIZER_H
#define GUMBEL_EXPORT_QUANTIZE_QUANTIZER_H

#include "tensor/format.h"

typedef enum gb_quantize_method {
    GB_METHOD_MIN_MAX = 0, /* the codes cover what the group holds */
    GB_METHOD_HQQ = 1, /* then the bias is moved to where most weights fit well; needs groups and a bias */
    GB_METHOD_SEARCH =
        2 /* scales and zeros of the least squared error; of progressive formats, their only one */
} gb_quantize_method;

/* "min-max", "hqq" or "search". */
const char *gb_quantize_method_name(gb_quantize_method method);

/* Whether the method makes that format. */
bool gb_can_quantize(gb_quantize_method method, const gb_format *format);

/* Where a row's parts go: as in format.h's planes; what the format lacks may be NULL. codes holds row_bytes;
 * scales and biases have one 16-bit number for each group, group_bytes one byte, super_scale one number. */
typedef struct gb_quantized_row {
    uint8_t *codes;
    uint16_t *scales, *biases;
    uint8_t *group_bytes;
    uint16_t *super_scale;
} gb_quantized_row;

/* The row of a matrix with these planes whose bytes from `begin` on are data; its codes may be elsewhere. */
gb_quantized_row gb_quantized_row_in(const gb_format *format, const gb_planes *planes, uint64_t row,
                                     uint8_t *codes, uint8_t *data, uint64_t begin);

/* Quantizes a row that the format fits. False where a weight is not finite, or too large for the format's
 * scales; row is then undefined. Thread-safe. */
bool gb_quantize_row(gb_quantize_method method, const gb_format *format, const float *values,
                     uint64_t columns, const gb_quantized_row *row);

/* Multiplies each block of `rotation` values, which divides the columns, by the orthonormal Hadamard matrix.
 */
void gb_rotate_row(float *values, uint64_t columns, uint32_t rotation);

/* ---- For the methods ----------------------------------------------------------------------------------- */

enum { GB_MAX_GROUP = 128 };

/* What begins a row: its bytes of codes are cleared, and of a progressive format the row's scale is found,
 * written and told; of others that is 0. False as gb_quantize_row. */
bool gb_begin_row(const gb_format *format, const float *values, uint64_t columns, const gb_quantized_row *row,
                  float *row_scale);

/* Finds and writes scale and bias of a group of `count` values (the format's group, or the row), of which the
 * row's index is group. False as gb_quantize_row. */
bool gb_fit_group(gb_quantize_method method, const gb_format *format, float row_scale, const float *values,
                  uint64_t count, uint64_t group, const gb_quantized_row *row, gb_affine *affine);

/* The integer next to value, from 0 to highest. */
static inline float gb_round_code(float value, float highest) {
    const float round_to_int = 0x1.8p+23f;
    const float code = (value + round_to_int) - round_to_int;
    return code < 0 ? 0 : code > highest ? highest : code;
}

/* The nearest code to value. inverse is gb_inverse_scale of the affine. */
static inline float gb_nearest_code(const gb_format *format, gb_affine affine, float inverse, float value) {
    return gb_round_code((value - affine.bias) * inverse + (float)gb_format_center(format),
                         (float)((1u << format->bits) - 1u));
}

/* 0 where the scale is 0, or too small to divide by. */
float gb_inverse_scale(gb_affine affine);

/* The search for a progressive row's scale, and for a group's integers with it (progressive.c). False as
 * gb_quantize_row. */
bool gb_find_row_scale(const gb_format *format, const float *values, uint64_t columns, float *scale);
gb_group_integers gb_find_group_integers(const gb_format *format, const float *values, float row_scale);

/* Moves the bias of a group of at most GB_MAX_GROUP values whose scale stays (hqq.c): half-quadratic
 * quantization, Badri and Shaji, "Half-Quadratic Quantization of Large Machine Learning Models", 2023. */
float gb_hqq_bias(const float *values, uint32_t count, uint32_t bits, float scale, float bias);

#endif
