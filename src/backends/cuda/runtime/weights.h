/* SPDX-License-Identifier: Apache-2.0
 *
 * A program's constants on the device, copied once through pinned memory, in the layouts that lowering has
 * chosen. Threads of the host lay out what the file has in another packing.
 */
#ifndef GUMBEL_BACKENDS_CUDA_RUNTIME_WEIGHTS_H
#define GUMBEL_BACKENDS_CUDA_RUNTIME_WEIGHTS_H

#include "backends/backend.h"
#include "backends/cuda/lowering/weight_layouts.h"

#include <cuda_runtime_api.h>

typedef struct gb_cuda_weights {
    uint8_t *memory;
    uint64_t *offsets;              /* by constant, into memory */
    gb_cuda_weight_layout *layouts; /* by constant */
    uint64_t size;
} gb_cuda_weights;

/* How all constants will lie on the device that is there, or an H200: everything but memory. Safe to destroy
 * after a failure. Errors: MEMORY, FORMAT, UNSUPPORTED (a constant without data). */
gumbel_status gb_cuda_weights_place(const gb_program *program, gb_cuda_weights *weights, gumbel_error *error);

/* Copies all constants, with notices of the progress by options->log where that takes long. Safe to destroy
 * after a failure. Errors: MEMORY, BACKEND, UNSUPPORTED (a constant without data). */
gumbel_status gb_cuda_weights_create(const gb_program *program, const gb_backend_options *options,
                                     cudaStream_t stream, gb_cuda_weights *weights, gumbel_error *error);
void gb_cuda_weights_destroy(gb_cuda_weights *weights);

#endif
