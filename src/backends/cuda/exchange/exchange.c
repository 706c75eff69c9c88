/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/exchange/exchange.h"

#include "backends/cuda/runtime/device.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
static gumbel_status reserve(const gb_rank *rank, gb_cuda_exchange *e, gumbel_error *error) {
    const uint64_t size = gb_cuda_exchange_bytes(copy_at(rank->count) + sizeof *e);
    void *memory, *stops;
    GB_TRY(gb_cuda_allocate(size, "exchanges with other devices", &memory, error));
    e->mail[e->rank] = memory;
    GB_TRY(gb_cuda_allocate_pinned(sizeof(uint32_t), "exchanges with other devices", &stops, error));
    e->stops[e->rank] = stops;
    memset(stops, 0, sizeof(uint32_t));
    if (!gb_rank_add_stop(rank, e->stops[e->rank]))
        return gb_no_memory(error, "another exchange of these ranks");
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

/* What a rank tells the others. Addresses mean something within a process, handles to others of its host. */
typedef struct introduction {
    int device;
    char host[64], identity[16]; /* of the device, whatever number processes give it */
    uint8_t *memory, *arena;
    cudaIpcMemHandle_t memory_handle, arena_handle;
    volatile uint32_t *stops;
} introduction;

static bool is_of_device(const introduction *a, const introduction *b) {
    return memcmp(a->identity, b->identity, sizeof a->identity) == 0 && strcmp(a->host, b->host) == 0;
}

static void take_addresses(uint32_t rank, uint8_t *memory, uint8_t *arena, gb_cuda_exchange *e) {
    e->arenas[rank] = arena;
    e->mail[rank] = (uint64_t *)(void *)memory;
    e->boxes[rank] = (uint64_t *)(void *)(memory + mail_bytes(e->ranks));
    e->flags[rank] = (uint32_t *)(void *)(memory + flags_at(e->ranks));
}

static gumbel_status open_handle(const cudaIpcMemHandle_t *handle, uint32_t rank, void **memory,
                                 gumbel_error *error) {
    const cudaError_t result = cudaIpcOpenMemHandle(memory, *handle, cudaIpcMemLazyEnablePeerAccess);
    if (result == cudaSuccess)
        return GUMBEL_OK;
    *memory = NULL;
    cudaGetLastError(); /* it would be found after the next launch */
    return gb_fail(
        error, GUMBEL_ERROR_UNSUPPORTED,
        "cuda: the memory of rank %u cannot be reached: %s; each process must see the devices of all "
        "(CUDA_VISIBLE_DEVICES; srun --gpu-bind=none)",
        rank, cudaGetErrorString(result));
}

/* Of another process. What was opened is closed by its address. */
static gumbel_status open_memory(const introduction *own, uint32_t rank, const introduction *other,
                                 gb_cuda_exchange *e, gumbel_error *error) {
    void *memory, *arena;
    e->has_opened = true;
    if (strcmp(other->host, own->host) != 0)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "cuda: rank %u is on another host, %.60s: GPUs exchange within one", rank,
                       other->host);
    GB_TRY(open_handle(&other->memory_handle, rank, &memory, error));
    take_addresses(rank, memory, NULL, e);
    GB_TRY(open_handle(&other->arena_handle, rank, &arena, error));
    e->arenas[rank] = arena;
    return GUMBEL_OK;
}

static gumbel_status meet(const gb_rank *rank, const introduction *own, uint32_t index,
                          const introduction *other, gb_cuda_exchange *e, gumbel_error *error) {
    if (index != rank->index)
        e->shares_device |= is_of_device(own, other);
    if (index != rank->index && !gb_rank_has_threads(rank))
        return open_memory(own, index, other, e, error);
    take_addresses(index, other->memory, other->arena, e);
    e->stops[index] = other->stops;
    return other->device != own->device ? reach(own->device, other->device, error) : GUMBEL_OK;
}

static gumbel_status copy_to_device(gb_cuda_exchange *e, uint8_t *memory, gumbel_error *error) {
    e->epochs = (uint32_t *)(void *)(memory + epochs_at(e->ranks));
    e->on_device = (gb_cuda_exchange *)(void *)(memory + copy_at(e->ranks));
    GB_TRY(gb_cuda_check(cudaMemcpy(e->on_device, e, sizeof *e, cudaMemcpyHostToDevice),
                         "copying addresses of other devices", error));
    return gb_cuda_check(cudaDeviceSynchronize(), "copying addresses of other devices", error);
}

/* The most ranks that one device has. */
static uint32_t ranks_of_device(const introduction *all, uint32_t ranks) {
    uint32_t most = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        uint32_t same = 0;
        for (uint32_t other = 0; other < ranks; other++)
            same += is_of_device(&all[other], &all[r]);
        most = same > most ? same : most;
    }
    return most;
}

static gumbel_status introduce(const gb_rank *rank, int device, uint8_t *arena, const gb_cuda_exchange *e,
                               introduction *own, gumbel_error *error) {
    struct cudaDeviceProp properties;
    *own = (introduction){.device = device,
                          .memory = (uint8_t *)e->mail[rank->index],
                          .arena = arena,
                          .stops = e->stops[rank->index]};
    gethostname(own->host, sizeof own->host - 1);
    GB_TRY(gb_cuda_check(cudaGetDeviceProperties(&properties, device), "asking for a device's properties",
                         error));
    memcpy(own->identity, properties.uuid.bytes, sizeof own->identity);
    if (gb_rank_has_threads(rank))
        return GUMBEL_OK;
    GB_TRY(gb_cuda_check(cudaIpcGetMemHandle(&own->memory_handle, own->memory), "showing memory to processes",
                         error));
    return gb_cuda_check(cudaIpcGetMemHandle(&own->arena_handle, arena), "showing memory to processes",
                         error);
}

/* The introductions of all. */
static gumbel_status exchange_introductions(const gb_rank *rank, const introduction *own, introduction *all,
                                            gumbel_error *error) {
    const void *shared[GB_MOST_RANKS];
    if (!gb_rank_share(rank, own, sizeof *own, shared))
        return gb_rank_broken(rank, error);
    for (uint32_t r = 0; r < rank->count; r++)
        memcpy(&all[r], shared[r], sizeof all[r]);
    return gb_rank_release(rank) ? GUMBEL_OK : gb_rank_broken(rank, error);
}

static gumbel_status connect(const gb_rank *rank, const introduction *own, gb_cuda_exchange *e,
                             gumbel_error *error) {
    introduction all[GB_MOST_RANKS];
    gumbel_status status = GUMBEL_OK;
    GB_TRY(exchange_introductions(rank, own, all, error));
    for (uint32_t r = 0; r < rank->count && status == GUMBEL_OK; r++)
        status = meet(rank, own, r, &all[r], e, error);
    const uint32_t sharing = ranks_of_device(all, rank->count);
    e->row_blocks = sharing > 1 ? GB_CUDA_EXCHANGE_BLOCKS / sharing : GB_CUDA_ROW_BLOCKS;
    if (status == GUMBEL_OK)
        status = copy_to_device(e, own->memory, error);
    return gb_rank_agree(rank, status, error);
}

gumbel_status gb_cuda_exchange_create(const gb_rank *rank, int device, void *arena,
                                      gb_cuda_exchange *exchange, gumbel_error *error) {
    introduction own;
    *exchange = (gb_cuda_exchange){.rank = rank->index, .ranks = rank->count};
    gumbel_status status = check_loading(error);
    if (status == GUMBEL_OK)
        status = reserve(rank, exchange, error);
    if (status == GUMBEL_OK)
        status = introduce(rank, device, arena, exchange, &own, error);
    GB_TRY(gb_rank_agree(rank, status, error));
    return connect(rank, &own, exchange, error);
}

static void close_memory(const gb_cuda_exchange *e) {
    for (uint32_t r = 0; e->has_opened && r < e->ranks; r++) {
        if (r != e->rank && e->mail[r])
            cudaIpcCloseMemHandle(e->mail[r]);
        if (r != e->rank && e->arenas[r])
            cudaIpcCloseMemHandle(e->arenas[r]);
    }
}

/* Nobody's kernels are under way after the first meeting, and nobody has another's memory open after the
 * second. */
void gb_cuda_exchange_destroy(const gb_rank *rank, gb_cuda_exchange *exchange) {
    if (exchange->ranks > 1) {
        gb_rank_meet(rank);
        close_memory(exchange);
        gb_rank_meet(rank);
        gb_rank_remove_stop(rank, exchange->stops[exchange->rank]);
        gb_cuda_free(exchange->mail[exchange->rank]);
        gb_cuda_free_pinned((void *)(uintptr_t)exchange->stops[exchange->rank]);
    }
    *exchange = (gb_cuda_exchange){0};
}

void gb_cuda_exchange_stop_all(gb_cuda_exchange *exchange) {
    for (uint32_t r = 0; r < exchange->ranks; r++)
        if (exchange->stops[r])
            *exchange->stops[r] = 1;
}
