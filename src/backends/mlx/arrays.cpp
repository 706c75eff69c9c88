/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/mlx/arrays.hpp"

namespace gb_mlx {

mx::Dtype dtype_of(gb_dtype dtype) {
    switch (dtype) {
    case GB_F32:
        return mx::float32;
    case GB_F16:
        return mx::float16;
    case GB_BF16:
        return mx::bfloat16;
    case GB_I32:
        return mx::int32;
    case GB_U32:
        return mx::uint32;
    case GB_U64:
        return mx::uint64;
    case GB_BOOL:
        return mx::bool_;
    case GB_Q8:
    case GB_Q4:
        return mx::uint8;
    default:
        throw failure(GUMBEL_ERROR_UNSUPPORTED, std::string("mlx has no dtype ") + gb_dtype_name(dtype));
    }
}

mx::array evaluated(mx::array array) {
    array.eval();
    return array;
}

mx::Shape shape_for_one(const gb_program &program, gb_ref value) {
    const gb_shape &shape = program.values[value].type.shape;
    mx::Shape dims;
    for (int32_t i = 0; i < shape.rank; i++)
        dims.push_back(shape.dims[i] < 0 ? 1 : static_cast<int>(shape.dims[i]));
    return dims;
}

repeated::repeated(const mx::array &constant, const mx::Shape &for_one)
    : any(constant), once(evaluated(mx::contiguous(mx::broadcast_to(constant, for_one)))) {}

mx::array part(const mx::array &x, int axis, int first, int end) {
    if (first == 0 && end == x.shape(axis))
        return x;
    mx::Shape start(x.ndim(), 0), stop = x.shape();
    const auto at = static_cast<size_t>(axis < 0 ? axis + static_cast<int>(x.ndim()) : axis);
    start[at] = first;
    stop[at] = end;
    return mx::slice(x, start, stop);
}

mx::array rotated(const mx::array &x, int block) {
    if (block == 0)
        return x;
    mx::Shape blocks = x.shape();
    blocks.back() /= block;
    blocks.push_back(block);
    return mx::reshape(mx::hadamard_transform(mx::reshape(x, blocks)), x.shape());
}

} // namespace gb_mlx
