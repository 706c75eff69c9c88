/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of pinned host memory, which the device copies to and from at full speed. Pinning takes some ten
 * times as long as copying, so that a thread does it ahead: as many blocks are free as were ever taken at
 * once, up to 1 GiB. Blocks are not given back to the system, since the device may still copy into them.
 */
#ifndef GUMBEL_BACKENDS_CUDA_RUNTIME_HOST_BLOCKS_H
#define GUMBEL_BACKENDS_CUDA_RUNTIME_HOST_BLOCKS_H

#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gb_cuda_host_block {
    struct gb_cuda_host_block *next;
    uint8_t *memory;
    bool is_pinned;
} gb_cuda_host_block;

typedef struct gb_cuda_host_blocks {
    uint64_t block_bytes;
    int device;            /* that of the thread that created them */
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    gb_cuda_host_block *free;
    size_t free_count, reserve; /* free blocks that there are, and are to be at least */
    bool is_open, has_thread, stops;
    pthread_t thread;
} gb_cuda_host_blocks;

/* block_bytes: a power of 2, of pages at least. Errors: MEMORY. */
gumbel_status gb_cuda_host_blocks_create(uint64_t block_bytes, gb_cuda_host_blocks *blocks,
                                         gumbel_error *error);

/* All blocks must have been given back, and the device must be done with them. Safe on a zeroed structure. */
void gb_cuda_host_blocks_destroy(gb_cuda_host_blocks *blocks);

/* Takes so many blocks, as a list. What they hold is undefined. One that the system will not pin is copied to
 * and from more slowly. Errors: MEMORY. */
gumbel_status gb_cuda_host_blocks_take(gb_cuda_host_blocks *blocks, size_t count, gb_cuda_host_block **list,
                                       gumbel_error *error);

/* Gives a list back. */
void gb_cuda_host_blocks_give_back(gb_cuda_host_blocks *blocks, gb_cuda_host_block *list);

#endif
