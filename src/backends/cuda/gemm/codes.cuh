/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading quantized matrices on the device: canonical planes of any format (tensor/format.h), or those that
 * are packed for tensor cores (gb_packing_fragments).
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_CODES_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_CODES_CUH

#include "backends/cuda/device/device.cuh"

namespace gb_cuda {

/* A quantized matrix [rows, columns], as a kernel's argument. */
struct quantized_matrix {
    const uint8_t *data;
    gb_format format;
    gb_planes planes;
    bool is_packed; /* which dequantize and plane_row do not know */
};

inline quantized_matrix matrix_of(const gb_cuda_tensor *tensor) {
    return quantized_matrix{data_of<const uint8_t>(tensor), tensor->format, tensor->planes,
                            tensor->is_packed};
}

__device__ inline const uint8_t *plane_row(const quantized_matrix &m, const gb_plane &plane, size_t row) {
    return m.data + plane.offset + row * plane.row_bytes;
}

__device__ inline float read_half(const uint8_t *halves, size_t i, gb_dtype dtype) {
    const uint16_t half = reinterpret_cast<const uint16_t *>(halves)[i];
    return gb_widen_half(half, dtype);
}

__device__ inline int code_center(const gb_format &format) {
    return format.has_bias ? 0 : 1 << (format.bits - 1);
}

/* Where the packed block of a row begins in a plane. */
__device__ inline const uint8_t *packed_block(const quantized_matrix &m, const gb_plane &plane, size_t row) {
    return plane_row(m, plane, row / GB_FRAGMENT_ROWS * GB_FRAGMENT_ROWS);
}

/* The packed codes of columns 8 * quarter .. of a unit: a word of 4-bit codes, two of 8-bit ones. */
__device__ inline const uint8_t *packed_codes(const quantized_matrix &m, size_t row, size_t unit,
                                              unsigned quarter) {
    const unsigned half = (unsigned)(row / 8 % 2), lane = (unsigned)(row % 8 * 4 + quarter);
    const size_t at = m.format.bits == 4 ? unit / 2 * 512 + lane * 16 + unit % 2 * 8 + half * 4
                                         : unit * 512 + lane * 16 + half * 8;
    return packed_block(m, m.planes.codes, row) + at;
}

/* The same for scales and biases: their number in the block. */
__device__ inline size_t packed_scale(size_t row, size_t group) {
    return group * GB_FRAGMENT_ROWS + row % 8 * 2 + row / 8 % 2;
}

/* Scale and bias of a group: gb_format_affine. */
__device__ inline gb_affine affine_of(const quantized_matrix &m, size_t row, size_t group) {
    if (m.is_packed) {
        const size_t i = packed_scale(row, group);
        gb_affine packed;
        packed.scale = read_half(packed_block(m, m.planes.scales, row), i, m.format.scale);
        packed.bias =
            m.format.has_bias ? read_half(packed_block(m, m.planes.biases, row), i, m.format.scale) : 0.0f;
        return packed;
    }
    const uint8_t *scales = plane_row(m, m.planes.scales, row);
    const uint8_t *biases = plane_row(m, m.planes.biases, row);
    gb_affine affine;
    affine.bias = 0;
    if (m.format.kind == GB_FORMAT_ONE_LEVEL) {
        affine.scale = read_half(scales, group, m.format.scale);
        if (m.format.has_bias)
            affine.bias = read_half(biases, group, m.format.scale);
        return affine;
    }
    const size_t super = group * m.format.group / GB_SUPER_GROUP;
    const uint32_t bits = m.format.scale_bits;
    affine.scale = read_half(plane_row(m, m.planes.super_scales, row), super, GB_F16);
    affine.scale *= bits == 8 ? (float)(int8_t)scales[group] : (float)gb_get_code(scales, bits, group);
    if (m.format.has_bias)
        affine.bias = -(read_half(plane_row(m, m.planes.super_biases, row), super, GB_F16) *
                        (float)gb_get_code(biases, bits, group));
    return affine;
}

/* Input i of a row: gb_format_dequantize. */
__device__ inline float dequantize(const quantized_matrix &m, size_t row, size_t i) {
    const gb_affine affine = affine_of(m, row, i / m.planes.group);
    const int code =
        (int)gb_get_code(plane_row(m, m.planes.codes, row), m.format.bits, i) - code_center(m.format);
    const float product = affine.scale * (float)code;
    return m.format.has_bias ? product + affine.bias : product;
}

} // namespace gb_cuda

#endif
