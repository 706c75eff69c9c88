/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/runtime/host_blocks.h"

#include "backends/cuda/runtime/device.h"
#include "base/memory.h"

#include <sys/mman.h>

enum { PAGE = 4096, HUGE_PAGE = 2 << 20 };

/* ---- Memory -------------------------------------------------------------------------------------------- */

/* Memory that has its pages. Huge ones, where the system gives some, are there and pinned sooner. */
static gumbel_status map(uint64_t bytes, gb_cuda_host_block *block, gumbel_error *error) {
    const size_t size = (size_t)bytes + HUGE_PAGE;
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no host memory for a sequence's states");
    const uintptr_t first = ((uintptr_t)mapped + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
    block->mapped = mapped;
    block->memory = (uint8_t *)mapped + (first - (uintptr_t)mapped);
    if (bytes >= HUGE_PAGE)
        madvise(block->memory, (size_t)bytes, MADV_HUGEPAGE);
    for (uint64_t at = 0; at < bytes; at += PAGE)
        ((volatile uint8_t *)block->memory)[at] = 0;
    return GUMBEL_OK;
}

static void unmap(uint64_t bytes, gb_cuda_host_block *block) {
    if (block->mapped)
        munmap(block->mapped, (size_t)bytes + HUGE_PAGE);
    gb_free(block);
}

/* Registering memory that has its pages holds up the launches of other threads for 2 ms at most, where
 * letting the driver allocate it takes up to half a second. */
static gumbel_status make_block(const gb_cuda_host_blocks *blocks, gb_cuda_host_block **made,
                                gumbel_error *error) {
    gb_cuda_host_block *block = gb_allocate(1, sizeof *block);
    if (!block)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no host memory for a sequence's states");
    gumbel_status status = map(blocks->block_bytes, block, error);
    if (status == GUMBEL_OK)
        status = gb_cuda_check(
            cudaHostRegister(block->memory, (size_t)blocks->block_bytes, cudaHostRegisterDefault),
            "pinning host memory for a sequence's states", error);
    if (status != GUMBEL_OK) {
        cudaGetLastError(); /* it would be found after the next launch */
        unmap(blocks->block_bytes, block);
        return status;
    }
    *made = block;
    return GUMBEL_OK;
}

static void free_block(const gb_cuda_host_blocks *blocks, gb_cuda_host_block *block) {
    cudaHostUnregister(block->memory);
    unmap(blocks->block_bytes, block);
}

/* ---- The thread ---------------------------------------------------------------------------------------- */

static void push(gb_cuda_host_blocks *blocks, gb_cuda_host_block *block) {
    block->next = blocks->free;
    blocks->free = block;
    blocks->free_count++;
}

/* Makes a block while others may take and give back. Without memory the reserve is what there is. */
static void add_block(gb_cuda_host_blocks *blocks) {
    gb_cuda_host_block *block;
    pthread_mutex_unlock(&blocks->mutex);
    const gumbel_status status = make_block(blocks, &block, NULL);
    pthread_mutex_lock(&blocks->mutex);
    if (status == GUMBEL_OK)
        push(blocks, block);
    else
        blocks->reserve = blocks->free_count;
}

static void *fill_reserve(void *user) {
    gb_cuda_host_blocks *blocks = user;
    cudaSetDevice(0);
    pthread_mutex_lock(&blocks->mutex);
    while (!blocks->stops)
        if (blocks->free_count < blocks->reserve)
            add_block(blocks);
        else
            pthread_cond_wait(&blocks->changed, &blocks->mutex);
    pthread_mutex_unlock(&blocks->mutex);
    return NULL;
}

/* ---- Making -------------------------------------------------------------------------------------------- */

gumbel_status gb_cuda_host_blocks_create(uint64_t block_bytes, gb_cuda_host_blocks *blocks,
                                         gumbel_error *error) {
    *blocks = (gb_cuda_host_blocks){.block_bytes = block_bytes};
    if (pthread_mutex_init(&blocks->mutex, NULL) != 0)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a mutex");
    if (pthread_cond_init(&blocks->changed, NULL) != 0) {
        pthread_mutex_destroy(&blocks->mutex);
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a condition");
    }
    blocks->is_open = true;
    return GUMBEL_OK;
}

static void end_thread(gb_cuda_host_blocks *blocks) {
    pthread_mutex_lock(&blocks->mutex);
    blocks->stops = true;
    pthread_cond_signal(&blocks->changed);
    pthread_mutex_unlock(&blocks->mutex);
    if (blocks->has_thread)
        pthread_join(blocks->thread, NULL);
}

void gb_cuda_host_blocks_destroy(gb_cuda_host_blocks *blocks) {
    if (!blocks->is_open)
        return;
    end_thread(blocks);
    while (blocks->free) {
        gb_cuda_host_block *block = blocks->free;
        blocks->free = block->next;
        free_block(blocks, block);
    }
    pthread_cond_destroy(&blocks->changed);
    pthread_mutex_destroy(&blocks->mutex);
    *blocks = (gb_cuda_host_blocks){0};
}

/* ---- Taking -------------------------------------------------------------------------------------------- */

static gb_cuda_host_block *pop(gb_cuda_host_blocks *blocks) {
    pthread_mutex_lock(&blocks->mutex);
    gb_cuda_host_block *block = blocks->free;
    if (block) {
        blocks->free = block->next;
        blocks->free_count--;
    }
    pthread_mutex_unlock(&blocks->mutex);
    return block;
}

/* Lets the thread, which the first call begins, make more. Without one each is made when it is needed. */
static void refill(gb_cuda_host_blocks *blocks, size_t reserve) {
    if (!blocks->has_thread)
        blocks->has_thread = pthread_create(&blocks->thread, NULL, fill_reserve, blocks) == 0;
    pthread_mutex_lock(&blocks->mutex);
    if (reserve > blocks->reserve)
        blocks->reserve = reserve;
    pthread_cond_signal(&blocks->changed);
    pthread_mutex_unlock(&blocks->mutex);
}

gumbel_status gb_cuda_host_blocks_take(gb_cuda_host_blocks *blocks, size_t count, gb_cuda_host_block **list,
                                       gumbel_error *error) {
    gb_cuda_host_block *taken = NULL;
    for (size_t i = 0; i < count; i++) {
        gb_cuda_host_block *block = pop(blocks);
        const gumbel_status status = block ? GUMBEL_OK : make_block(blocks, &block, error);
        if (status != GUMBEL_OK) {
            gb_cuda_host_blocks_give_back(blocks, taken);
            return status;
        }
        block->next = taken;
        taken = block;
    }
    refill(blocks, count);
    *list = taken;
    return GUMBEL_OK;
}

void gb_cuda_host_blocks_give_back(gb_cuda_host_blocks *blocks, gb_cuda_host_block *list) {
    pthread_mutex_lock(&blocks->mutex);
    while (list) {
        gb_cuda_host_block *block = list;
        list = block->next;
        push(blocks, block);
    }
    pthread_mutex_unlock(&blocks->mutex);
}
