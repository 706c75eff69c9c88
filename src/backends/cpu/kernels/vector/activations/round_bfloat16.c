/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/vector_sources.h"

void GB_FOR_ISA(gb_round_bfloat16)(const float *x, const gb_activations *to, size_t row) {
    uint16_t *halves = to->halves + row * to->stride;
    for (size_t i = 0; i < to->inputs; i++)
        halves[i] = gb_bf16_operand(x[i]);
    memset(halves + to->inputs, 0, (to->stride - to->inputs) * sizeof *halves);
}
