/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/gemm/dispatch.cuh"
#include "backends/cuda/moe/expert_inner_int8.cuh"
#include "backends/cuda/moe/expert_outer_int8.cuh"
#include "backends/cuda/moe/expert_step.cuh"

using namespace gb_cuda;

/* ---- Which ones it can be ------------------------------------------------------------------------------ */

enum {
    MOST_HIDDEN = INNER_MOST_ROUNDS * INNER_ROUND_COLUMNS,
    MOST_SIZE = OUTER_MOST_ROUNDS * WARP_COLUMNS, /* of an expert that is a warp's in down */
    MOST_WIDE = OUTER_WIDE * OUTER_WIDE_ROUNDS * WARP_COLUMNS,
};

static unsigned rotation_of(const gb_cuda_call *call) {
    return (unsigned)gb_node_int(call->node, GB_ATTRIBUTE_ROTATION);
}

/* Whether a part is a product of exact sums with a weight [.., outputs, inputs], whose fragments are whole.
 */
static bool is_supported(const gb_cuda_call *part, size_t outputs, size_t inputs) {
    const gb_cuda_tensor *weight = part->operands[1];
    return gb_cuda_is_in_int8_tiles(part) && outputs % GB_FRAGMENT_ROWS == 0 && inputs % UNIT == 0 &&
           weight->dims[weight->rank - 2] == outputs && weight->dims[weight->rank - 1] == inputs;
}

/* Whether the shared expert's is one, too, that a launch of the other can have. */
static bool joins(const gb_cuda_problem *problem, int part, int shared, size_t outputs, size_t inputs) {
    const gb_cuda_call *call = problem->parts[part], *other = problem->parts[shared];
    return !has_shared(problem) ||
           (is_supported(other, outputs, inputs) && rotation_of(call) == rotation_of(other) &&
            gb_format_equal(&call->operands[1]->format, &other->operands[1]->format));
}

/* Warps that have a down product's columns of an expert. */
static unsigned shares_of(size_t size) {
    return size <= MOST_SIZE ? 1 : OUTER_WIDE;
}

/* Wide experts of several tokens are products of their own, which read what tokens have in common once. */
static bool fits_outer(const gb_cuda_problem *problem, size_t size) {
    return size <= MOST_SIZE ||
           (size <= MOST_WIDE && count_of(problem) <= OUTER_WIDE_EXPERTS && tokens_of(problem) == 1);
}

bool gb_cuda_supports_experts_int8(const gb_cuda_problem *problem) {
    const gb_cuda_tensor *down = problem->operands[GB_EXPERTS_DOWN_WEIGHT];
    const size_t size = down->dims[2], hidden = down->dims[1];
    return supports_choice(problem) && problem->parts[GB_EXPERTS_ROUTE]->row_class <= GB_CUDA_FEW_ROWS &&
           hidden <= MOST_HIDDEN && fits_outer(problem, size) && size % GB_FRAGMENT_ROWS == 0 &&
           is_supported(problem->parts[GB_EXPERTS_GATE_UP], 2 * size, hidden) &&
           is_supported(problem->parts[GB_EXPERTS_DOWN], hidden, size) &&
           joins(problem, GB_EXPERTS_GATE_UP, GB_EXPERTS_SHARED_GATE, size, hidden) &&
           joins(problem, GB_EXPERTS_GATE_UP, GB_EXPERTS_SHARED_UP, size, hidden) &&
           joins(problem, GB_EXPERTS_DOWN, GB_EXPERTS_SHARED_DOWN, hidden, size) &&
           is_aligned(problem->operands[GB_EXPERTS_X]->data);
}

/* ---- What the kernels take ----------------------------------------------------------------------------- */

static int8_matrix matrix_of(const gb_cuda_problem *problem, int part) {
    uint32_t tiles = 0;
    return problem->parts[part] ? gb_cuda_int8_matrix(problem->parts[part], &tiles) : int8_matrix{};
}

static expert_columns columns_of(const gb_cuda_call *product) {
    const gb_cuda_tensor *weight = product->operands[1];
    const unsigned rotation = rotation_of(product);
    const size_t inputs = weight->dims[weight->rank - 1];
    return {blocks_for(inputs, GB_TILE_COLUMNS), (uint32_t)inputs, rotation, gb_hadamard_scale(rotation)};
}

static expert_bias bias_of(const gb_cuda_tensor *bias) {
    expert_bias b = {};
    if (bias) {
        b.values = bias->data;
        b.dtype = bias->dtype;
        b.columns = (uint32_t)bias->dims[1];
    }
    return b;
}

static void take_gates(const gb_cuda_problem *problem, expert_inner_int8 *p) {
    const gb_node *node = problem->parts[GB_EXPERTS_INNER]->node;
    if (!is_clamped(problem))
        return;
    p->biases[0] = bias_of(problem->operands[GB_EXPERTS_GATE_BIAS]);
    p->biases[1] = bias_of(problem->operands[GB_EXPERTS_UP_BIAS]);
    p->alpha = (float)gb_node_float(node, GB_ATTRIBUTE_ALPHA);
    p->limit = (float)gb_node_float(node, GB_ATTRIBUTE_LIMIT);
}

static expert_inner_int8 inner_of(const gb_cuda_problem *problem) {
    const gb_cuda_tensor *down = problem->operands[GB_EXPERTS_DOWN_WEIGHT];
    expert_inner_int8 p = {};
    p.weight = matrix_of(problem, GB_EXPERTS_GATE_UP);
    p.shared_gate = matrix_of(problem, GB_EXPERTS_SHARED_GATE);
    p.shared_up = matrix_of(problem, GB_EXPERTS_SHARED_UP);
    if (chooses_in_blocks(problem))
        p.next = matrix_of(problem, GB_EXPERTS_DOWN);
    const size_t rows = blocks_for(down->dims[1], GB_TILE_ROWS) * GB_TILE_ROWS;
    p.next_codes = (uint32_t)(down->planes.codes.row_bytes * rows);
    p.next_groups = (uint32_t)(down->planes.scales.row_bytes * rows);
    p.x = data_of<const float>(problem->operands[GB_EXPERTS_X]);
    p.of = columns_of(problem->parts[GB_EXPERTS_GATE_UP]);
    p.choice = choice_of(problem);
    take_gates(problem, &p);
    return p;
}

static expert_outer_int8 outer_of(const gb_cuda_problem *problem, const expert_values &values) {
    expert_outer_int8 p = {};
    p.weight = matrix_of(problem, GB_EXPERTS_DOWN);
    p.shared = matrix_of(problem, GB_EXPERTS_SHARED_DOWN);
    p.of = columns_of(problem->parts[GB_EXPERTS_DOWN]);
    p.from = values;
    p.bias = bias_of(problem->operands[GB_EXPERTS_DOWN_BIAS]);
    if (problem->operands[GB_EXPERTS_RESIDUAL])
        p.residual = data_of<const float>(problem->operands[GB_EXPERTS_RESIDUAL]);
    p.y = data_of<float>(result_of(problem)->results[0]);
    return p;
}

/* ---- Launches ------------------------------------------------------------------------------------------ */

static size_t group_of(const gb_cuda_problem *problem, int operand) {
    return problem->operands[operand]->format.group;
}

static inner_activation activation_of(const gb_cuda_problem *problem) {
    return is_clamped(problem) ? INNER_CLAMPED : is_gelu(problem) ? INNER_GELU : INNER_SILU;
}

static void launch_inner(const gb_cuda_problem *problem, const expert_inner_int8 &p) {
    const unsigned tokens = (unsigned)tokens_of(problem);
    const unsigned rounds = blocks_for(p.of.columns(), INNER_ROUND_COLUMNS);
    const unsigned shares =
        count_shares(p.choice.to.size / GB_FRAGMENT_ROWS, (size_t)p.choice.to.count * tokens,
                     (unsigned)inner_at_once((int)rounds));
    const dim3 grid(shares, p.choice.to.count, tokens);
    dispatch(
        [&](auto group, auto count, auto activation) {
            constexpr auto of_gates = (inner_activation)(int)activation;
            add_launch(problem->parts[GB_EXPERTS_ROUTE]->launches, "expert_inner_int8",
                       run_expert_inner_int8<group, count, of_gates>, grid, INNER_THREADS,
                       row_operand::bytes(p.of.columns()), p);
        },
        one_of<32, 64, 128>(group_of(problem, GB_EXPERTS_GATE_UP_WEIGHT)),
        one_of<1, INNER_MOST_ROUNDS>(rounds),
        one_of<INNER_SILU, INNER_GELU, INNER_CLAMPED>((size_t)activation_of(problem)));
}

/* Rounds that the kernel has an instance for. */
static size_t instance_of(unsigned rounds, unsigned shares) {
    if (shares > 1)
        return OUTER_WIDE_ROUNDS;
    return rounds <= 2 ? 2 : OUTER_MOST_ROUNDS;
}

static void launch_outer(const gb_cuda_problem *problem, const expert_outer_int8 &p) {
    const unsigned tokens = (unsigned)tokens_of(problem);
    const dim3 grid(count_shares(p.weight.outputs / GB_FRAGMENT_ROWS, tokens, OUTER_AT_ONCE), tokens);
    const unsigned shares = shares_of(p.from.size),
                   rounds = blocks_for(p.of.columns(), shares * WARP_COLUMNS);
    dispatch(
        [&](auto group, auto count, auto has_all) {
            constexpr int each = count > OUTER_MOST_ROUNDS ? OUTER_WIDE : 1;
            add_launch(problem->parts[GB_EXPERTS_ROUTE]->launches, "expert_outer_int8",
                       run_expert_outer_int8<group, count, each, has_all != 0>, grid,
                       p.from.count * shares * WARP, p.from.count * row_operand::bytes(p.of.columns()), p);
        },
        one_of<32, 64, 128>(group_of(problem, GB_EXPERTS_DOWN_WEIGHT)),
        one_of<2, OUTER_MOST_ROUNDS, OUTER_WIDE_ROUNDS>(instance_of(rounds, shares)),
        one_of<0, 1>(p.shared.codes && p.residual));
}

void gb_cuda_expert_mlp_int8(const gb_cuda_problem *problem) {
    const expert_inner_int8 inner = inner_of(problem);
    const expert_outer_int8 outer = outer_of(problem, inner.choice.to);
    launch_inner(problem, inner);
    launch_outer(problem, outer);
}
