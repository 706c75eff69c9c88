/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/activations/quantize.h"
#include "backends/cpu/kernels/vector/hadamard.h"

_Static_assert((size_t)GB_MAX_INT32_INPUTS * sizeof(float) <= GB_LINEAR_SCRATCH, "the scratch holds a row");

/* Groups whose sizes the compiler knows. */
static void round_groups(const float *x, const gb_activations *to, size_t row, float scale) {
    enum { GROUP = 32 };
    int8_t *codes = to->codes + row * to->stride;
    int32_t *sums = to->code_sums + row * to->groups;
    size_t at = 0;
    for (; to->group == GROUP && at + GROUP <= to->inputs; at += GROUP)
        *sums++ = gb_round_codes(x + at, GROUP, scale, codes + at);
    for (size_t count; at < to->inputs; at += count) {
        count = to->inputs - at < to->group ? to->inputs - at : to->group;
        *sums++ = gb_round_codes(x + at, count, scale, codes + at);
    }
}

void GB_FOR_ISA(gb_quantize_token)(const float *x, const gb_activations *to, size_t row, void *scratch) {
    const size_t rotation = to->rounding.rotation;
    if (rotation > 0) {
        gb_hadamard_row(x, to->inputs, rotation, scratch);
        x = scratch;
    }
    const float scale = gb_code_scale(x, to->inputs);
    round_groups(x, to, row, scale);
    to->scales[row] = rotation > 0 ? scale * gb_hadamard_scale(rotation) : scale;
}
