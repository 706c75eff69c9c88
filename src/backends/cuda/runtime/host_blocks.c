/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/runtime/host_blocks.h"

#include "base/memory.h"
#include "base/thread.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>

enum { PAGE = 4096, HUGE_PAGE = 2 << 20, MOST_RESERVE = 1 << 30 /* bytes */ };

/* ---- Memory -------------------------------------------------------------------------------------------- */

/* Maps so many bytes, a power of 2, at a multiple of them. */
static uint8_t *map_aligned(size_t bytes) {
    void *mapped = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return NULL;
    uint8_t *first = mapped;
    const size_t before = (size_t)(-(uintptr_t)first & (bytes - 1));
    if (before > 0)
        munmap(first, before);
    munmap(first + before + bytes, bytes - before);
    return first + before;
}

/* Memory that has its pages; huge ones, where the system gives some, are there and pinned sooner. */
static uint8_t *map_pages(size_t bytes) {
    uint8_t *memory = map_aligned(bytes);
    if (memory && bytes >= HUGE_PAGE)
        madvise(memory, bytes, MADV_HUGEPAGE);
    for (size_t at = 0; memory && at < bytes; at += PAGE)
        ((volatile uint8_t *)memory)[at] = 0;
    return memory;
}

/* Registering memory that has its pages holds up the launches of other threads for 2 ms at most, where
 * letting the driver allocate it takes up to half a second. */
static gumbel_status make_block(const gb_cuda_host_blocks *blocks, gb_cuda_host_block **made,
                                gumbel_error *error) {
    gb_cuda_host_block *block = gb_allocate(1, sizeof *block);
    uint8_t *memory = block ? map_pages((size_t)blocks->block_bytes) : NULL;
    if (!memory) {
        gb_free(block);
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no host memory for a sequence's states");
    }
    block->memory = memory;
    block->is_pinned =
        cudaHostRegister(memory, (size_t)blocks->block_bytes, cudaHostRegisterDefault) == cudaSuccess;
    if (!block->is_pinned)
        cudaGetLastError(); /* it would be found after the next launch */
    *made = block;
    return GUMBEL_OK;
}

static void free_block(const gb_cuda_host_blocks *blocks, gb_cuda_host_block *block) {
    if (block->is_pinned)
        cudaHostUnregister(block->memory);
    munmap(block->memory, (size_t)blocks->block_bytes);
    gb_free(block);
}

/* ---- The thread ---------------------------------------------------------------------------------------- */

static void push(gb_cuda_host_blocks *blocks, gb_cuda_host_block *block) {
    block->next = blocks->free;
    blocks->free = block;
    blocks->free_count++;
}

static gb_cuda_host_block *pop(gb_cuda_host_blocks *blocks) {
    gb_cuda_host_block *block = blocks->free;
    if (block) {
        blocks->free = block->next;
        blocks->free_count--;
    }
    return block;
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
    cudaSetDevice(blocks->device);
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
    cudaGetDevice(&blocks->device);
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
    for (gb_cuda_host_block *block; (block = pop(blocks)) != NULL;)
        free_block(blocks, block);
    pthread_cond_destroy(&blocks->changed);
    pthread_mutex_destroy(&blocks->mutex);
    *blocks = (gb_cuda_host_blocks){0};
}

/* ---- Taking -------------------------------------------------------------------------------------------- */

static gumbel_status take_one(gb_cuda_host_blocks *blocks, gb_cuda_host_block **taken, gumbel_error *error) {
    pthread_mutex_lock(&blocks->mutex);
    *taken = pop(blocks);
    pthread_mutex_unlock(&blocks->mutex);
    return *taken ? GUMBEL_OK : make_block(blocks, taken, error);
}

/* Lets the thread, which the first call begins, make more. Without one each is made when it is needed. */
static void refill(gb_cuda_host_blocks *blocks, size_t count) {
    const size_t most = (size_t)(MOST_RESERVE / blocks->block_bytes), reserve = count < most ? count : most;
    if (!blocks->has_thread)
        blocks->has_thread = gb_start_thread(&blocks->thread, fill_reserve, blocks);
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
        gb_cuda_host_block *block;
        const gumbel_status status = take_one(blocks, &block, error);
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
