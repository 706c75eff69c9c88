/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading quantized matrices on the device: canonical planes of any format (tensor/format.h).
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_CODES_CUH
#define GUMBEL_RUN_CUDA_DEVICE_CODES_CUH

#include "run/cuda/device/device.cuh"

namespace gb_cuda {

/* A quantized matrix [rows, columns], as a kernel's argument. */
struct quantized_matrix {
    const uint8_t *data;
    gb_format format;
    gb_planes planes;
};

inline quantized_matrix matrix_of(const gb_cuda_tensor *tensor) {
    return quantized_matrix{data_of<const uint8_t>(tensor), tensor->format, tensor->planes};
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

/* Scale and bias of a group: gb_format_affine. */
__device__ inline gb_affine affine_of(const quantized_matrix &m, size_t row, size_t group) {
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
