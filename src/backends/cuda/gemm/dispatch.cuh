/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts of a format as template arguments: of the values that a kernel has instances for.
 */
#ifndef GUMBEL_BACKENDS_CUDA_GEMM_DISPATCH_CUH
#define GUMBEL_BACKENDS_CUDA_GEMM_DISPATCH_CUH

#include "backends/cuda/device/device.cuh"

namespace gb_cuda {

/* A number as that one of VALUES which it is. For another one the last instance would run, slowly at best:
 * the emulated device refuses it. */
template <int... VALUES>
struct one_of {
    int number;
    explicit one_of(size_t of) : number((int)of) {
#if !defined(__CUDACC__)
        emulated::require(((number == VALUES) || ...), "a kernel has no instance for a number");
#endif
    }
};

/* Calls a function with a fixed number for each choice. */
template <typename Function>
void dispatch(const Function &function) {
    function();
}
template <typename Function, int VALUE, int... OTHERS, typename... Choices>
void dispatch(const Function &function, one_of<VALUE, OTHERS...> choice, Choices... choices) {
    if constexpr (sizeof...(OTHERS) > 0)
        if (choice.number != VALUE)
            return dispatch(function, one_of<OTHERS...>((size_t)choice.number), choices...);
    dispatch([&](auto... others) { function(fixed<VALUE>(), others...); }, choices...);
}

} // namespace gb_cuda

#endif
