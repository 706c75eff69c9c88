/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/gemm/dispatch.cuh"
#include "backends/cuda/moe/expert_inner.cuh"
#include "backends/cuda/moe/expert_outer.cuh"
#include "backends/cuda/moe/expert_step.cuh"

#include "backends/cuda/lowering/activations.h"

using namespace gb_cuda;

/* ---- Which ones it can be ------------------------------------------------------------------------------ */

enum {
    ROUND_ATOMS = MOST_INNER_ATOMS * EXPERT_WARPS,
    MOST_HIDDEN = MOST_INNER_ROUNDS * ROUND_ATOMS * EXPERT_COLUMNS,
    MOST_SIZE = MOST_OUTER_ATOMS * EXPERT_WARPS * EXPERT_COLUMNS,
    OWN_BYTES = 8 << 10 /* more than the kernels' own variables */
};

/* Whether a weight [.., outputs, inputs] is one that the kernels take. */
static bool is_supported(const gb_cuda_tensor *weight, size_t outputs, size_t inputs, size_t most_inputs) {
    return weight->is_packed && weight->int8_input && weight->format.bits == 4 &&
           (weight->format.group == 32 || weight->format.group == 64) &&
           weight->dims[weight->rank - 2] == outputs && weight->dims[weight->rank - 1] == inputs &&
           inputs <= most_inputs && inputs % EXPERT_COLUMNS == 0;
}

/* What the kernels know of a format, which is supported, when they are compiled: calls `work` with it. */
template <typename Work>
static auto with_shape(const gb_format &format, const Work &work) {
    if (format.group == 32)
        return format.scale == GB_BF16 ? work(expert_shape<32, true>{}) : work(expert_shape<32, false>{});
    return format.scale == GB_BF16 ? work(expert_shape<64, true>{}) : work(expert_shape<64, false>{});
}

/* Whether a block of threads has room for its rows of gate and up. */
static bool inner_fits(const gb_cuda_tensor *weight, size_t hidden) {
    const size_t bytes = with_shape(weight->format, [&](auto shape) {
        return inner_bytes<decltype(shape)>((uint32_t)(hidden / EXPERT_COLUMNS));
    });
    return bytes + OWN_BYTES <= most_shared_bytes();
}

/* The matrices of a launch have one format; down's may be another. */
static bool supports_inner(const gb_cuda_problem *problem, size_t size, size_t hidden) {
    const gb_cuda_tensor *weight = problem->operands[GB_EXPERTS_GATE_UP_WEIGHT],
                         *gate = problem->operands[GB_EXPERTS_SHARED_GATE_WEIGHT],
                         *up = problem->operands[GB_EXPERTS_SHARED_UP_WEIGHT];
    return is_supported(weight, 2 * size, hidden, MOST_HIDDEN) && inner_fits(weight, hidden) &&
           (!has_shared(problem) ||
            (is_supported(gate, size, hidden, MOST_HIDDEN) && is_supported(up, size, hidden, MOST_HIDDEN) &&
             gb_format_equal(&weight->format, &gate->format) &&
             gb_format_equal(&weight->format, &up->format)));
}

static bool supports_outer(const gb_cuda_problem *problem, size_t size, size_t hidden) {
    const gb_cuda_tensor *weight = problem->operands[GB_EXPERTS_DOWN_WEIGHT],
                         *shared = problem->operands[GB_EXPERTS_SHARED_DOWN_WEIGHT];
    return is_supported(weight, hidden, size, MOST_SIZE) &&
           (!has_shared(problem) || (is_supported(shared, hidden, size, MOST_SIZE) &&
                                     gb_format_equal(&weight->format, &shared->format)));
}

/* Blocks of threads, two to a multiprocessor, share a token's blocks of outputs: how many each has at most.
 */
static unsigned outer_rounds(size_t blocks, size_t tokens) {
    return blocks_for(blocks * tokens, 2 * gb_cuda_find_facts()->multiprocessors);
}

/* Whether a block of threads has room for what run_expert_outer has at a time. */
static bool outputs_fit(const gb_cuda_tensor *down, size_t tokens, size_t count) {
    const unsigned rounds = outer_rounds(down->dims[1] / GEMV_BLOCK_ROWS, tokens);
    const uint32_t atoms = (uint32_t)(down->dims[2] / EXPERT_COLUMNS);
    const size_t bytes = with_shape(down->format, [&](auto shape) {
        return outer_bytes<decltype(shape)>(atoms, (uint32_t)count, rounds > 1 ? 2 : 1);
    });
    return bytes + OWN_BYTES <= most_shared_bytes();
}

bool gb_cuda_supports_experts(const gb_cuda_problem *problem) {
    const gb_cuda_tensor *down = problem->operands[GB_EXPERTS_DOWN_WEIGHT];
    const size_t size = down->dims[2], hidden = down->dims[1];
    return supports_choice(problem) && !is_clamped(problem) && supports_inner(problem, size, hidden) &&
           supports_outer(problem, size, hidden) &&
           outputs_fit(down, problem->operands[GB_EXPERTS_X]->dims[0], count_of(problem));
}

/* ---- What the kernels take ----------------------------------------------------------------------------- */

static packed_matrices matrices_of(const gb_cuda_tensor *weight, size_t tokens) {
    const uint8_t *data = data_of<const uint8_t>(weight);
    packed_matrices m = {};
    m.codes = data + weight->planes.codes.offset;
    m.scales = data + weight->planes.scales.offset;
    m.biases = weight->format.has_bias ? data + weight->planes.biases.offset : nullptr;
    m.code_bytes = (uint32_t)(weight->planes.codes.row_bytes * GEMV_BLOCK_ROWS);
    m.scale_bytes = (uint32_t)(weight->planes.scales.row_bytes * GEMV_BLOCK_ROWS);
    m.blocks = (uint32_t)(weight->dims[weight->rank - 2] / GEMV_BLOCK_ROWS);
    m.atoms = (uint32_t)(weight->dims[weight->rank - 1] / EXPERT_COLUMNS);
    m.offset = (float)gb_format_center(&weight->format);
    m.is_read_once = tokens == 1;
    return m;
}

/* Inner values of all chosen experts and the shared one, and which they are. */
uint64_t gb_cuda_experts_scratch(const gb_cuda_problem *problem) {
    const gb_cuda_tensor *chosen = problem->parts[GB_EXPERTS_ROUTE]->results[0];
    const uint64_t size = problem->operands[GB_EXPERTS_DOWN_WEIGHT]->dims[2];
    return (uint64_t)chosen->dims[0] * count_of(problem) *
           (size * sizeof(float) + sizeof(float) + sizeof(int32_t));
}

static expert_inner inner_of(const gb_cuda_problem *problem) {
    const gb_cuda_tensor *const *operands = problem->operands;
    const size_t tokens = tokens_of(problem);
    const prepared_rows x = gb_cuda_prepare(problem->parts[GB_EXPERTS_GATE_UP]);
    expert_inner p = {};
    p.weight = matrices_of(operands[GB_EXPERTS_GATE_UP_WEIGHT], tokens);
    p.x = reinterpret_cast<const uint4 *>(x.values);
    p.x_sums = reinterpret_cast<const float2 *>(x.sums);
    if (chooses_in_blocks(problem))
        p.next = matrices_of(operands[GB_EXPERTS_DOWN_WEIGHT], tokens);
    if (has_shared(problem)) {
        p.shared_gate = matrices_of(operands[GB_EXPERTS_SHARED_GATE_WEIGHT], tokens);
        p.shared_up = matrices_of(operands[GB_EXPERTS_SHARED_UP_WEIGHT], tokens);
    }
    p.choice = choice_of(problem);
    return p;
}

static expert_outer outer_of(const gb_cuda_problem *problem, const expert_values &values) {
    const size_t tokens = tokens_of(problem);
    const gb_cuda_tensor *down = problem->operands[GB_EXPERTS_DOWN_WEIGHT];
    expert_outer p = {};
    p.weight = matrices_of(down, tokens);
    if (has_shared(problem))
        p.shared = matrices_of(problem->operands[GB_EXPERTS_SHARED_DOWN_WEIGHT], tokens);
    p.from = values;
    if (problem->operands[GB_EXPERTS_RESIDUAL])
        p.residual = data_of<const float>(problem->operands[GB_EXPERTS_RESIDUAL]);
    p.y = data_of<float>(result_of(problem)->results[0]);
    p.outputs = (uint32_t)down->dims[1];
    return p;
}

/* ---- Launches ------------------------------------------------------------------------------------------ */

template <typename Shape>
static void launch_inner(gb_cuda_launch_list *launches, const expert_inner &p, bool gelu, size_t tokens) {
    const dim3 grid(p.weight.blocks / 2, p.choice.to.count, (unsigned)tokens);
    dispatch(
        [&](auto rounds, auto is_gelu) {
            add_launch(launches, "expert_inner", run_expert_inner<Shape, rounds, is_gelu != 0>, grid,
                       EXPERT_THREADS, inner_bytes<Shape>(p.weight.atoms), p);
        },
        one_of<1, MOST_INNER_ROUNDS>(p.weight.atoms > ROUND_ATOMS ? (size_t)MOST_INNER_ROUNDS : 1),
        one_of<0, 1>(gelu));
}

/* At least `bytes` of shared memory, and so much that a multiprocessor takes no more than its share of few
 * blocks: with more of them on one, others would be idle. */
static size_t even_bytes(size_t bytes, size_t blocks) {
    const size_t share = blocks_for(blocks, gb_cuda_find_facts()->multiprocessors),
                 even = share <= 2 ? most_shared_bytes() / (share + 1) : 0;
    return even > bytes ? even : bytes;
}

template <typename Shape>
static void launch_outer(gb_cuda_launch_list *launches, const expert_outer &p, size_t tokens) {
    const auto kernel =
        p.shared.codes && p.residual ? run_expert_outer<Shape, true> : run_expert_outer<Shape, false>;
    const unsigned rounds = outer_rounds(p.weight.blocks, tokens);
    const dim3 grid(blocks_for(p.weight.blocks, rounds), (unsigned)tokens);
    const size_t bytes = outer_bytes<Shape>(p.weight.atoms, p.from.count, rounds > 1 ? 2 : 1);
    add_launch(launches, "expert_outer", kernel, grid, EXPERT_THREADS, even_bytes(bytes, grid.x * tokens), p);
}

void gb_cuda_expert_mlp(const gb_cuda_problem *problem) {
    gb_cuda_launch_list *launches = problem->parts[GB_EXPERTS_ROUTE]->launches;
    const size_t tokens = tokens_of(problem);
    const expert_inner inner = inner_of(problem);
    const expert_outer outer = outer_of(problem, inner.choice.to);
    with_shape(problem->operands[GB_EXPERTS_GATE_UP_WEIGHT]->format,
               [&](auto shape) { launch_inner<decltype(shape)>(launches, inner, is_gelu(problem), tokens); });
    with_shape(problem->operands[GB_EXPERTS_DOWN_WEIGHT]->format,
               [&](auto shape) { launch_outer<decltype(shape)>(launches, outer, tokens); });
}
