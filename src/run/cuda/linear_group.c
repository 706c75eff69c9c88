/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cuda/kernels.h"

void gb_cuda_linear_group(const gb_cuda_call *const *calls, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        gb_cuda_linear(calls[i]);
}
