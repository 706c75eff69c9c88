/* SPDX-License-Identifier: Apache-2.0
 *
 * What every file of the MLX backend needs: MLX, the C side's types, and errors. Inside the backend errors
 * are exceptions, MLX's own and `failure`; backend.cpp turns them into statuses.
 */
#ifndef GUMBEL_RUN_MLX_ARRAYS_HPP
#define GUMBEL_RUN_MLX_ARRAYS_HPP

extern "C" {
#include "backends/backend.h"
#include "program/program.h"
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

/* MLX's dtype for one of ours, of codes that of their bytes; throws for GB_QUANTIZED. */
mx::Dtype dtype_of(gb_dtype dtype);

/* One float32 number. */
inline mx::array number(double value) {
    return mx::array(static_cast<float>(value));
}

/* The array once it has been computed. */
mx::array evaluated(mx::array array);

/* The shape of a value of a program when a step has one token or row. */
mx::Shape shape_for_one(const gb_program &program, gb_ref value);

/* A constant beside values of any number of tokens. MLX repeats it for each of them by one more op; with one
 * token, whose step is as long as its ops are many, it has the value's shape already. */
class repeated {
  public:
    repeated(const mx::array &constant, const mx::Shape &for_one);

    const mx::array &beside(const mx::array &value) const {
        return value.shape() == once.shape() ? once : any;
    }

  private:
    mx::array any, once;
};

/* Items first .. end - 1 along an axis. */
mx::array part(const mx::array &x, int axis, int first, int end);

/* x with each block of a row multiplied by the orthonormal Hadamard matrix; x itself where block is 0. */
mx::array rotated(const mx::array &x, int block);

} // namespace gb_mlx

#endif
