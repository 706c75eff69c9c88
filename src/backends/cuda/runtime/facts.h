/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts of the first device, by which launches choose grids and shared memory.
 */
#ifndef GUMBEL_BACKENDS_CUDA_RUNTIME_FACTS_H
#define GUMBEL_BACKENDS_CUDA_RUNTIME_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gb_cuda_facts {
    bool is_there;            /* false: there is no device, and these are an H200's */
    int major;                /* of the compute capability */
    uint32_t multiprocessors; /* for which work is cut; a kernel gets through it on any number */
    size_t memory_bytes;      /* of the device */
    size_t shared_bytes;      /* of shared memory that a block can ask for, beside a kernel's own variables */
} gb_cuda_facts;

/* The facts, queried once. Thread-safe. */
const gb_cuda_facts *gb_cuda_find_facts(void);

/* Whether the device is there and Hopper or later: it has dependent launches and clusters. Thread-safe. */
bool gb_cuda_is_hopper(void);

#ifdef __cplusplus
}
#endif

#endif
