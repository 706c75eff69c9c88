/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of one instruction set, named after it: what table.c collects. Only vector/ includes it.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_VECTOR_SOURCES_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_VECTOR_SOURCES_H

#include "backends/cpu/kernels/vector/lanes/lanes.h"
#include "backends/cpu/kernels/vector/vector_kernels.h"

/* Which row of the input is token's, that row, and the one of the result. */
static inline size_t gb_linear_input_row(const gb_linear *l, size_t token) {
    return l->rows ? l->rows[token] / l->x_reuse : token;
}

static inline const float *gb_linear_input(const gb_linear *l, size_t token) {
    return l->x + gb_linear_input_row(l, token) * l->x_stride;
}

static inline float *gb_linear_result(const gb_linear *l, size_t token) {
    return l->y + (l->rows ? l->rows[token] : token) * l->y_stride;
}

void GB_FOR_ISA(gb_linear)(const gb_linear *linear, size_t first, size_t end, void *scratch);
void GB_FOR_ISA(gb_quantize)(const float *x, const gb_activations *to, size_t row, size_t first, size_t end);
void GB_FOR_ISA(gb_linear_int8)(const gb_linear *linear, size_t first, size_t end, void *scratch);
void GB_FOR_ISA(gb_quantize_token)(const float *x, const gb_activations *to, size_t row, void *scratch);
void GB_FOR_ISA(gb_linear_exact)(const gb_linear *linear, size_t first, size_t end, void *scratch);
void GB_FOR_ISA(gb_round_bfloat16)(const float *x, const gb_activations *to, size_t row);
void GB_FOR_ISA(gb_linear_bfloat16)(const gb_linear *linear, size_t first, size_t end, void *scratch);
void GB_FOR_ISA(gb_linear_interleaved)(const gb_linear *linear, size_t first, size_t end, void *scratch);
/* For one token and an interleaved matrix of one level. */
void GB_FOR_ISA(gb_linear_token)(const gb_linear *linear, size_t first, size_t end);
/* The same for one of two levels, with at most GB_MOST_TOKEN_GROUPS groups in a row. */
void GB_FOR_ISA(gb_linear_token_levels)(const gb_linear *linear, size_t first, size_t end, void *scratch);
enum { GB_MOST_TOKEN_GROUPS = GB_LINEAR_SCRATCH / sizeof(int32_t) };
void GB_FOR_ISA(gb_dequantize)(const gb_quantized_matrix *matrix, size_t row, size_t first, size_t count,
                               float *to);
/* gb_linear of an interleaved matrix, fast for a few tokens. */
void GB_FOR_ISA(gb_linear_token_float)(const gb_linear *linear, size_t first, size_t end);
/* 16 rows from row on, a multiple of 16, of an interleaved matrix; row r of them begins at to[r * stride].
 * first is a multiple of GB_DEQUANTIZED_SPAN, and count too, or what is left of the row. What follows the
 * count numbers up to a multiple of 16 is undefined. */
void GB_FOR_ISA(gb_dequantize_block)(const gb_quantized_matrix *matrix, size_t row, size_t first,
                                     size_t count, float *to, size_t stride);
enum { GB_DEQUANTIZED_ROWS = 16, GB_DEQUANTIZED_SPAN = 256 };
void GB_FOR_ISA(gb_orthonormal_hadamard)(float *x, size_t count, size_t size);
void GB_FOR_ISA(gb_attend)(const gb_attend *attend, void *scratch);
void GB_FOR_ISA(gb_attend_many)(const gb_attend *attend, void *scratch);
void GB_FOR_ISA(gb_store_codes)(const float *x, size_t count, gb_dtype dtype, uint32_t rotation, void *row);
void GB_FOR_ISA(gb_rotate)(const gb_rotation *rotation);
void GB_FOR_ISA(gb_rms_norm)(const float *x, size_t count, float epsilon, float scale, const void *weight,
                             gb_dtype weight_dtype, float weight_offset, float *y);
void GB_FOR_ISA(gb_l2_normalize)(const float *x, size_t count, float epsilon, float scale, float *y);
void GB_FOR_ISA(gb_conv)(const gb_conv *conv, size_t first, size_t end, void *scratch);
void GB_FOR_ISA(gb_delta)(const gb_delta *delta, size_t first, size_t end, void *scratch);
void GB_FOR_ISA(gb_add)(const float *a, const float *b, size_t count, float *y);
void GB_FOR_ISA(gb_multiply)(const float *a, const float *b, size_t count, float *y);
void GB_FOR_ISA(gb_scale)(const float *x, float factor, size_t count, float *y);
void GB_FOR_ISA(gb_gelu_tanh)(const float *x, size_t count, float *y);
void GB_FOR_ISA(gb_silu)(const float *x, size_t count, float *y);
void GB_FOR_ISA(gb_clamped_swiglu)(const float *gate, const float *up, gb_swiglu_clamp clamp, size_t count,
                                   float *y);
void GB_FOR_ISA(gb_sigmoid)(const float *x, size_t count, float *y);
void GB_FOR_ISA(gb_softplus)(const float *x, size_t count, float *y);
void GB_FOR_ISA(gb_relu_squared)(const float *x, size_t count, float *y);
void GB_FOR_ISA(gb_add_scaled)(const float *x, float factor, size_t count, float *y);
void GB_FOR_ISA(gb_delta_decay)(const float *x, const float *a_log, const float *bias, size_t count,
                                float *y);
void GB_FOR_ISA(gb_soft_cap)(const float *x, float cap, size_t count, float *y);
uint32_t GB_FOR_ISA(gb_peak)(const uint8_t *codes, uint64_t rounds, uint64_t *products);
uint32_t GB_FOR_ISA(gb_read)(const void *memory, size_t bytes);
void GB_FOR_ISA(gb_widen)(const void *from, gb_dtype dtype, size_t count, float *to);
void GB_FOR_ISA(gb_narrow)(const float *from, gb_dtype dtype, size_t count, void *to);

#endif
