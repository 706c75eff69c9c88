/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel that reads a word that nobody wrote, for the test that this is reported; with the argument `all`
 * every word is written, and nothing is.
 */
#include "cuda/device_memory.h"

enum { SIZE = 32 };

int main(int argument_count, char **arguments) {
    const size_t written = argument_count > 1 && strcmp(arguments[1], "all") == 0 ? SIZE : SIZE - 1;
    const uint32_t bits[SIZE] = {0};
    gb_cuda_tensor from = device_tensor(GB_U32, NULL, 2, 1, SIZE, 1);
    gb_cuda_tensor to = device_tensor(GB_F32, NULL, 2, 1, SIZE, 1);
    gb_cuda_call call = {.operands = {&from}, .results = {&to}};
    assert_cuda(cudaMemcpy(from.data, bits, written * sizeof *bits, cudaMemcpyHostToDevice));
    gb_cuda_gumbel_noise(&call);
    free_on_device(&from);
    free_on_device(&to);
    return 0;
}
