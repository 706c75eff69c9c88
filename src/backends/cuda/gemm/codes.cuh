/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading quantized matrices on the device: canonical planes of any format (tensor/format.h), or those that
 * are packed for tensor cores (gb_packing_fragments, gb_packing_tiles).
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
    bool is_packed; /* which plane_row does not know */
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
    affine.scale =
        read_half(plane_row(m, m.planes.super_scales, row), super, GB_F16) * gb_book_unit(m.format.book);
    affine.scale *= bits == 8 ? (float)(int8_t)scales[group] : (float)gb_get_code(scales, bits, group);
    if (m.format.has_bias)
        affine.bias = -(read_half(plane_row(m, m.planes.super_biases, row), super, GB_F16) *
                        (float)gb_get_code(biases, bits, group));
    return affine;
}

/* Where the codes of a quarter, eight columns, begin in an integer format, canonical or in tiles. */
__device__ inline const uint8_t *quarter_codes(const quantized_matrix &m, size_t row, size_t quarter) {
    if (!m.is_packed)
        return plane_row(m, m.planes.codes, row) + quarter * m.format.bits;
    const uint8_t *plane = plane_row(m, m.planes.codes, row / GB_TILE_ROWS * GB_TILE_ROWS);
    const size_t fragment = row % GB_TILE_ROWS / GB_FRAGMENT_ROWS, half = row / 8 % 2;
    return plane + quarter / 16 * (GB_TILE_ROWS * GB_TILE_COLUMNS / 2) + fragment * 1024 +
           quarter / 8 % 2 * 512 + (row % 8 * 4 + quarter % 4) * 16 + quarter / 4 % 2 * 8 + half * 4;
}

/* The byte of a group of a progressive format, canonical or in tiles. */
__device__ inline uint8_t group_byte(const quantized_matrix &m, size_t row, size_t group) {
    if (!m.is_packed)
        return plane_row(m, m.planes.scales, row)[group];
    const size_t groups = GB_TILE_COLUMNS / m.format.group;
    const uint8_t *plane = plane_row(m, m.planes.scales, row / GB_TILE_ROWS * GB_TILE_ROWS);
    return plane[(group / groups * (GB_TILE_ROWS / GB_FRAGMENT_ROWS) +
                  row % GB_TILE_ROWS / GB_FRAGMENT_ROWS) *
                     groups * GB_FRAGMENT_ROWS +
                 group % groups * GB_FRAGMENT_ROWS + row % 8 * 2 + row / 8 % 2];
}

/* Every step is exact. */
__device__ inline float dequantize_progressive(const quantized_matrix &m, size_t row, size_t i) {
    const uint32_t code = gb_get_code(quarter_codes(m, row, i / 8), m.format.bits, i % 8);
    const gb_group_integers group =
        gb_get_group_integers(m.format.bits, group_byte(m, row, i / m.format.group));
    const float scale = read_half(plane_row(m, m.planes.super_scales, row), 0, GB_F16) * (float)group.scale;
    return scale * (float)code + -(scale * (float)group.zero);
}

/* Input i of a row: gb_format_dequantize. */
__device__ inline float dequantize(const quantized_matrix &m, size_t row, size_t i) {
    if (m.format.kind == GB_FORMAT_PROGRESSIVE)
        return dequantize_progressive(m, row, i);
    const gb_affine affine = affine_of(m, row, i / m.planes.group);
    const uint32_t bits = m.format.bits;
    const uint32_t found =
        m.is_packed ? gb_get_code(packed_codes(m, row, i / 32, (unsigned)(i % 32 / 8)), bits, i % 8)
                    : gb_get_code(plane_row(m, m.planes.codes, row), bits, i);
    const float product = affine.scale * (float)gb_format_integer(&m.format, found);
    return m.format.has_bias ? product + affine.bias : product;
}

} // namespace gb_cuda

#endif
