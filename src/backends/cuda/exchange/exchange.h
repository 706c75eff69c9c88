/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels of several ranks exchange numbers by: memory of each device that the others read and write
 * directly, over NVLink or PCIe. Kernels of all ranks wait for each other within a launch, so that a step
 * with exchanges stays one captured graph. What differs from step to step lies in device memory.
 */
#ifndef GUMBEL_BACKENDS_CUDA_EXCHANGE_EXCHANGE_H
#define GUMBEL_BACKENDS_CUDA_EXCHANGE_EXCHANGE_H

#include "backends/ranks/meeting.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Words of 4 bytes that a rank's part has at most to go through mailboxes, by blocks of that many; how many
 * blocks other parts take at most, so few that all run at once; and how many round rows, each so many between
 * two meetings. A block waits for those of its number on other ranks alone. */
enum {
    GB_CUDA_MAIL_BLOCK = 256,
    GB_CUDA_MAIL_BLOCKS = 64,
    GB_CUDA_MOST_MAIL = GB_CUDA_MAIL_BLOCK * GB_CUDA_MAIL_BLOCKS,
    GB_CUDA_EXCHANGE_BLOCKS = 128,
    GB_CUDA_ROW_BLOCKS = 512,
    GB_CUDA_ROWS_OF_BLOCK = 16,
    GB_CUDA_BOXES = 3 + GB_CUDA_ROWS_OF_BLOCK
};

/* Addresses by rank. */
typedef struct gb_cuda_exchange {
    uint32_t rank, ranks;
    bool shares_device; /* with another rank: kernels behind an exchange must not take its place while it
                           waits */
    bool has_opened;    /* the others' memory, which is that of other processes */
    /* How many blocks of threads a launch has at most that round rows, the same on all ranks. Blocks begin in
     * the order of their numbers, so that the first one that has not ended runs on all; ranks of one device
     * share its places. */
    uint32_t row_blocks;
    uint64_t *mail[GB_MOST_RANKS]; /* [2, ranks, GB_CUDA_MOST_MAIL]: parity of the epoch, sender, words */
    /* [2, GB_CUDA_EXCHANGE_BLOCKS, ranks]: ready (where that is asked) or done, block, sender */
    uint32_t *flags[GB_MOST_RANKS];
    uint64_t *boxes[GB_MOST_RANKS]; /* [GB_CUDA_ROW_BLOCKS, GB_CUDA_BOXES, ranks]: block; largest, meeting,
                                       sums; sender */
    uint8_t *arenas[GB_MOST_RANKS]; /* of a step's values, which lie alike in all */
    uint32_t *epochs; /* own: [GB_CUDA_MAIL_BLOCKS + GB_CUDA_EXCHANGE_BLOCKS + GB_CUDA_ROW_BLOCKS], exchanges
                         so far */
    struct gb_cuda_exchange *on_device;      /* a copy of this */
    volatile uint32_t *stops[GB_MOST_RANKS]; /* in pinned memory: not 0 ends all waiting of the rank */
} gb_cuda_exchange;

/* Into how many blocks each of some rows of a launch is shared out, of so many at most: a block has one row
 * then, so there must be blocks for all. exchange may be NULL. */
static inline uint32_t gb_cuda_row_shares(const gb_cuda_exchange *exchange, uint32_t rows, uint32_t shares) {
    return exchange && rows * shares > exchange->row_blocks ? 1 : shares;
}

/* Bytes to reserve for memory that other ranks reach: a whole number of the device's pages, since a process
 * opens pages of another. */
static inline uint64_t gb_cuda_exchange_bytes(uint64_t size) {
    const uint64_t page = 2 << 20;
    return (size + page - 1) / page * page;
}

/* Reserves a rank's memory and shares addresses; arena is that of its steps' values, of a whole number of
 * pages where ranks are processes. Every rank calls it at the same time, with its device the thread's. Safe
 * to destroy after a failure. Errors: MEMORY; UNSUPPORTED (devices that do not reach each other's memory;
 * other hosts; CUDA_MODULE_LOADING is not EAGER).
 */
gumbel_status gb_cuda_exchange_create(const gb_rank *rank, int device, void *arena,
                                      gb_cuda_exchange *exchange, gumbel_error *error);

/* Every rank calls it at the same time, with nothing under way on its stream; the arena is freed after it. */
void gb_cuda_exchange_destroy(const gb_rank *rank, gb_cuda_exchange *exchange);

/* Ends the waiting of the kernels of all ranks of this process, which must be there; now and later. Their
 * results are of no use then. A broken meeting ends that of each rank. */
void gb_cuda_exchange_stop_all(gb_cuda_exchange *exchange);

#ifdef __cplusplus
}
#endif

#endif
