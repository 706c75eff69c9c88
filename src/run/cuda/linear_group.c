/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cuda/kernels.h"

typedef void (*joined_kernel)(const gb_cuda_call *const *calls, uint32_t count);

/* What computes a call together with others; NULL: nothing does. */
static joined_kernel kernel_of(const gb_cuda_call *call) {
    const gb_cuda_tensor *weight = call->operands[1];
    if (gb_cuda_takes_dense_few(call))
        return gb_cuda_dense_few;
    if (gb_cuda_takes_dense_rows(call))
        return gb_cuda_dense_rows;
    if (gb_cuda_takes_dense_prompt(call))
        return gb_cuda_dense_prompt;
    return weight->is_packed && !call->is_prefill ? gb_cuda_few_linears : NULL;
}

static bool joins(const gb_cuda_call *call, const gb_cuda_call *other) {
    const joined_kernel kernel = kernel_of(call);
    return kernel && kernel == kernel_of(other) && call->operands[0] == other->operands[0] &&
           (kernel != gb_cuda_few_linears || gb_cuda_linear_joins(call, other)) &&
           (kernel != gb_cuda_dense_rows || gb_cuda_dense_rows_join(call, other));
}

/* Launches a call with those after it that join it, unless they have been. launched: a bit each. */
static void launch_joined(const gb_cuda_call *const *calls, uint32_t count, uint32_t first,
                          uint32_t *launched) {
    const gb_cuda_call *joined[GB_CUDA_MOST_JOINED];
    uint32_t joined_count = 0;
    for (uint32_t i = first; i < count && joined_count < GB_CUDA_MOST_JOINED; i++) {
        if (*launched >> i & 1 || (i > first && !joins(calls[first], calls[i])))
            continue;
        joined[joined_count++] = calls[i];
        *launched |= 1u << i;
    }
    if (joined_count > 0 && kernel_of(joined[0]))
        kernel_of(joined[0])(joined, joined_count);
    else if (joined_count > 0)
        gb_cuda_linear(joined[0]);
}

/* Few outputs come first: what follows a large product then does not wait for small ones. */
void gb_cuda_linear_group(const gb_cuda_call *const *calls, uint32_t count) {
    uint32_t launched = 0;
    for (uint32_t i = 0; i < count; i++)
        launched |= (uint32_t)calls[i]->is_made << i;
    for (uint32_t first = 0; first < count; first++)
        if (gb_cuda_takes_dense_few(calls[first]))
            launch_joined(calls, count, first, &launched);
    for (uint32_t first = 0; first < count; first++)
        launch_joined(calls, count, first, &launched);
}
