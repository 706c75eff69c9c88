/* SPDX-License-Identifier: Apache-2.0
 *
 * Mixed widths: which matrices of a recipe get 8 bits, so that a file of a given size loses the least.
 */
#ifndef GUMBEL_EXPORT_QUANTIZE_WIDTHS_H
#define GUMBEL_EXPORT_QUANTIZE_WIDTHS_H

#include "export/quantize/recipe.h"

/* Whether a recipe's format is one of those that can become wider: progressive ones, all below 8 bits. */
bool gb_can_widen(const gb_format *format);

/* 8 bits and a scale a row, which have the fastest kernels; the format that gb_widen gives. */
gb_format gb_wide_format(void);

/* Makes the choice that, with the input that the recipe says. */
void gb_widen(gb_quantize_choice *choice);

/* What becomes wider at once: a matrix, or several. */
typedef struct gb_widening {
    double gain;    /* by how much the sum of the losses falls */
    uint64_t bytes; /* by how much the file grows */
    bool is_taken;
} gb_widening;

/* Takes those of the largest gain per byte until none of the others fits into what is left of `room` bytes;
 * of equal ones the first. Returns the bytes that those taken have. */
uint64_t gb_choose_widths(gb_widening *widenings, size_t count, uint64_t room);

#endif
