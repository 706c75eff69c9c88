/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes of a book as 8-bit codes of the same numbers, which kernels for tensor cores have: twice the memory,
 * and no number changes.
 */
#ifndef GUMBEL_BACKENDS_CUDA_RUNTIME_EXPAND_CODES_H
#define GUMBEL_BACKENDS_CUDA_RUNTIME_EXPAND_CODES_H

#include "tensor/format.h"

/* Sets *wide to the format of 8 bits that holds every weight of one of format. False where there is none: no
 * book, scales of two levels, or a book's own unit. */
bool gb_cuda_expanded_format(const gb_format *format, gb_format *wide);

/* count codes of a whole number of bytes; bytes has one for each. Thread-safe. */
void gb_cuda_expand_codes(const gb_format *format, const uint8_t *codes, uint64_t count, uint8_t *bytes);

#endif
