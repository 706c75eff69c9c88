/* SPDX-License-Identifier: Apache-2.0
 *
 * The constants of a program as MLX's arrays. They wrap the file's mapping where MLX allows that, and are
 * converted where MLX computes on nothing of the kind; the conversions are counted, so that they can be
 * reported.
 */
#ifndef GUMBEL_RUN_MLX_WEIGHTS_HPP
#define GUMBEL_RUN_MLX_WEIGHTS_HPP

#include "backends/mlx/arrays.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace gb_mlx {

/* A constant of rank 2 [O,K] or 3 [X,O,K], dense or with codes for MLX's affine groups. All results are
 * float32. */
class matrix {
  public:
    mx::array weight;     /* numbers; of a quantized one codes, uint32 words */
    mx::array transposed; /* the numbers [K,O] or [X,K,O]; one of both is a view of the other */
    std::optional<mx::array> scales, biases;
    int group = 0, bits = 0;
    bool widens_for_prompts = false; /* a prompt's rows are multiplied by the numbers that codes stand for */

    explicit matrix(const mx::array &numbers);

    /* The same numbers in memory as [K,O]: without a kernel of its own MLX multiplies by the columns of a
     * view three times as slowly. */
    static matrix stored_transposed(const mx::array &numbers);

    /* y[m,o] = sum over k of x[m,k] * weight[o,k]. */
    mx::array multiply(const mx::array &x) const;

    /* Rows ids of a matrix of rank 2: [M,K]. */
    mx::array rows(const mx::array &ids) const;

    /* x [M,T,1,K] or [M,1,1,K], with experts [M,T] uint32 the first index of weight: [M,T,1,O]. rows [M,T]
     * uint32 are x's that each one multiplies; without them MLX makes them of x's shape. */
    mx::array multiply_experts(const mx::array &x, const std::optional<mx::array> &rows,
                               const mx::array &experts) const;

  private:
    matrix(const mx::array &numbers, const mx::array &transposed_numbers);
    mx::array multiply_widened(const mx::array &x) const;
};

/* A constant whose bytes are canonical: where they are mapped, or unpacked from a program that was laid out
 * for another backend. */
struct canonical_constant : gb_constant {
    std::shared_ptr<uint8_t> unpacked; /* owns data then */
};

class weights {
  public:
    weights(const gb_program &of_program, bool with_fused_kernels);

    /* The constant that a value is; loaded once, whoever asks. */
    std::shared_ptr<const matrix> matrix_of(gb_ref value);

    /* A dense constant of any shape as float32, not counted as converted. */
    mx::array numbers_of(gb_ref value) const;

    /* Makes sure that every matrix is in memory, and reports what was converted. */
    void finish(gumbel_log_callback log, void *user);

    const gb_program &program;

    /* Whether the device has a kernel for what mlx::core::fast offers; otherwise MLX builds it of other ops.
     */
    const bool has_fused_kernels;

  private:
    struct conversion {
        unsigned count = 0;
        size_t bytes = 0;
        void add(size_t more_bytes);
        void report(gumbel_log_callback log, void *user, const char *what) const;
    };
    conversion unpacked, widened, regrouped, converted, dequantized;
    std::set<uint32_t> multiplied; /* constants that a matrix product takes */
    std::map<uint32_t, std::shared_ptr<matrix>> matrices;

    canonical_constant constant_at(uint32_t index) const;
    matrix load(uint32_t index);
    matrix multiplied_matrix(const mx::array &numbers) const;
    matrix load_dense(const canonical_constant &constant, bool is_multiplied);
    matrix load_one_level(const canonical_constant &constant, const gb_planes &planes, int group);
    matrix load_two_level(const canonical_constant &constant, const gb_planes &planes);
    matrix dequantize(const canonical_constant &constant, const gb_planes &planes);
};

} // namespace gb_mlx

#endif
