/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops of a model that keep no state.
 */
#include "backends/mlx/lowering.hpp"

#include <cmath>
#include <numbers>
#include <vector>

namespace gb_mlx {

static double attribute(const gb_node &node, gb_attribute_key key) {
    return gb_node_float(&node, key);
}

static repeated constant_beside(const mx::array &constant, gb_ref value, const weights &from) {
    return {constant, shape_for_one(from.program, value)};
}

/* ---- Matrices ------------------------------------------------------------------------------------------ */

static int rotation_of(const gb_node &node) {
    return static_cast<int>(gb_node_int(&node, GB_ATTRIBUTE_ROTATION));
}

/* How a product takes its input: as it is where the program rounds it to 8 bits. */
struct product_input {
    int rotation;
    bool is_bfloat16;

    explicit product_input(const gb_node &node)
        : rotation(rotation_of(node)),
          is_bfloat16(gb_node_int(&node, GB_ATTRIBUTE_ACTIVATION) == GB_ACTIVATION_BFLOAT16) {}

    mx::array of(const mx::array &x) const {
        return is_bfloat16 ? mx::astype(mx::astype(x, mx::bfloat16), mx::float32) : rotated(x, rotation);
    }
};

static operation embedding(const gb_node &node, weights &from) {
    const auto table = from.matrix_of(node.operands[0]);
    const repeated scale =
        constant_beside(number(attribute(node, GB_ATTRIBUTE_SCALE)), node.results[0], from);
    const bool is_scaled = attribute(node, GB_ATTRIBUTE_SCALE) != 1;
    return [=, block = rotation_of(node), tokens = node.operands[1], y = node.results[0]](step &s) {
        const mx::array rows = rotated(table->rows(s[tokens]), block);
        s.set(y, is_scaled ? mx::multiply(rows, scale.beside(rows)) : rows);
    };
}

static operation linear(const gb_node &node, weights &from) {
    const auto weight = from.matrix_of(node.operands[1]);
    return [=, input = product_input(node), x = node.operands[0], y = node.results[0]](step &s) {
        s.set(y, weight->multiply(input.of(s[x])));
    };
}

static operation expert_linear(const gb_node &node, weights &from) {
    const auto weight = from.matrix_of(node.operands[1]);
    const bool each_expert = from.program.values[node.operands[0]].type.shape.rank == 3;
    const auto choices = static_cast<int>(from.program.values[node.operands[2]].type.shape.dims[1]);
    const mx::array same = mx::zeros({1, choices}, mx::uint32);
    const mx::array rows_of_one =
        evaluated(each_expert ? mx::expand_dims(mx::arange(0, choices, mx::uint32), 0) : same);
    return [=, how = product_input(node), x = node.operands[0], experts = node.operands[2],
            y = node.results[0]](step &s) {
        const mx::array taken = how.of(s[x]);
        const mx::array input =
            each_expert ? mx::expand_dims(taken, 2) : mx::expand_dims(taken, std::vector<int>{1, 2});
        const auto rows = s.token_count() == 1 ? std::optional(rows_of_one) : std::nullopt;
        const mx::array chosen = mx::astype(s[experts], mx::uint32);
        s.set(y, mx::squeeze(weight->multiply_experts(input, rows, chosen), 2));
    };
}

/* The stable sort leaves the lower index first among equals. */
static operation route_top_k(const gb_node &node, weights &) {
    const auto count = static_cast<int>(gb_node_int(&node, GB_ATTRIBUTE_COUNT));
    const bool normalize = gb_node_int(&node, GB_ATTRIBUTE_NORMALIZE) != 0;
    return [=, logits = node.operands[0], experts = node.results[0], shares = node.results[1]](step &s) {
        const mx::array p = mx::softmax(s[logits], -1, true);
        const mx::array chosen = part(mx::argsort(mx::negative(p), -1), 1, 0, count);
        const mx::array weight = mx::take_along_axis(p, chosen, 1);
        s.set(experts, chosen);
        s.set(shares, normalize ? mx::divide(weight, mx::sum(weight, 1, true)) : weight);
    };
}

static operation route_sigmoid(const gb_node &node, weights &from) {
    const auto count = static_cast<int>(gb_node_int(&node, GB_ATTRIBUTE_COUNT));
    const bool normalize = gb_node_int(&node, GB_ATTRIBUTE_NORMALIZE) != 0;
    const mx::array correction = from.numbers_of(node.operands[1]),
                    least = number(attribute(node, GB_ATTRIBUTE_EPSILON));
    const mx::array scale = number(attribute(node, GB_ATTRIBUTE_SCALE));
    return [=, logits = node.operands[0], experts = node.results[0], shares = node.results[1]](step &s) {
        const mx::array p = mx::sigmoid(s[logits]);
        const mx::array chosen = part(mx::argsort(mx::negative(mx::add(p, correction)), -1), 1, 0, count);
        const mx::array weight = mx::take_along_axis(p, chosen, 1);
        const mx::array sum = mx::add(mx::sum(weight, 1, true), least);
        s.set(experts, chosen);
        s.set(shares, mx::multiply(normalize ? mx::divide(weight, sum) : weight, scale));
    };
}

static operation combine_experts(const gb_node &node, weights &) {
    return [x = node.operands[0], shares = node.operands[1], y = node.results[0]](step &s) {
        s.set(y, mx::sum(mx::multiply(s[x], mx::expand_dims(s[shares], 2)), 1));
    };
}

/* ---- Norms and rotation -------------------------------------------------------------------------------- */

static double row_length(const gb_node &node, const weights &from) {
    const gb_shape &shape = from.program.values[node.operands[0]].type.shape;
    return static_cast<double>(shape.dims[shape.rank - 1]);
}

/* x / sqrt(mean of squares + epsilon) times factor, if there is one. */
static operation normalize(const gb_node &node, weights &from, double epsilon,
                           const std::optional<mx::array> &factor) {
    if (from.has_fused_kernels)
        return [=, x = node.operands[0], y = node.results[0]](step &s) {
            s.set(y, mx::fast::rms_norm(s[x], factor, static_cast<float>(epsilon)));
        };
    /* With D the length, 1 / sqrt(mean + epsilon) = sqrt(D) / sqrt(sum + D epsilon): one product less. */
    const double length = row_length(node, from);
    mx::Shape shape_of_sum = shape_for_one(from.program, node.operands[0]);
    shape_of_sum.back() = 1;
    const repeated shift(number(length * epsilon), shape_of_sum);
    const mx::array root = number(std::sqrt(length));
    const repeated scale =
        constant_beside(factor ? mx::multiply(*factor, root) : root, node.operands[0], from);
    return [=, operand = node.operands[0], y = node.results[0]](step &s) {
        const mx::array &x = s[operand];
        const mx::array sum = mx::sum(mx::square(x), -1, true);
        const mx::array inverse = mx::rsqrt(mx::add(sum, shift.beside(sum)));
        s.set(y, mx::multiply(mx::multiply(x, inverse), scale.beside(x)));
    };
}

static operation rms_norm(const gb_node &node, weights &from) {
    const double scale = attribute(node, GB_ATTRIBUTE_SCALE);
    std::optional<mx::array> factor;
    if (node.operand_count > 1)
        factor =
            mx::add(from.numbers_of(node.operands[1]), number(attribute(node, GB_ATTRIBUTE_WEIGHT_OFFSET)));
    else if (scale != 1)
        factor = mx::ones({static_cast<int>(row_length(node, from))}, mx::float32);
    if (factor)
        factor = evaluated(scale != 1 ? mx::multiply(*factor, number(scale)) : *factor);
    return normalize(node, from, attribute(node, GB_ATTRIBUTE_EPSILON), factor);
}

/* The sum in place of the mean: 1 / sqrt(sum + epsilon) = 1 / sqrt(mean + epsilon / D) / sqrt(D). */
static operation l2_normalize(const gb_node &node, weights &from) {
    const double length = row_length(node, from), epsilon = attribute(node, GB_ATTRIBUTE_EPSILON);
    const double scale = attribute(node, GB_ATTRIBUTE_SCALE) / std::sqrt(length);
    const mx::array factor = mx::full({static_cast<int>(length)}, static_cast<float>(scale), mx::float32);
    return normalize(node, from, epsilon / length, evaluated(factor));
}

/* Frequencies of all pairs: those past the program's are 0, and their pairs stay as they are. */
static mx::array padded_frequencies(const gb_node &node, weights &from) {
    const auto pairs = static_cast<int>(gb_node_int(&node, GB_ATTRIBUTE_PAIR_OFFSET));
    const mx::array frequencies = from.numbers_of(node.operands[2]);
    return evaluated(
        mx::concatenate({frequencies, mx::zeros({pairs - frequencies.shape(0)}, mx::float32)}, 0));
}

/* What each dim of a head [D] is multiplied with before the others' rotation: scale where it turns. */
static mx::array turned_scales(const gb_node &node, weights &from) {
    const auto offset = static_cast<size_t>(gb_node_int(&node, GB_ATTRIBUTE_PAIR_OFFSET));
    const auto pairs = static_cast<size_t>(from.numbers_of(node.operands[2]).shape(0));
    std::vector<float> scales(static_cast<size_t>(row_length(node, from)), 1.0f);
    for (size_t i = 0; i < pairs; i++)
        scales[i] = scales[i + offset] = static_cast<float>(attribute(node, GB_ATTRIBUTE_SCALE));
    return mx::array(scales.data(), {static_cast<int>(scales.size())}, mx::float32);
}

/* MLX's kernel rotates the pairs (i, i + dims / 2), so dims is twice the pair offset, and takes wavelengths,
 * infinite where a pair stays. */
static operation fused_rope(const gb_node &node, weights &from) {
    const mx::array wavelengths = evaluated(mx::reciprocal(padded_frequencies(node, from)));
    const int dims = 2 * wavelengths.shape(0);
    return [=, x = node.operands[0], positions = node.operands[1], y = node.results[0]](step &s) {
        const mx::array each_token = mx::expand_dims(s[x], 2); /* [M,H,1,D]: every token has its offset */
        s.set(y,
              mx::squeeze(
                  mx::fast::rope(each_token, dims, false, std::nullopt, 1.0f, s[positions], wavelengths), 2));
    };
}

static operation scaled_rope(const gb_node &node, weights &from) {
    const mx::array scales = evaluated(turned_scales(node, from));
    const operation turn = fused_rope(node, from);
    return [=, y = node.results[0]](step &s) {
        turn(s);
        s.set(y, mx::multiply(s[y], scales));
    };
}

/* Where MLX has no kernel it would compute the angles again for every query and key of every layer. */
static operation rope(const gb_node &node, weights &from) {
    refuse_of_heads(node, GB_ATTRIBUTE_START);
    if (attribute(node, GB_ATTRIBUTE_SCALE) != 1)
        return scaled_rope(node, from);
    if (from.has_fused_kernels)
        return fused_rope(node, from);
    const mx::array frequencies = padded_frequencies(node, from);
    const int half = frequencies.shape(0);
    return [=, operand = node.operands[0], positions = node.operands[1], key = node.operands[2],
            y = node.results[0]](step &s) {
        const mx::array &x = s[operand];
        const step::rotation &turn = s.rotation_of(positions, key, frequencies, x.shape(1));
        const mx::array pairs = part(x, 2, 0, 2 * half);
        const mx::array exchanged = mx::concatenate({part(x, 2, half, 2 * half), part(x, 2, 0, half)}, 2);
        const mx::array rotated =
            mx::add(mx::multiply(pairs, turn.cosines), mx::multiply(exchanged, turn.sines));
        const bool is_partial = 2 * half < x.shape(2);
        s.set(y, is_partial ? mx::concatenate({rotated, part(x, 2, 2 * half, x.shape(2))}, 2) : rotated);
    };
}

/* ---- Elements ------------------------------------------------------------------------------------------ */

static operation add(const gb_node &node, weights &) {
    return [a = node.operands[0], b = node.operands[1], y = node.results[0]](step &s) {
        s.set(y, mx::add(s[a], s[b]));
    };
}

/* MLX repeats the bias [K] along the rows. */
static operation add_bias(const gb_node &node, weights &from) {
    return [bias = from.numbers_of(node.operands[1]), x = node.operands[0], y = node.results[0]](step &s) {
        s.set(y, mx::add(s[x], bias));
    };
}

/* y[m,t] = x[m,t] + bias[experts[m,t]]. */
static operation add_expert_bias(const gb_node &node, weights &from) {
    return [bias = from.numbers_of(node.operands[1]), x = node.operands[0], experts = node.operands[2],
            y = node.results[0]](step &s) { s.set(y, mx::add(s[x], mx::take(bias, s[experts], 0))); };
}

/* Also scale_rows, whose factor [M,1] MLX repeats along the row. */
static operation multiply(const gb_node &node, weights &) {
    return [a = node.operands[0], b = node.operands[1], y = node.results[0]](step &s) {
        s.set(y, mx::multiply(s[a], s[b]));
    };
}

static operation scale(const gb_node &node, weights &from) {
    const repeated factor = constant_beside(from.numbers_of(node.operands[1]), node.operands[0], from);
    return [=, x = node.operands[0], y = node.results[0]](step &s) {
        s.set(y, mx::multiply(s[x], factor.beside(s[x])));
    };
}

/* 0.5 (1 + tanh(z)) is sigmoid(2 z): x sigmoid(x (a + b x^2)). */
static operation gelu_tanh(const gb_node &node, weights &from) {
    const double slope = 2 * std::sqrt(2 / std::numbers::pi);
    const repeated a = constant_beside(number(slope), node.operands[0], from);
    const repeated b = constant_beside(number(slope * 0.044715), node.operands[0], from);
    return [=, operand = node.operands[0], y = node.results[0]](step &s) {
        const mx::array &x = s[operand];
        const mx::array z = mx::multiply(x, mx::add(a.beside(x), mx::multiply(b.beside(x), mx::square(x))));
        s.set(y, mx::multiply(x, mx::sigmoid(z)));
    };
}

static operation silu(const gb_node &node, weights &) {
    return [x = node.operands[0], y = node.results[0]](step &s) {
        s.set(y, mx::multiply(s[x], mx::sigmoid(s[x])));
    };
}

static operation clamped_swiglu(const gb_node &node, weights &) {
    const mx::array alpha = number(attribute(node, GB_ATTRIBUTE_ALPHA)), one = number(1);
    const mx::array most = number(attribute(node, GB_ATTRIBUTE_LIMIT)), least = mx::negative(most);
    return [=, gate = node.operands[0], up = node.operands[1], y = node.results[0]](step &s) {
        const mx::array g = mx::minimum(s[gate], most), u = mx::maximum(mx::minimum(s[up], most), least);
        s.set(y, mx::multiply(mx::multiply(g, mx::sigmoid(mx::multiply(g, alpha))), mx::add(u, one)));
    };
}

static operation sigmoid(const gb_node &node, weights &) {
    return [x = node.operands[0], y = node.results[0]](step &s) { s.set(y, mx::sigmoid(s[x])); };
}

static operation softplus(const gb_node &node, weights &) {
    return [x = node.operands[0], y = node.results[0]](step &s) { s.set(y, mx::logaddexp(s[x], number(0))); };
}

static operation relu_squared(const gb_node &node, weights &) {
    return [x = node.operands[0], y = node.results[0]](step &s) {
        s.set(y, mx::square(mx::maximum(s[x], number(0))));
    };
}

/* Each factor for as many columns. */
static operation scale_columns(const gb_node &node, weights &from) {
    const mx::array factors = from.numbers_of(node.operands[1]);
    const auto columns = static_cast<int>(from.program.values[node.operands[0]].type.shape.dims[1]);
    const mx::array factor = evaluated(mx::repeat(factors, columns / factors.shape(0), 0));
    return [=, x = node.operands[0], y = node.results[0]](step &s) { s.set(y, mx::multiply(s[x], factor)); };
}

static operation soft_cap(const gb_node &node, weights &) {
    const mx::array cap = number(attribute(node, GB_ATTRIBUTE_CAP));
    return [=, x = node.operands[0], y = node.results[0]](step &s) {
        s.set(y, mx::multiply(mx::tanh(mx::divide(s[x], cap)), cap));
    };
}

static operation delta_decay(const gb_node &node, weights &from) {
    const auto beside_x = [&](const mx::array &constant) {
        return constant_beside(constant, node.operands[0], from);
    };
    const repeated bias = beside_x(from.numbers_of(node.operands[2])), zero = beside_x(number(0));
    const repeated rate = beside_x(mx::negative(mx::exp(from.numbers_of(node.operands[1]))));
    return [=, operand = node.operands[0], y = node.results[0]](step &s) {
        const mx::array &x = s[operand];
        const mx::array softplus = mx::logaddexp(mx::add(x, bias.beside(x)), zero.beside(x));
        s.set(y, mx::exp(mx::multiply(rate.beside(x), softplus)));
    };
}

/* ---- Rows and columns ---------------------------------------------------------------------------------- */

/* Where every token is a row, in order, the rows are all there is. */
static bool takes_all(const gb_batch &batch) {
    for (uint32_t b = 0; b < batch.row_count; b++)
        if (batch.rows[b] != static_cast<int32_t>(b))
            return false;
    return batch.row_count == batch.token_count;
}

static operation gather_rows(const gb_node &node, weights &) {
    return [x = node.operands[0], rows = node.operands[1], y = node.results[0]](step &s) {
        const bool is_all = s.host<int32_t>(rows) && takes_all(s.batch);
        s.set(y, is_all ? s[x] : mx::take(s[x], s[rows], 0));
    };
}

static operation slice(const gb_node &node, weights &) {
    const auto start = static_cast<int>(gb_node_int(&node, GB_ATTRIBUTE_START));
    const auto count = static_cast<int>(gb_node_int(&node, GB_ATTRIBUTE_COUNT));
    return [=, x = node.operands[0], y = node.results[0]](step &s) {
        s.set(y, part(s[x], -1, start, start + count));
    };
}

static operation concatenate(const gb_node &node, weights &) {
    return [a = node.operands[0], b = node.operands[1], y = node.results[0]](step &s) {
        s.set(y, mx::concatenate({s[a], s[b]}, -1));
    };
}

/* Programs are not sharded here. */
static operation all_gather(const gb_node &node, weights &) {
    return [x = node.operands[0], y = node.results[0]](step &s) { s.set(y, s[x]); };
}

const op_entry model_ops[] = {
    {GB_OP_EMBEDDING, embedding},
    {GB_OP_LINEAR, linear},
    {GB_OP_EXPERT_LINEAR, expert_linear},
    {GB_OP_ROUTE_TOP_K, route_top_k},
    {GB_OP_ROUTE_SIGMOID, route_sigmoid},
    {GB_OP_COMBINE_EXPERTS, combine_experts},
    {GB_OP_RMS_NORM, rms_norm},
    {GB_OP_L2_NORMALIZE, l2_normalize},
    {GB_OP_ROPE, rope},
    {GB_OP_ADD, add},
    {GB_OP_ADD_BIAS, add_bias},
    {GB_OP_ADD_EXPERT_BIAS, add_expert_bias},
    {GB_OP_CLAMPED_SWIGLU, clamped_swiglu},
    {GB_OP_MULTIPLY, multiply},
    {GB_OP_SCALE_ROWS, multiply},
    {GB_OP_SCALE, scale},
    {GB_OP_GELU_TANH, gelu_tanh},
    {GB_OP_SILU, silu},
    {GB_OP_SIGMOID, sigmoid},
    {GB_OP_SOFTPLUS, softplus},
    {GB_OP_RELU_SQUARED, relu_squared},
    {GB_OP_SCALE_COLUMNS, scale_columns},
    {GB_OP_SOFT_CAP, soft_cap},
    {GB_OP_DELTA_DECAY, delta_decay},
    {GB_OP_GATHER_ROWS, gather_rows},
    {GB_OP_SLICE, slice},
    {GB_OP_CONCATENATE, concatenate},
    {GB_OP_ALL_GATHER, all_gather},
    {GB_OP_NONE, nullptr},
};

} // namespace gb_mlx
