/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel with one fault or none, for the tests of what is reported: it is named by the argument.
 */
#include "device.h"

#include <cstdio>

enum { THREADS = 64, UNSYNCHRONIZED = 1, ONE_LANE_ARRIVES = 2 };

/* y[i] = x[i] of the block's opposite thread, which the first warp says to have written. */
static void reverse(const float *x, float *y, int fault) {
    static float values[THREADS];
    static emulated::copy_barrier written;
    const unsigned i = threadIdx.x;
    if (i == 0)
        emulated::begin_barrier(&written, 2);
    __syncthreads();
    values[i] = x[i];
    if (fault == ONE_LANE_ARRIVES || fault == 0) {
        if (fault == 0)
            __syncwarp();
        if (i % emulated::WARP == 0)
            emulated::arrive_expecting(&written, 0);
        emulated::wait_for_phase(&written, 0);
    }
    y[i] = values[THREADS - 1 - i];
}

int main(int argument_count, char **arguments) {
    const char *fault = argument_count > 1 ? arguments[1] : "none";
    const float numbers[THREADS] = {};
    const bool is_unwritten = strcmp(fault, "unwritten") == 0;
    void *x, *y;
    cudaMalloc(&x, sizeof numbers);
    cudaMalloc(&y, sizeof numbers);
    cudaMemcpy(x, numbers, sizeof numbers - (is_unwritten ? sizeof(float) : 0), cudaMemcpyHostToDevice);
    const int kind = strcmp(fault, "unsynchronized") == 0     ? UNSYNCHRONIZED
                     : strcmp(fault, "one_lane_arrives") == 0 ? ONE_LANE_ARRIVES
                                                              : 0;
    void *parameters[] = {&x, &y, const_cast<int *>(&kind)};
    const cudaLaunchConfig_t config = {1, THREADS, 0, nullptr, nullptr, 0};
    emulated::know_kernel(reverse);
    cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(reverse), parameters);
    cudaFree(x);
    cudaFree(y);
    return 0;
}
