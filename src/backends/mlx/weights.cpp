/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/mlx/weights.hpp"

extern "C" {
#include "program/constant_packing.h"
}

namespace gb_mlx {

/* ---- Products ------------------------------------------------------------------------------------------ */

matrix::matrix(const mx::array &numbers, const mx::array &transposed_numbers)
    : weight(numbers), transposed(transposed_numbers) {}

matrix::matrix(const mx::array &numbers) : matrix(numbers, evaluated(mx::swapaxes(numbers, -1, -2))) {}

matrix matrix::stored_transposed(const mx::array &numbers) {
    const mx::array columns = evaluated(mx::contiguous(mx::swapaxes(numbers, -1, -2)));
    return {evaluated(mx::swapaxes(columns, -1, -2)), columns};
}

/* Without a kernel of its own MLX takes as long for each row that codes are multiplied by as for the first:
 * from so many rows on, a product of numbers is faster, the time to make them included. */
enum { LEAST_ROWS_TO_WIDEN = 16 };

mx::array matrix::multiply(const mx::array &x) const {
    if (!scales)
        return mx::matmul(x, transposed);
    if (widens_for_prompts && x.shape(0) >= LEAST_ROWS_TO_WIDEN)
        return multiply_widened(x);
    return mx::quantized_matmul(x, weight, *scales, biases, true, group, bits);
}

/* x becomes columns, so that the product's inner loop runs along its rows. */
mx::array matrix::multiply_widened(const mx::array &x) const {
    const mx::array numbers = mx::dequantize(weight, *scales, biases, group, bits);
    const mx::array y = mx::matmul(numbers, mx::contiguous(mx::swapaxes(x, 0, 1)));
    return mx::contiguous(mx::swapaxes(y, 0, 1));
}

mx::array matrix::rows(const mx::array &ids) const {
    const mx::array taken = mx::take(weight, ids, 0);
    if (!scales)
        return mx::astype(taken, mx::float32);
    return mx::dequantize(taken, mx::take(*scales, ids, 0), mx::take(*biases, ids, 0), group, bits);
}

mx::array matrix::multiply_experts(const mx::array &x, const std::optional<mx::array> &rows,
                                   const mx::array &experts) const {
    if (!scales)
        return mx::gather_mm(x, transposed, rows, experts);
    return mx::gather_qmm(x, weight, *scales, biases, rows, experts, true, group, bits);
}

/* ---- Loading ------------------------------------------------------------------------------------------- */

static mx::Shape shape_of(const gb_constant &constant) {
    mx::Shape shape;
    for (int32_t i = 0; i < constant.type.shape.rank; i++)
        shape.push_back(static_cast<int>(constant.type.shape.dims[i]));
    return shape;
}

/* Wraps a part of the constant's bytes, or copies them where MLX's allocator asks for that. */
static mx::array wrap(const canonical_constant &constant, uint64_t offset, const mx::Shape &shape,
                      mx::Dtype dtype) {
    auto *data = const_cast<uint8_t *>(constant.data + offset); /* no op writes to an operand it wraps */
    return mx::array(data, shape, dtype, [owner = constant.unpacked](void *) {});
}

/* The rows of a matrix: all dims but the last. */
static uint64_t row_count(const gb_constant &constant) {
    uint64_t rows = 1;
    for (int32_t i = 0; i + 1 < constant.type.shape.rank; i++)
        rows *= static_cast<uint64_t>(constant.type.shape.dims[i]);
    return rows;
}

static mx::Shape with_last(mx::Shape shape, uint64_t last) {
    shape.back() = static_cast<int>(last);
    return shape;
}

/* The largest of MLX's groups that divides a row, 0 where none does. */
static int group_for(uint64_t columns) {
    for (int group : {128, 64, 32})
        if (columns % static_cast<uint64_t>(group) == 0)
            return group;
    return 0;
}

/* Codes in the bits of uint32 words: a group of 32 or more codes fills whole words. */
static mx::array codes_of(const canonical_constant &constant, const gb_planes &planes) {
    const mx::Shape shape = shape_of(constant);
    const auto columns = static_cast<uint64_t>(shape.back());
    return wrap(constant, planes.codes.offset, with_last(shape, columns * constant.format.bits / 32),
                mx::uint32);
}

/* What a code without a bias counts from, as MLX's bias. */
static mx::array center_bias(const mx::array &scales, const gb_format &format) {
    return evaluated(mx::multiply(scales, number(-gb_format_center(&format))));
}

/* Whether a product may make all of the matrix's numbers at once. */
static bool may_widen(const gb_constant &constant) {
    enum { MOST_WIDENED_BYTES = 256 << 20 };
    const gb_shape &shape = constant.type.shape;
    const auto bytes = static_cast<uint64_t>(shape.dims[0] * shape.dims[1]) * sizeof(float);
    return shape.rank == 2 && bytes <= MOST_WIDENED_BYTES;
}

weights::weights(const gb_program &of_program, bool with_fused_kernels)
    : program(of_program), has_fused_kernels(with_fused_kernels) {
    for (uint32_t i = 0; i < program.node_count; i++) {
        const gb_node &node = program.nodes[i];
        if (node.op == GB_OP_LINEAR || node.op == GB_OP_EXPERT_LINEAR)
            multiplied.insert(program.values[node.operands[1]].index);
    }
}

canonical_constant weights::constant_at(uint32_t index) const {
    canonical_constant constant = {program.constants[index], nullptr};
    if (!constant.data)
        throw failure(GUMBEL_ERROR_UNSUPPORTED,
                      std::string("constant ") + constant.name + " has no data: not read from a file");
    if (constant.packing.block_rows == 0)
        return constant;
    const auto size = static_cast<size_t>(constant.size);
    constant.unpacked.reset(new uint8_t[size], std::default_delete<uint8_t[]>());
    gb_constant_canonical(&constant, constant.unpacked.get());
    constant.data = constant.unpacked.get();
    constant.packing = {};
    return constant;
}

mx::array weights::numbers_of(gb_ref value) const {
    const canonical_constant constant = constant_at(program.values[value].index);
    const mx::array numbers = wrap(constant, 0, shape_of(constant), dtype_of(constant.type.dtype));
    return evaluated(mx::astype(numbers, mx::float32));
}

std::shared_ptr<const matrix> weights::matrix_of(gb_ref value) {
    std::shared_ptr<matrix> &known = matrices[program.values[value].index];
    if (!known)
        known = std::make_shared<matrix>(load(program.values[value].index));
    return known;
}

matrix weights::load(uint32_t index) {
    const canonical_constant constant = constant_at(index);
    const gb_format &format = constant.format;
    if (constant.unpacked)
        unpacked.add(static_cast<size_t>(constant.size));
    gb_planes planes;
    if (!gb_constant_planes(&constant, &planes))
        return load_dense(constant, multiplied.count(index) > 0);
    if (format.book != GB_BOOK_NONE)
        return dequantize(constant, planes);
    if (format.kind == GB_FORMAT_ONE_LEVEL) {
        const auto columns = static_cast<uint64_t>(shape_of(constant).back());
        const int group = format.group ? static_cast<int>(format.group) : group_for(columns);
        return group ? load_one_level(constant, planes, group) : dequantize(constant, planes);
    }
    const bool has_group_of_mlx = format.group == 32 || format.kind == GB_FORMAT_PROGRESSIVE;
    return has_group_of_mlx ? load_two_level(constant, planes) : dequantize(constant, planes);
}

/* A product of float32 activations with weights of 16 bits would widen them again in every step. */
matrix weights::load_dense(const canonical_constant &constant, bool is_multiplied) {
    mx::array stored = wrap(constant, 0, shape_of(constant), dtype_of(constant.type.dtype));
    if (!is_multiplied)
        return matrix(stored);
    const mx::array numbers = mx::astype(stored, mx::float32);
    if (stored.dtype() != mx::float32)
        widened.add(numbers.nbytes());
    return multiplied_matrix(numbers);
}

matrix weights::multiplied_matrix(const mx::array &numbers) const {
    return has_fused_kernels ? matrix(evaluated(numbers)) : matrix::stored_transposed(numbers);
}

/* Scales become float32, as the activations are; those of a row are repeated for its groups. */
matrix weights::load_one_level(const canonical_constant &constant, const gb_planes &planes, int group) {
    const mx::Shape shape = shape_of(constant);
    const mx::Shape stored = with_last(shape, static_cast<uint64_t>(shape.back()) / planes.group);
    const mx::Shape wanted = with_last(shape, static_cast<uint64_t>(shape.back() / group));
    const auto plane = [&](const gb_plane &from) {
        const mx::array values = wrap(constant, from.offset, stored, dtype_of(constant.format.scale));
        return evaluated(mx::contiguous(mx::broadcast_to(mx::astype(values, mx::float32), wanted)));
    };
    matrix result(codes_of(constant, planes));
    result.group = group;
    result.bits = constant.format.bits;
    result.widens_for_prompts = !has_fused_kernels && may_widen(constant);
    result.scales = plane(planes.scales);
    result.biases =
        constant.format.has_bias ? plane(planes.biases) : center_bias(*result.scales, constant.format);
    if (constant.format.group == 0)
        regrouped.add(result.scales->nbytes());
    return result;
}

matrix weights::load_two_level(const canonical_constant &constant, const gb_planes &planes) {
    const mx::Shape shape = shape_of(constant);
    const uint64_t groups = static_cast<uint64_t>(shape.back()) / planes.group, rows = row_count(constant);
    std::vector<float> scales(rows * groups), biases(rows * groups);
    for (uint64_t i = 0; i < rows * groups; i++) {
        const gb_affine affine =
            gb_format_affine(&constant.format, &planes, constant.data, i / groups, i % groups);
        scales[i] = affine.scale;
        biases[i] = affine.bias;
    }
    matrix result(codes_of(constant, planes));
    result.group = static_cast<int>(planes.group);
    result.bits = constant.format.bits;
    result.widens_for_prompts = !has_fused_kernels && may_widen(constant);
    result.scales = mx::array(scales.begin(), with_last(shape, groups), mx::float32);
    result.biases = gb_format_has_offset(&constant.format)
                        ? mx::array(biases.begin(), with_last(shape, groups), mx::float32)
                        : center_bias(*result.scales, constant.format);
    converted.add(result.scales->nbytes());
    return result;
}

matrix weights::dequantize(const canonical_constant &constant, const gb_planes &planes) {
    const mx::Shape shape = shape_of(constant);
    const auto columns = static_cast<uint64_t>(shape.back());
    const uint64_t rows = row_count(constant);
    std::vector<float> values(rows * columns);
    for (uint64_t row = 0; row < rows; row++)
        gb_format_dequantize(&constant.format, &planes, constant.data, row, 0, columns,
                             values.data() + row * columns);
    const mx::array numbers(values.begin(), shape, mx::float32);
    dequantized.add(numbers.nbytes());
    return multiplied_matrix(numbers);
}

/* ---- Notices ------------------------------------------------------------------------------------------- */

void weights::conversion::add(size_t more_bytes) {
    count++;
    bytes += more_bytes;
}

void weights::conversion::report(gumbel_log_callback log, void *user, const char *what) const {
    if (count == 0 || !log)
        return;
    const std::string line = "mlx: " + std::to_string(count) + (count == 1 ? " matrix " : " matrices ") +
                             what + ", " + std::to_string((bytes + 999999) / 1000000) + " MB";
    log(user, GUMBEL_LOG_INFO, line.c_str());
}

void weights::finish(gumbel_log_callback log, void *user) {
    std::vector<mx::array> all;
    for (const auto &[index, loaded] : matrices)
        all.push_back(loaded->weight);
    mx::eval(all);
    unpacked.report(log, user, "laid out for another backend: unpacked (gumbel pack does that once)");
    widened.report(log, user, "widened to float32");
    regrouped.report(log, user, "with a scale per row: scales repeated per group");
    converted.report(log, user, "with scales of two levels: scales and biases computed");
    dequantized.report(log, user, "in a format that mlx lacks: dequantized to float32");
}

} // namespace gb_mlx
