/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/vector_sources.h"

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

extern const gb_vector_kernels GB_FOR_ISA(gb_vector_kernels);

const gb_vector_kernels GB_FOR_ISA(gb_vector_kernels) = {
    .name = TEXT(GB_ISA),
    .linear = GB_FOR_ISA(gb_linear),
    .quantize = GB_FOR_ISA(gb_quantize),
    .linear_int8 = GB_FOR_ISA(gb_linear_int8),
    .quantize_token = GB_FOR_ISA(gb_quantize_token),
    .linear_exact = GB_FOR_ISA(gb_linear_exact),
    .round_bfloat16 = GB_FOR_ISA(gb_round_bfloat16),
    .linear_bfloat16 = GB_FOR_ISA(gb_linear_bfloat16),
    .dequantize = GB_FOR_ISA(gb_dequantize),
    .hadamard = GB_FOR_ISA(gb_orthonormal_hadamard),
    .attend = GB_FOR_ISA(gb_attend),
    .store_codes = GB_FOR_ISA(gb_store_codes),
    .rotate = GB_FOR_ISA(gb_rotate),
    .conv = GB_FOR_ISA(gb_conv),
    .delta = GB_FOR_ISA(gb_delta),
    .rms_norm = GB_FOR_ISA(gb_rms_norm),
    .l2_normalize = GB_FOR_ISA(gb_l2_normalize),
    .add = GB_FOR_ISA(gb_add),
    .multiply = GB_FOR_ISA(gb_multiply),
    .scale = GB_FOR_ISA(gb_scale),
    .gelu_tanh = GB_FOR_ISA(gb_gelu_tanh),
    .silu = GB_FOR_ISA(gb_silu),
    .clamped_swiglu = GB_FOR_ISA(gb_clamped_swiglu),
    .sigmoid = GB_FOR_ISA(gb_sigmoid),
    .softplus = GB_FOR_ISA(gb_softplus),
    .relu_squared = GB_FOR_ISA(gb_relu_squared),
    .soft_cap = GB_FOR_ISA(gb_soft_cap),
    .add_scaled = GB_FOR_ISA(gb_add_scaled),
    .delta_decay = GB_FOR_ISA(gb_delta_decay),
    .peak = GB_FOR_ISA(gb_peak),
    .read = GB_FOR_ISA(gb_read),
    .widen = GB_FOR_ISA(gb_widen),
    .narrow = GB_FOR_ISA(gb_narrow),
};
