/* SPDX-License-Identifier: Apache-2.0
 *
 * From float32 weights to codes, scales and biases of a one-level format, one row at a time. Rows do not
 * depend on each other, so that any number of threads gives the same bytes.
 */
#ifndef GUMBEL_EXPORT_QUANTIZE_QUANTIZER_H
#define GUMBEL_EXPORT_QUANTIZE_QUANTIZER_H

#include "tensor/format.h"

typedef enum gb_quantize_method {
    GB_METHOD_MIN_MAX = 0, /* the codes cover what the group holds */
    GB_METHOD_HQQ = 1 /* then the bias is moved to where most weights fit well; needs groups and a bias */
} gb_quantize_method;

/* "min-max" or "hqq". */
const char *gb_quantize_method_name(gb_quantize_method method);

/* Whether the method makes that format: one-level, and for HQQ with a group and a bias. */
bool gb_can_quantize(gb_quantize_method method, const gb_format *format);

/* Where a row's parts go: as in format.h's planes. codes holds row_bytes; scales and (with a bias in the
 * format) biases one 16-bit number for each group. */
typedef struct gb_quantized_row {
    uint8_t *codes;
    uint16_t *scales, *biases;
} gb_quantized_row;

/* Quantizes a row that the format fits. False where a weight is not finite, or too large for the format's
 * scales; row is then undefined. Thread-safe. */
bool gb_quantize_row(gb_quantize_method method, const gb_format *format, const float *values,
                     uint64_t columns, const gb_quantized_row *row);

/* ---- For the methods ----------------------------------------------------------------------------------- */

enum { GB_MAX_GROUP = 128 };

/* Moves the bias of a group of at most GB_MAX_GROUP values whose scale stays (hqq.c): half-quadratic
 * quantization, Badri and Shaji, "Half-Quadratic Quantization of Large Machine Learning Models", 2023. */
float gb_hqq_bias(const float *values, uint32_t count, uint32_t bits, float scale, float bias);

#endif
