/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cuda/device/expert_inner.cuh"
#include "run/cuda/device/expert_outer.cuh"

#include "run/cuda/activations.h"

extern "C" {
#include "run/cuda/expert_steps.h"
}

using namespace gb_cuda;

/* ---- Which ones it can be ------------------------------------------------------------------------------ */

enum {
    MOST_HIDDEN = MOST_INNER_ATOMS * EXPERT_WARPS * EXPERT_GROUP,
    MOST_SIZE = MOST_OUTER_ATOMS * EXPERT_WARPS * EXPERT_GROUP,
    OWN_BYTES = 8 << 10 /* more than join_outputs' own variables */
};

/* Whether a weight [.., outputs, inputs] is one that the kernels take. */
static bool is_taken(const gb_cuda_tensor *weight, size_t most_columns) {
    return weight->is_packed && weight->takes_bytes && weight->format.bits == 4 &&
           weight->format.group == EXPERT_GROUP && weight->dims[weight->rank - 1] <= most_columns;
}

/* Whether the weight of a step is such, in the format of the experts' down. */
static bool is_like_down(const gb_cuda_call *const *calls, int step, size_t outputs, size_t inputs,
                         size_t most_columns) {
    const gb_cuda_tensor *weight = calls[step]->operands[1];
    return is_taken(weight, most_columns) && weight->dims[weight->rank - 2] == outputs &&
           weight->dims[weight->rank - 1] == inputs &&
           gb_format_equal(&weight->format, &calls[GB_EXPERT_DOWN]->operands[1]->format);
}

/* Blocks of threads, two to a multiprocessor, share a token's blocks of outputs: how many each has at most.
 */
static unsigned outer_rounds(size_t blocks, size_t tokens) {
    enum { RESIDENT = 2 * 132 };
    return blocks_for(blocks * tokens, RESIDENT);
}

/* Whether a block of threads has room for what join_outputs has at a time. */
static bool outputs_fit(const gb_cuda_tensor *down, size_t tokens, size_t choices) {
    const unsigned rounds = outer_rounds(down->dims[1] / FEW_BLOCK_ROWS, tokens);
    const uint32_t atoms = (uint32_t)(down->dims[2] / EXPERT_GROUP);
    return outer_bytes(atoms, (uint32_t)choices, rounds > 1 ? 2 : 1) + OWN_BYTES <= most_shared_bytes();
}

static bool can_launch(const gb_cuda_call *const *calls) {
    const gb_cuda_tensor *x = calls[GB_EXPERT_GATE_UP]->operands[0],
                         *down = calls[GB_EXPERT_DOWN]->operands[1];
    const size_t size = down->dims[2], hidden = down->dims[1],
                 choices = calls[GB_EXPERT_ROUTE]->results[0]->dims[1];
    return !calls[0]->is_prefill && x->rank == 2 &&
           calls[GB_EXPERT_SHARED_LOGIT]->operands[1]->dims[0] == 1 && choices <= MOST_CHOICES &&
           outputs_fit(down, x->dims[0], choices) &&
           is_like_down(calls, GB_EXPERT_DOWN, hidden, size, MOST_SIZE) &&
           is_like_down(calls, GB_EXPERT_SHARED_DOWN, hidden, size, MOST_SIZE) &&
           is_like_down(calls, GB_EXPERT_GATE_UP, 2 * size, hidden, MOST_HIDDEN) &&
           is_like_down(calls, GB_EXPERT_SHARED_GATE, size, hidden, MOST_HIDDEN) &&
           is_like_down(calls, GB_EXPERT_SHARED_UP, size, hidden, MOST_HIDDEN);
}

/* ---- What the kernels take ----------------------------------------------------------------------------- */

static packed_matrices matrices_of(const gb_cuda_tensor *weight, size_t tokens) {
    const uint8_t *data = data_of<const uint8_t>(weight);
    packed_matrices m = {};
    m.codes = data + weight->planes.codes.offset;
    m.scales = data + weight->planes.scales.offset;
    m.biases = weight->format.has_bias ? data + weight->planes.biases.offset : nullptr;
    m.code_bytes = (uint32_t)(weight->planes.codes.row_bytes * FEW_BLOCK_ROWS);
    m.scale_bytes = (uint32_t)(weight->planes.scales.row_bytes * FEW_BLOCK_ROWS);
    m.blocks = (uint32_t)(weight->dims[weight->rank - 2] / FEW_BLOCK_ROWS);
    m.atoms = (uint32_t)(weight->dims[weight->rank - 1] / EXPERT_GROUP);
    m.offset = (float)gb_format_center(&weight->format);
    m.is_read_once = tokens == 1;
    return m;
}

uint64_t gb_cuda_expert_values_bytes(size_t tokens, size_t choices, size_t size) {
    return tokens * (choices + 1) * (size * sizeof(float) + sizeof(float) + sizeof(int32_t));
}

static expert_values values_in(const gb_cuda_scratch *scratch, size_t tokens, size_t choices, size_t size) {
    expert_values v = {};
    v.inner = reinterpret_cast<float *>(scratch->bytes);
    v.weights = v.inner + tokens * (choices + 1) * size;
    v.experts = reinterpret_cast<int32_t *>(v.weights + tokens * (choices + 1));
    v.choices = (uint32_t)choices;
    v.size = (uint32_t)size;
    return v;
}

/* One token's experts are found by all blocks at once, those of several by a launch before. */
static expert_inner inner_of(const gb_cuda_call *const *calls, const expert_values &values, size_t tokens) {
    const gb_cuda_call *route = calls[GB_EXPERT_ROUTE], *gate_up = calls[GB_EXPERT_GATE_UP];
    const prepared_rows x = gb_cuda_prepare(gate_up, gate_up->operands[0]);
    expert_inner p = {};
    p.weight = matrices_of(gate_up->operands[1], tokens);
    p.x = reinterpret_cast<const uint4 *>(x.values);
    p.x_sums = reinterpret_cast<const float2 *>(x.sums);
    p.experts = (uint32_t)route->operands[0]->dims[1];
    p.normalized = gb_node_int(route->node, GB_ATTRIBUTE_NORMALIZE) != 0;
    if (tokens == 1 && p.experts <= BLOCK_EXPERTS) {
        p.logits = data_of<const float>(route->operands[0]);
        p.next = matrices_of(calls[GB_EXPERT_DOWN]->operands[1], tokens);
        p.next_share = blocks_for(p.next.blocks, p.weight.blocks / 2);
    } else {
        gb_cuda_route_top_k(route);
        p.chosen = data_of<const int32_t>(route->results[0]);
        p.chosen_weights = data_of<const float>(route->results[1]);
    }
    p.shared_gate = matrices_of(calls[GB_EXPERT_SHARED_GATE]->operands[1], tokens);
    p.shared_up = matrices_of(calls[GB_EXPERT_SHARED_UP]->operands[1], tokens);
    p.shared_logit = data_of<const float>(calls[GB_EXPERT_SHARED_LOGIT]->results[0]);
    p.to = values;
    return p;
}

static expert_outer outer_of(const gb_cuda_call *const *calls, const expert_values &values, size_t tokens) {
    const gb_cuda_call *last = calls[GB_EXPERT_RESIDUAL];
    expert_outer p = {};
    p.weight = matrices_of(calls[GB_EXPERT_DOWN]->operands[1], tokens);
    p.shared = matrices_of(calls[GB_EXPERT_SHARED_DOWN]->operands[1], tokens);
    p.from = values;
    p.residual = data_of<const float>(last->operands[0]);
    p.y = data_of<float>(last->results[0]);
    p.outputs = (uint32_t)calls[GB_EXPERT_DOWN]->operands[1]->dims[1];
    return p;
}

/* ---- Launches ------------------------------------------------------------------------------------------ */

template <bool IS_BF16>
static void launch_inner(cudaStream_t stream, const expert_inner &p, size_t tokens) {
    const auto kernel = make_inner_values<IS_BF16>;
    const dim3 grid(p.weight.blocks / 2, p.to.choices + 1, (unsigned)tokens);
    GB_LAUNCH(kernel, grid, EXPERT_THREADS, 2 * p.weight.atoms * ATOM_BYTES, stream, p);
}

template <bool IS_BF16>
static void launch_outer(cudaStream_t stream, const expert_outer &p, size_t tokens) {
    const auto kernel = join_outputs<IS_BF16>;
    const unsigned rounds = outer_rounds(p.weight.blocks, tokens);
    const dim3 grid(blocks_for(p.weight.blocks, rounds), (unsigned)tokens);
    const size_t bytes = outer_bytes(p.weight.atoms, p.from.choices, rounds > 1 ? 2 : 1);
    GB_LAUNCH(kernel, grid, EXPERT_THREADS, bytes, stream, p);
}

template <bool IS_BF16>
static void launch(cudaStream_t stream, const expert_inner &inner, const expert_outer &outer, size_t tokens) {
    launch_inner<IS_BF16>(stream, inner, tokens);
    launch_outer<IS_BF16>(stream, outer, tokens);
}

/* The products of the input that are not experts'. */
static void launch_logits(const gb_cuda_call *const *calls) {
    const gb_cuda_call *const both[] = {calls[GB_EXPERT_ROUTER], calls[GB_EXPERT_SHARED_LOGIT]};
    gb_cuda_linear_group(both, 2);
}

bool gb_cuda_expert_mlp(const gb_cuda_call *const *calls) {
    if (!can_launch(calls))
        return false;
    const gb_cuda_tensor *experts = calls[GB_EXPERT_ROUTE]->results[0],
                         *down = calls[GB_EXPERT_DOWN]->operands[1];
    const size_t tokens = experts->dims[0], choices = experts->dims[1];
    launch_logits(calls);
    const expert_values values = values_in(calls[0]->scratch, tokens, choices, down->dims[2]);
    const expert_inner inner = inner_of(calls, values, tokens);
    const expert_outer outer = outer_of(calls, values, tokens);
    if (down->format.scale == GB_BF16)
        launch<true>(calls[0]->stream, inner, outer, tokens);
    else
        launch<false>(calls[0]->stream, inner, outer, tokens);
    return true;
}
