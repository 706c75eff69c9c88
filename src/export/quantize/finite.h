/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights are finite numbers: a program with a NaN or an infinity among them would give nothing but errors.
 */
#ifndef GUMBEL_EXPORT_QUANTIZE_FINITE_H
#define GUMBEL_EXPORT_QUANTIZE_FINITE_H

#include "program/program.h"

/* The index of the first of count numbers (f32, f16 or bf16) that is NaN or infinite; count where all are
 * finite. */
uint64_t gb_first_not_finite(const void *numbers, gb_dtype dtype, uint64_t count);

/* FORMAT unless all count numbers are finite: those of a dense constant from element `first` on. Names the
 * constant and the element. Of another dtype than those above all are. */
gumbel_status gb_check_finite(const gb_constant *constant, const void *numbers, uint64_t first,
                              uint64_t count, gumbel_error *error);

/* The same of a row of a constant that is about to be quantized. */
gumbel_status gb_check_finite_row(const gb_constant *constant, const float *values, uint64_t row,
                                  gumbel_error *error);

/* The same of the scales and biases of a quantized one; others are its bytes from `begin` on. */
gumbel_status gb_check_finite_scales(const gb_constant *constant, const gb_planes *planes,
                                     const uint8_t *others, uint64_t begin, gumbel_error *error);

#endif
