/* SPDX-License-Identifier: Apache-2.0
 *
 * What every file of the MLX backend needs: MLX, the C side's types, and errors. Inside the backend errors
 * are exceptions, MLX's own and `failure`; backend.cpp turns them into statuses.
 */
#ifndef GUMBEL_RUN_MLX_ARRAYS_HPP
#define GUMBEL_RUN_MLX_ARRAYS_HPP

extern "C" {
#include "program/program.h"
#include "run/backend.h"
}

#include <mlx/mlx.h>

#include <stdexcept>
#include <string>

namespace gb_mlx {

namespace mx = mlx::core;

/* An error with its status and its one clear line. */
class failure : public std::runtime_error {
  public:
    failure(gumbel_status kind, const std::string &line) : std::runtime_error(line), status(kind) {}
    const gumbel_status status;
};

/* MLX's dtype for one of ours; throws for GB_QUANTIZED. */
mx::Dtype dtype_of(gb_dtype dtype);

/* One float32 number. */
inline mx::array number(double value) {
    return mx::array(static_cast<float>(value));
}

/* The array once it has been computed. */
mx::array evaluated(mx::array array);

/* Items first .. end - 1 along an axis. */
mx::array part(const mx::array &x, int axis, int first, int end);

} // namespace gb_mlx

#endif
