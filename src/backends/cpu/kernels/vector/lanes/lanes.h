/* SPDX-License-Identifier: Apache-2.0
 *
 * Sixteen float lanes made of the instruction set's own vectors. The sources in vector/ are compiled once per
 * set, with GB_ISA (its name) and GB_VECTOR_LANES (floats in one of its registers) defined.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LANES_LANES_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_LANES_LANES_H

#include "tensor/convert.h"
#include "tensor/dtype.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* name_avx2 and so on: external names differ between the sets. */
#define GB_JOIN_NAMES(a, b) a##_##b
#define GB_JOIN(a, b) GB_JOIN_NAMES(a, b)
#define GB_FOR_ISA(name) GB_JOIN(name, GB_ISA)

#define GB_INLINE static inline __attribute__((always_inline))
/* So that a kernel shares its registers with no other one that the same function may call. */
#define GB_NO_INLINE static __attribute__((noinline))

enum { GB_LANES = 16, GB_PARTS = GB_LANES / GB_VECTOR_LANES };

typedef float gb_vector __attribute__((vector_size(4 * GB_VECTOR_LANES)));
typedef uint32_t gb_vector_bits __attribute__((vector_size(4 * GB_VECTOR_LANES)));
typedef uint16_t gb_vector_half __attribute__((vector_size(2 * GB_VECTOR_LANES)));

typedef struct gb_lanes {
    gb_vector part[GB_PARTS];
} gb_lanes;

/* GCC makes poor code of __builtin_convertvector where one instruction would do. */
GB_INLINE gb_vector_bits gb_load_halves(const uint16_t *from) {
#if defined(__AVX512F__)
    return (gb_vector_bits)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)from));
#elif defined(__AVX2__)
    return (gb_vector_bits)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
#else
    gb_vector_half halves;
    memcpy(&halves, from, sizeof halves);
    return __builtin_convertvector(halves, gb_vector_bits);
#endif
}

GB_INLINE gb_vector gb_load_bf16(const uint16_t *from) {
    return (gb_vector)(gb_load_halves(from) << 16);
}

/* Exact; without the instruction, the vector form of gb_float_from_f16. */
GB_INLINE gb_vector gb_load_f16(const uint16_t *from) {
#if defined(__AVX512F__)
    return (gb_vector)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)from));
#elif defined(__F16C__)
    return (gb_vector)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
#else
    gb_vector_bits half = gb_load_halves(from);
    gb_vector_bits sign = (half & 0x8000u) << 16, magnitude = (half & 0x7fffu) << 13;
    gb_vector_bits exponent = magnitude & 0x0f800000u;
    gb_vector_bits is_special = (gb_vector_bits)(exponent == 0x0f800000u);
    gb_vector_bits is_tiny = (gb_vector_bits)(exponent == 0);
    gb_vector_bits normal = magnitude + 0x38000000u + (is_special & 0x38000000u);
    gb_vector tiny = (gb_vector)(magnitude + 0x38800000u) - 0x1p-14f;
    return (gb_vector)(sign | (is_tiny & (gb_vector_bits)tiny) | (~is_tiny & normal));
#endif
}

/* Elements from index on of an array of that dtype, which is a constant where this is inlined. */
GB_INLINE gb_vector gb_load_vector(const void *array, gb_dtype dtype, size_t index) {
    gb_vector vector;
    if (dtype == GB_F32)
        memcpy(&vector, (const float *)array + index, sizeof vector);
    else if (dtype == GB_BF16)
        vector = gb_load_bf16((const uint16_t *)array + index);
    else
        vector = gb_load_f16((const uint16_t *)array + index);
    return vector;
}

/* As many bytes as a vector has lanes. */
GB_INLINE gb_vector_bits gb_widen_bytes(const uint8_t *from) {
#if defined(__AVX512F__)
    return (gb_vector_bits)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
#elif defined(__AVX2__)
    return (gb_vector_bits)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from));
#else
    return (gb_vector_bits){from[0], from[1], from[2], from[3]};
#endif
}

typedef int32_t gb_vector_integers __attribute__((vector_size(4 * GB_VECTOR_LANES)));

GB_INLINE gb_vector_integers gb_widen_signed_bytes(const uint8_t *from) {
#if defined(__AVX512F__)
    return (gb_vector_integers)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
#elif defined(__AVX2__)
    return (gb_vector_integers)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from));
#else
    return (gb_vector_integers)gb_widen_bytes(from) << 24 >> 24;
#endif
}

/* Elements index .. index + 15. */
GB_INLINE gb_lanes gb_load_lanes(const void *array, gb_dtype dtype, size_t index) {
    gb_lanes lanes;
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        lanes.part[p] = gb_load_vector(array, dtype, index + (size_t)(p * GB_VECTOR_LANES));
    return lanes;
}

/* The last count < 16 elements from index on, padded with zeros. */
GB_INLINE gb_lanes gb_load_tail(const void *array, gb_dtype dtype, size_t index, size_t count) {
    _Alignas(64) uint8_t bytes[GB_LANES * sizeof(float)] = {0};
    size_t size = dtype == GB_F32 ? sizeof(float) : sizeof(uint16_t);
    memcpy(bytes, (const uint8_t *)array + index * size, count * size);
    return gb_load_lanes(bytes, dtype, 0);
}

GB_INLINE void gb_store_lanes(float *to, gb_lanes lanes) {
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        memcpy(to + p * GB_VECTOR_LANES, &lanes.part[p], sizeof lanes.part[p]);
}

GB_INLINE gb_lanes gb_zero_lanes(void) {
    gb_lanes lanes;
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        lanes.part[p] = (gb_vector){0};
    return lanes;
}

/* sum + a * b, the product rounded first. */
GB_INLINE gb_lanes gb_add_product(gb_lanes sum, gb_lanes a, gb_lanes b) {
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        sum.part[p] += a.part[p] * b.part[p];
    return sum;
}

GB_INLINE gb_lanes gb_multiply_by(gb_lanes a, float factor) {
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        a.part[p] *= factor;
    return a;
}

GB_INLINE gb_lanes gb_multiply_lanes(gb_lanes a, gb_lanes b) {
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        a.part[p] *= b.part[p];
    return a;
}

/* sum + factor * b, the product rounded first. */
GB_INLINE gb_lanes gb_add_scaled(gb_lanes sum, float factor, gb_lanes b) {
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++)
        sum.part[p] += b.part[p] * factor;
    return sum;
}

typedef float gb_four __attribute__((vector_size(16)));

/* Lanes l and l + 8 added, then l and l + 4. */
GB_INLINE gb_four gb_sum_to_four(gb_lanes lanes) {
#if defined(__AVX512F__)
    const __m512 all = (__m512)lanes.part[0];
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
    return (gb_four)_mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
#elif defined(__AVX2__)
    const __m256 eight = (__m256)(lanes.part[0] + lanes.part[1]);
    return (gb_four)_mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
#else
    return (lanes.part[0] + lanes.part[2]) + (lanes.part[1] + lanes.part[3]);
#endif
}

/* The fixed tree: lanes 8 apart, then 4, 2 and 1. */
GB_INLINE float gb_sum_lanes(gb_lanes lanes) {
    const gb_four a = gb_sum_to_four(lanes);
    return (a[0] + a[2]) + (a[1] + a[3]);
}

#endif
