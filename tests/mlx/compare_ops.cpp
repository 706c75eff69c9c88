/* SPDX-License-Identifier: Apache-2.0 */
#include "mlx/compare_ops.hpp"

extern "C" {
#include "mlx/reference.h"
}

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace gb_mlx;

/* Products that are added for one number of an op's result, at most. */
static double terms_of(const gb_program &program, const gb_node &node, int positions) {
    const gb_shape &first = program.values[node.operands[0]].type.shape;
    const auto length = static_cast<double>(first.dims[first.rank - 1]);
    switch (node.op) {
    case GB_OP_RMS_NORM:
    case GB_OP_L2_NORMALIZE:
    case GB_OP_ROUTE_TOP_K:
    case GB_OP_LOG_NORMALIZER:
        return length;
    case GB_OP_ATTENTION:
    case GB_OP_GATED_DELTA:
        return length + positions;
    case GB_OP_ROPE: /* an angle is rounded as the position is large */
        return positions;
    case GB_OP_CAUSAL_CONV:
    case GB_OP_COMBINE_EXPERTS:
        return 8;
    default:
        return 1;
    }
}

static void compare_floats(const char *op, const float *expected, const float *found, size_t count,
                           size_t width, double terms) {
    for (size_t row = 0; row < count; row += width) {
        double largest = 0;
        for (size_t i = row; i < row + width; i++)
            if (std::isfinite(expected[i]))
                largest = std::max(largest, std::fabs(static_cast<double>(expected[i])));
        const double bound = largest * (0x1p-22 + terms * 0x1p-23);
        for (size_t i = row; i < row + width; i++) {
            const bool is_near = expected[i] == found[i] || std::fabs(expected[i] - found[i]) <= bound;
            if (!is_near)
                fail_msg("%s: number %zu is %.9g, expected %.9g, bound %.2g", op, i,
                         static_cast<double>(found[i]), static_cast<double>(expected[i]), bound);
        }
    }
}

/* Products with a matrix have a reference in double, and a bound of their own: what rounding every product
 * and every partial sum can add. Of a quantized matrix the two ways to write a number differ by as much. */
static void compare_products(const gb_program &program, const reference *r, const gb_node &node,
                             const mx::array &found) {
    const gb_shape &shape = program.values[node.operands[1]].type.shape;
    const auto terms = static_cast<double>(shape.dims[shape.rank - 1]);
    for (size_t i = 0; i < found.size(); i++) {
        double magnitude;
        const double expected = reference_product(r, &node, i, &magnitude);
        const double value = found.data<float>()[i], bound = std::fabs(expected) * 0x1p-22;
        if (std::fabs(value - expected) > bound + terms * magnitude * 0x1p-24)
            fail_msg("%s: number %zu is %.9g, expected %.9g", gb_op_find(node.op)->name, i, value, expected);
    }
}

/* The reference's value as an array. */
static mx::array array_of(const reference *r, const gb_program &program, gb_ref value,
                          const mx::Shape &shape) {
    size_t count;
    const void *data = reference_value(r, value, &count);
    switch (program.values[value].type.dtype) {
    case GB_F32:
        return mx::array(static_cast<const float *>(data), shape, mx::float32);
    case GB_I32:
        return mx::array(static_cast<const int32_t *>(data), shape, mx::int32);
    case GB_U32:
        return mx::array(static_cast<const uint32_t *>(data), shape, mx::uint32);
    default:
        return mx::array(static_cast<const bool *>(data), shape, mx::bool_);
    }
}

static void compare(const gb_program &program, const reference *r, const gb_node &node, gb_ref value,
                    const mx::array &made, int positions) {
    const gb_dtype dtype = program.values[value].type.dtype;
    mx::array found = mx::contiguous(mx::astype(made, dtype_of(dtype)));
    found.eval();
    size_t count;
    const void *expected = reference_value(r, value, &count);
    const char *op = gb_op_find(node.op)->name;
    assert_int_equal(found.size(), count);
    if (node.op == GB_OP_LINEAR || node.op == GB_OP_EXPERT_LINEAR)
        compare_products(program, r, node, found);
    else if (dtype == GB_F32)
        compare_floats(op, static_cast<const float *>(expected), found.data<float>(), count,
                       found.ndim() ? static_cast<size_t>(found.shape(-1)) : 1,
                       terms_of(program, node, positions));
    else if (std::memcmp(expected, found.data<uint8_t>(), count * gb_dtype_size(dtype)) != 0)
        fail_msg("%s: not equal", op);
}

/* Runs a batch on both, every op of MLX's on the reference's inputs. Branches are not taken: both regions of
 * an if are executed. positions is how many the longest text has. */
static void run_batch(const gb_program &program, const lowered_program &lowered, reference *r, slots &states,
                      const gb_batch &batch, int positions, std::set<gb_op> &covered) {
    const gb_plan &plan = *reference_plan(r);
    step s(lowered.plan(), batch, states);
    reference_begin(r, &batch);
    for (uint32_t i = 0; i < plan.step_count; i++) {
        const gb_step &planned = plan.steps[i];
        if (planned.kind == GB_STEP_MOVE) {
            reference_execute(r, &planned);
            s.set(planned.results[0], s[planned.operands[0]]);
        }
        if (planned.kind != GB_STEP_NODE)
            continue;
        lowered.execute(i, s);
        reference_execute(r, &planned);
        covered.insert(planned.node->op);
        if (planned.node->op == GB_OP_COUNT_TOKENS)
            continue; /* as a list there, as counts of the vocabulary here; penalize shows whether they agree
                       */
        for (uint32_t n = 0; n < planned.result_count; n++) {
            const gb_ref result = planned.results[n];
            compare(program, r, *planned.node, result, s[result], positions);
            s.set(result, array_of(r, program, result, s[result].shape()));
        }
    }
    for (const slot_run &run : s.runs)
        states.advance(run.slot, run.start + run.count);
}

/* Two rows: one of each kind of setting that keeps some tokens, the other with penalties and a mask. */
static gb_batch &finish_batch(test_batch &b, const gb_program &program) {
    const gb_batch_arrays &a = b.arrays;
    a.min_p[0] = 0.05f;
    a.repetition_penalty[1] = 1.3f;
    a.frequency_penalty[1] = 0.4f;
    a.presence_penalty[1] = -0.2f;
    a.generated_from[1] = 2;
    a.penalize_prompt[1] = 3;
    if (program.metadata.max_bias > 3) {
        a.bias_ids[0] = 5, a.bias_ids[1] = 7, a.bias_ids[2] = 5, a.bias_ids[3] = -1;
        a.bias_values[0] = 1.5f, a.bias_values[1] = -INFINITY, a.bias_values[2] = -0.25f;
    }
    a.masked[1] = true;
    for (uint32_t i = 0; i < a.widths.mask_words; i++)
        a.mask[a.widths.mask_words + i] = 0x5a3c96f1u * (i + 1);
    a.want_logprobs[1] = true;
    return b.batch;
}

/* The second run of a turn, or the only one, has one token at last: that is lowered in its own way. */
std::set<gb_op> compare_program(const gb_program &program, const comparison &how) {
    enum { TURNS = 6, LEAST_VOCABULARY = 40 };
    const gb_backend_options options = backend_options();
    const lowered_program lowered(program, options, how.has_fused_kernels);
    slots states(program, options.slots, options.max_context, false);
    reference *r = reference_create(&program, &options);
    std::set<gb_op> covered;
    int first_position = 0, second_position = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        test_batch b(program);
        const auto tokens_of = [](int seed, int count) {
            std::vector<int32_t> tokens(static_cast<size_t>(count));
            random_tokens(static_cast<uint32_t>(seed), LEAST_VOCABULARY, tokens.data(), tokens.size());
            return tokens;
        };
        const int first = turn == 0 ? how.prompt : 4, second = turn < 3 ? 3 : 1;
        if (turn + 1 < TURNS) {
            b.add(2, first_position, tokens_of(turn + 1, first));
            b.add_row(0.7f, 9, 0.8f);
            first_position += first;
        }
        b.add(0, second_position, tokens_of(turn + 9, second));
        b.add_row(1.5f, 0, 1);
        second_position += second;
        if (turn + 1 == TURNS)
            b.add_row(0.7f, 9, 0.8f); /* of the same token */
        run_batch(program, lowered, r, states, finish_batch(b, program), first_position, covered);
    }
    reference_destroy(r);
    return covered;
}
