/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer of a delta net between its products: from the convolution to what its last product takes. Generated
 * tokens have one kernel for all of it where the shapes are the usual ones.
 */
#ifndef GUMBEL_RUN_CUDA_DELTA_LAYER_H
#define GUMBEL_RUN_CUDA_DELTA_LAYER_H

#include "run/cuda/kernels.h"

/* Heads and convolutions of delta_step.cu. */
enum { GB_CUDA_DELTA_SIZE = 128, GB_CUDA_DELTA_WIDTH = 4 };

/* The layer's calls, as one takes what the other makes:
 *
 *     mixed = silu(convolution(x));  query, key, value = slices of mixed
 *     y = delta(l2_normalize(query), l2_normalize(key), value, decay(a), sigmoid(b))
 *     result = rms_norm(y) * silu(z)
 */
typedef struct gb_cuda_delta_layer {
    const gb_cuda_call *convolution, *query, *key, *value; /* the slices */
    const gb_cuda_call *query_norm, *key_norm, *decay, *beta, *delta, *norm, *gate, *result;
} gb_cuda_delta_layer;

/* Finds the layer among the calls of steps that join; false where they are something else, or delta_step.cu
 * does not have their shapes. Of steps whose is_kept is set something else reads the result. */
bool gb_cuda_find_delta_layer(const gb_cuda_call *const *calls, const bool *is_kept, uint32_t count,
                              gb_cuda_delta_layer *layer);

/* delta_step.cu: launches the layer, of generated tokens. */
void gb_cuda_delta_step(const gb_cuda_delta_layer *layer);

#endif
