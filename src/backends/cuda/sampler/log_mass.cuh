/* SPDX-License-Identifier: Apache-2.0
 *
 * Log-probabilities from the masses of a row: the same integers and the same few float operations as in
 * backends/sampler/logprob.c, so the same bits.
 */
#ifndef GUMBEL_BACKENDS_CUDA_SAMPLER_LOG_MASS_CUH
#define GUMBEL_BACKENDS_CUDA_SAMPLER_LOG_MASS_CUH

#include "backends/cuda/sampler/groups.cuh"

namespace gb_cuda {

/* The logarithm of a mass in units of 2^-40, above 0: that of the nearest float, and what it leaves out. */
__device__ inline float log_of_mass(weight_sum mass) {
    const float nearest = (float)mass;
    const double rest = ((double)mass - (double)nearest) / (double)nearest;
    return gb_log(nearest * 0x1p-40f) + (float)rest;
}

/* That of a token of a row with its normalizer; -inf for one that the row does not have. */
__device__ inline float log_probability_of(const float *row, uint32_t size, int32_t token, float largest,
                                           float log_of_sum) {
    if (token < 0 || (uint32_t)token >= size)
        return gb_negative_infinity();
    const float x = row[token];
    return x == largest /* also where both are infinite */
               ? -log_of_sum
               : (float)(((double)x - (double)largest) - (double)log_of_sum);
}

} // namespace gb_cuda

#endif
