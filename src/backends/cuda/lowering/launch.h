/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches as data. Kernels' files describe theirs (device/device.cuh); a list is printed, run, captured
 * and timed from what stands in it.
 */
#ifndef GUMBEL_BACKENDS_CUDA_LOWERING_LAUNCH_H
#define GUMBEL_BACKENDS_CUDA_LOWERING_LAUNCH_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GB_CUDA_MOST_PARAMETERS = 16 };

typedef struct gb_cuda_launch {
    const char *name;        /* part of the function's own name */
    const void *function;    /* a kernel */
    struct dim3 grid, block; /* in blocks, in threads */
    unsigned cluster;        /* blocks along x that reach each other's shared memory; 1: none do */
    size_t shared_bytes;     /* dynamic */
    uint32_t step;           /* of its list's plan, which says what is read and written */
    uint32_t parameter_count;
    uint32_t parameters[GB_CUDA_MOST_PARAMETERS]; /* where each begins in the list's bytes */
} gb_cuda_launch;

/* Zeros are an empty list. Not thread-safe. */
typedef struct gb_cuda_launch_list {
    gb_cuda_launch *launches;
    uint8_t *bytes; /* of parameters */
    uint32_t count;
    size_t capacity, byte_count, byte_capacity;
    bool has_failed; /* there was no memory for a launch */
} gb_cuda_launch_list;

/* Adds a launch whose parameters follow. Where there is no memory the list notes that, and has nothing more
 * added. */
void gb_cuda_launch_add(gb_cuda_launch_list *list, const gb_cuda_launch *launch);

/* Copies the next parameter of the last launch into the list. */
void gb_cuda_launch_add_parameter(gb_cuda_launch_list *list, const void *parameter, size_t size);

/* Leaves the memory for the next launches. */
void gb_cuda_launch_list_clear(gb_cuda_launch_list *list);
void gb_cuda_launch_list_destroy(gb_cuda_launch_list *list);

/* Enqueues a launch with those parameters. On Hopper and later it may begin while the one before it in the
 * stream ends (programmatic dependent launch). */
cudaError_t gb_cuda_launch_run_with(const gb_cuda_launch *launch, void **parameters, cudaStream_t stream);

/* Enqueues launch number i of a list. */
cudaError_t gb_cuda_launch_run(const gb_cuda_launch_list *list, uint32_t i, cudaStream_t stream);

/* Enqueues all. Errors: cudaErrorMemoryAllocation where the list has failed. */
cudaError_t gb_cuda_launch_list_run(const gb_cuda_launch_list *list, cudaStream_t stream);

#endif
