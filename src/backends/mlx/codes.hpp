/* SPDX-License-Identifier: Apache-2.0
 *
 * The codes of tensor/cache_codes.h as MLX's arrays of bytes. In memory each head has a row of its own, its
 * codes and then its scales; a saved row has the codes of all heads before their scales.
 */
#ifndef GUMBEL_RUN_MLX_CODES_HPP
#define GUMBEL_RUN_MLX_CODES_HPP

#include "backends/mlx/arrays.hpp"

namespace gb_mlx {

/* Bytes of so many elements, a multiple of GB_CODE_GROUP, with their scales. */
int coded_bytes(gb_dtype dtype, int elements);

/* Heads [..,elements] of float32, rounded: [..,coded_bytes]. */
mx::array round_to_codes(const mx::array &x, gb_dtype dtype);

/* What the codes of heads [..,coded_bytes] stand for: float32 [..,elements]. */
mx::array numbers_of_codes(const mx::array &heads, gb_dtype dtype, int elements);

/* From heads [n,G,coded_bytes] to rows as they are saved, [n,G * coded_bytes], and back. */
mx::array to_saved(const mx::array &heads, gb_dtype dtype, int elements);
mx::array from_saved(const mx::array &rows, gb_dtype dtype, int elements);

} // namespace gb_mlx

#endif
