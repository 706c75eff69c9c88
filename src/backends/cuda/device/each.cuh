/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel of what is computed element by element: a thread calls a function with a row and a column.
 */
#ifndef GUMBEL_BACKENDS_CUDA_DEVICE_EACH_CUH
#define GUMBEL_BACKENDS_CUDA_DEVICE_EACH_CUH

#include "backends/cuda/device/device.cuh"

namespace gb_cuda {

enum { EACH_THREADS = 256 };

template <typename Function>
static __global__ void __launch_bounds__(EACH_THREADS) run_each(size_t columns, Function function) {
    wait_for_earlier();
    const size_t column = (size_t)blockIdx.x * EACH_THREADS + threadIdx.x;
    if (column < columns)
        function((size_t)blockIdx.y, column);
}

/* name: part of the function's type's. Whole warps call it where there are whole warps of columns. */
template <typename Function>
void add_each(gb_cuda_launch_list *list, const char *name, size_t rows, size_t columns, Function function) {
    const dim3 grid(blocks_for(columns, EACH_THREADS), (unsigned)rows);
    add_launch(list, name, run_each<Function>, grid, EACH_THREADS, 0, columns, function);
}

} // namespace gb_cuda

#endif
