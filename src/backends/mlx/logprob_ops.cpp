/* SPDX-License-Identifier: Apache-2.0
 *
 * Log-probabilities. In a step in which no row wants them nothing is computed.
 */
#include "backends/mlx/lowering.hpp"

#include <algorithm>
#include <limits>

namespace gb_mlx {

static bool is_wanted(const step &s, gb_ref wanted) {
    const bool *rows = s.host<bool>(wanted);
    return !rows || std::find(rows, rows + s.row_count(), true) != rows + s.row_count();
}

static operation log_normalizer(const gb_node &node, weights &) {
    return [x = node.operands[0], wanted = node.operands[1], y = node.results[0]](step &s) {
        if (!is_wanted(s, wanted)) {
            s.set(y, mx::zeros({s.row_count(), 2}, mx::float32));
            return;
        }
        const mx::array max = mx::max(s[x], 1, true);
        const mx::array sum = mx::sum(mx::exp(mx::subtract(s[x], max)), 1, true);
        const mx::array both = mx::concatenate({max, mx::log(sum)}, 1);
        s.set(y, mx::where(mx::expand_dims(s[wanted], 1), both, mx::array(0.0f)));
    };
}

/* An id that is no column takes column 0 for the moment. */
static operation log_probability(const gb_node &node, weights &) {
    return [x = node.operands[0], normalizer = node.operands[1], ids = node.operands[2],
            y = node.results[0]](step &s) {
        const mx::array zero = mx::array(0);
        const mx::array columns = s[ids].ndim() == 1 ? mx::expand_dims(s[ids], 1) : s[ids];
        const mx::array is_column =
            mx::logical_and(mx::greater_equal(columns, zero), mx::less(columns, mx::array(s[x].shape(1))));
        const mx::array values = mx::take_along_axis(s[x], mx::where(is_column, columns, zero), 1);
        const mx::array &n = s[normalizer];
        const mx::array logprob = mx::subtract(mx::subtract(values, part(n, 1, 0, 1)), part(n, 1, 1, 2));
        const mx::array outside = mx::array(-std::numeric_limits<float>::infinity());
        s.set(y, mx::reshape(mx::where(is_column, logprob, outside), s[ids].shape()));
    };
}

/* The stable sort leaves the lowest index first among equals. */
static operation top_ids(const gb_node &node, weights &) {
    const auto count = static_cast<int>(gb_node_int(&node, GB_ATTRIBUTE_COUNT));
    return [=, x = node.operands[0], wanted = node.operands[1], y = node.results[0]](step &s) {
        const mx::array none = mx::full({s.row_count(), count}, -1, mx::int32);
        if (!is_wanted(s, wanted)) {
            s.set(y, none);
            return;
        }
        const mx::array ids = part(mx::argsort(mx::negative(s[x]), 1), 1, 0, count);
        s.set(y, mx::where(mx::expand_dims(s[wanted], 1), mx::astype(ids, mx::int32), none));
    };
}

const op_entry logprob_ops[] = {
    {GB_OP_LOG_NORMALIZER, log_normalizer},
    {GB_OP_LOG_PROBABILITY, log_probability},
    {GB_OP_TOP_IDS, top_ids},
    {GB_OP_NONE, nullptr},
};

} // namespace gb_mlx
