/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/exchange/exchange.h"

#include "backends/cuda/runtime/device.h"

#include <stdlib.h>
#include <string.h>

enum {
    EPOCHS = GB_CUDA_MAIL_BLOCKS + GB_CUDA_EXCHANGE_BLOCKS + GB_CUDA_ROW_BLOCKS,
    ALIGNMENT = 256 /* of what the device reads in lines */
};

static uint64_t mail_bytes(uint32_t ranks) {
    return 2ull * ranks * GB_CUDA_MOST_MAIL * sizeof(uint64_t);
}

static uint64_t box_bytes(uint32_t ranks) {
    return (uint64_t)GB_CUDA_BOXES * ranks * GB_CUDA_ROW_BLOCKS * sizeof(uint64_t);
}

static uint64_t aligned(uint64_t size) {
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static uint64_t flag_bytes(uint32_t ranks) {
    return aligned(2ull * ranks * GB_CUDA_EXCHANGE_BLOCKS * sizeof(uint32_t));
}

/* Behind one another: mailboxes, boxes, flags, epochs, the copy of the struct. */
static uint64_t flags_at(uint32_t ranks) {
    return mail_bytes(ranks) + box_bytes(ranks);
}

static uint64_t epochs_at(uint32_t ranks) {
    return flags_at(ranks) + flag_bytes(ranks);
}

static uint64_t copy_at(uint32_t ranks) {
    return epochs_at(ranks) + aligned(EPOCHS * sizeof(uint32_t));
}

/* Who loads a kernel when it is first launched waits for what runs, which may wait for a rank that is to load
 * one. */
static gumbel_status check_loading(gumbel_error *error) {
    const char *loading = getenv("CUDA_MODULE_LOADING");
    if (loading && strcmp(loading, "EAGER") == 0)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                   "cuda: for several devices set CUDA_MODULE_LOADING=EAGER before CUDA is first used");
}

/* One block of zeros, so that no epoch is found before it was sent. */
static gumbel_status reserve(uint32_t ranks, gb_cuda_exchange *e, gumbel_error *error) {
    const uint64_t size = copy_at(ranks) + sizeof *e;
    void *memory, *stops;
    GB_TRY(gb_cuda_allocate(size, "exchanges with other devices", &memory, error));
    e->mail[e->rank] = memory;
    GB_TRY(gb_cuda_allocate_pinned(sizeof(uint32_t), "exchanges with other devices", &stops, error));
    e->stops[e->rank] = stops;
    memset(stops, 0, sizeof(uint32_t));
    GB_TRY(gb_cuda_check(cudaMemset(memory, 0, (size_t)size), "clearing mailboxes", error));
    return gb_cuda_check(cudaDeviceSynchronize(), "clearing mailboxes", error);
}

static gumbel_status reach(int device, int peer, gumbel_error *error) {
    int can = 0;
    GB_TRY(gb_cuda_check(cudaDeviceCanAccessPeer(&can, device, peer), "asking for peer access", error));
    if (!can)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "cuda: device %d does not reach the memory of device %d", device, peer);
    const cudaError_t result = cudaDeviceEnablePeerAccess(peer, 0);
    cudaGetLastError(); /* that it was enabled already would be found after the next launch */
    return result == cudaErrorPeerAccessAlreadyEnabled ? GUMBEL_OK
                                                       : gb_cuda_check(result, "enabling peer access", error);
}

/* What a rank tells the others. */
typedef struct introduction {
    int device;
    uint8_t *memory, *arena;
    volatile uint32_t *stops;
} introduction;

static void take_addresses(uint32_t rank, const introduction *of, gb_cuda_exchange *e) {
    e->arenas[rank] = of->arena;
    e->stops[rank] = of->stops;
    e->mail[rank] = (uint64_t *)(void *)of->memory;
    e->boxes[rank] = (uint64_t *)(void *)(of->memory + mail_bytes(e->ranks));
    e->flags[rank] = (uint32_t *)(void *)(of->memory + flags_at(e->ranks));
}

static gumbel_status meet(const introduction *own, uint32_t rank, const introduction *other,
                          gb_cuda_exchange *e, gumbel_error *error) {
    take_addresses(rank, other, e);
    if (rank == e->rank)
        return GUMBEL_OK;
    if (other->device != own->device)
        return reach(own->device, other->device, error);
    e->shares_device = true;
    return GUMBEL_OK;
}

static gumbel_status copy_to_device(gb_cuda_exchange *e, uint8_t *memory, gumbel_error *error) {
    e->epochs = (uint32_t *)(void *)(memory + epochs_at(e->ranks));
    e->on_device = (gb_cuda_exchange *)(void *)(memory + copy_at(e->ranks));
    GB_TRY(gb_cuda_check(cudaMemcpy(e->on_device, e, sizeof *e, cudaMemcpyHostToDevice),
                         "copying addresses of other devices", error));
    return gb_cuda_check(cudaDeviceSynchronize(), "copying addresses of other devices", error);
}

/* The most ranks that one device has. */
static uint32_t ranks_of_device(const void *const *all, uint32_t ranks) {
    uint32_t most = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        uint32_t same = 0;
        for (uint32_t other = 0; other < ranks; other++)
            same += ((const introduction *)all[other])->device == ((const introduction *)all[r])->device;
        most = same > most ? same : most;
    }
    return most;
}

static gumbel_status connect(const gb_rank *rank, int device, uint8_t *arena, gb_cuda_exchange *e,
                             gumbel_error *error) {
    introduction own = {device, (uint8_t *)e->mail[rank->index], arena, e->stops[rank->index]};
    const void *all[GB_MOST_RANKS];
    gumbel_status status = GUMBEL_OK;
    if (!gb_rank_share(rank, &own, sizeof own, all))
        return gb_rank_broken(rank, error);
    for (uint32_t r = 0; r < rank->count && status == GUMBEL_OK; r++)
        status = meet(&own, r, all[r], e, error);
    const uint32_t sharing = ranks_of_device(all, rank->count);
    gb_rank_release(rank);
    e->row_blocks = sharing > 1 ? GB_CUDA_EXCHANGE_BLOCKS / sharing : GB_CUDA_ROW_BLOCKS;
    if (status == GUMBEL_OK)
        status = copy_to_device(e, own.memory, error);
    return gb_rank_agree(rank, status, error);
}

gumbel_status gb_cuda_exchange_create(const gb_rank *rank, int device, void *arena,
                                      gb_cuda_exchange *exchange, gumbel_error *error) {
    *exchange = (gb_cuda_exchange){.rank = rank->index, .ranks = rank->count};
    GB_TRY(check_loading(error));
    GB_TRY(gb_rank_agree(rank, reserve(rank->count, exchange, error), error));
    return connect(rank, device, arena, exchange, error);
}

void gb_cuda_exchange_destroy(gb_cuda_exchange *exchange) {
    if (exchange->ranks > 1) {
        gb_cuda_free(exchange->mail[exchange->rank]);
        gb_cuda_free_pinned((void *)(uintptr_t)exchange->stops[exchange->rank]);
    }
    *exchange = (gb_cuda_exchange){0};
}

void gb_cuda_exchange_stop(gb_cuda_exchange *exchange) {
    if (exchange->ranks > 1 && exchange->stops[exchange->rank])
        *exchange->stops[exchange->rank] = 1;
}

void gb_cuda_exchange_stop_all(gb_cuda_exchange *exchange) {
    for (uint32_t r = 0; r < exchange->ranks; r++)
        if (exchange->stops[r])
            *exchange->stops[r] = 1;
}
