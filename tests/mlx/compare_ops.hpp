/* SPDX-License-Identifier: Apache-2.0
 *
 * Op by op: every op of a program on MLX and as the portable kernel, given the same inputs.
 */
#ifndef GUMBEL_TESTS_MLX_COMPARE_OPS_HPP
#define GUMBEL_TESTS_MLX_COMPARE_OPS_HPP

#include "mlx/graph_support.hpp"

#include <set>

struct comparison {
    bool has_fused_kernels = false; /* what another device would compute with kernels of its own */
    int prompt = 4;                 /* tokens of the first run, at most the program's prefill chunk */
};

/* Runs batches of two slots, with rows of every setting. Numbers differ by at most 2 units in the last place
 * of their row's largest and the rounding of their sum, which for matrix products is that in double; what is
 * no float is equal. Otherwise the test ends. Returns the ops that were compared. */
std::set<gb_op> compare_program(const gb_program &program, const comparison &how = {});

#endif
