/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cuda/kernels.h"

void gb_cuda_linear_group(const gb_cuda_call *const *calls, uint32_t count) {
    for (uint32_t first = 0, end; first < count; first = end) {
        end = first + 1;
        while (end < count && end - first < GB_CUDA_MOST_JOINED &&
               gb_cuda_linear_joins(calls[first], calls[end]))
            end++;
        if (end - first > 1)
            gb_cuda_few_linears(calls + first, end - first);
        else
            gb_cuda_linear(calls[first]);
    }
}
