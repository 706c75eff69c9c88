/* SPDX-License-Identifier: Apache-2.0
 *
 * The grids of GGUF's IQ1, IQ2 and IQ3 types: points that say which magnitudes successive weights have.
 */
#ifndef GUMBEL_EXPORT_QUANTIZE_GRIDS_H
#define GUMBEL_EXPORT_QUANTIZE_GRIDS_H

#include <stdint.h>

/* Of 8 weights, in pairs of bits: 0, 1, 2 for 8, 25, 43 eighths, or for -1, 0, 1. */
extern const uint16_t gb_grid_iq2_xxs[256], gb_grid_iq2_xs[512], gb_grid_iq2_s[1024], gb_grid_iq1[2048];

/* Of 4 weights, in nibbles: numbers of magnitudes that grow. */
extern const uint16_t gb_grid_iq3_xxs[256], gb_grid_iq3_s[512];

#endif
