/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/runtime/host_copies.h"

#include "backends/cuda/runtime/device.h"
#include "base/memory.h"

enum {
    LEAST_BLOCK = 64 << 10,
    MOST_BLOCK = 4 << 20,
    BLOCKS_OF_SLOT = 64, /* in about so many blocks goes a slot */
    LEAST_ROOM = 4 << 20,
    MOST_ROOM = 512 << 20
};

static const char doing[] = "copying a sequence's states";

typedef struct host_states {
    gb_host_states base;
    gb_cuda_host_copies *copies;
    cudaEvent_t arrived;
    gb_cuda_host_block *blocks;
} host_states;

/* How far a walk over states has come in their blocks. */
typedef struct place {
    const gb_cuda_host_block *block;
    uint64_t used; /* bytes of it */
} place;

/* Takes states through the rooms. */
typedef struct departure {
    gb_cuda_host_copies *copies;
    uint64_t filled; /* bytes of the room that is filled now */
    place to;
} departure;

typedef struct arrival {
    const gb_cuda_host_copies *copies;
    place from;
} arrival;

static gumbel_status check(cudaError_t result, gumbel_error *error) {
    if (result != cudaSuccess)
        cudaGetLastError(); /* it would be found after the next launch */
    return gb_cuda_check(result, doing, error);
}

/* ---- Making -------------------------------------------------------------------------------------------- */

static gumbel_status make_event(cudaEvent_t *event, gumbel_error *error) {
    return check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), error);
}

static gumbel_status allocate_rooms(gb_cuda_host_copies *copies, uint64_t bytes, gumbel_error *error) {
    void *memory;
    GB_TRY(gb_cuda_allocate(GB_CUDA_ROOMS * bytes, "states on their way to the host", &memory, error));
    copies->room_bytes = bytes;
    for (uint32_t i = 0; i < GB_CUDA_ROOMS; i++)
        copies->rooms[i].memory = (uint8_t *)memory + i * bytes;
    return GUMBEL_OK;
}

static uint64_t between(uint64_t least, uint64_t value, uint64_t most) {
    return value < least ? least : value > most ? most : value;
}

gumbel_status gb_cuda_host_copies_create(uint64_t slot_bytes, cudaStream_t steps, gb_cuda_host_copies *copies,
                                         gumbel_error *error) {
    *copies = (gb_cuda_host_copies){.steps = steps};
    uint64_t block_bytes = LEAST_BLOCK;
    while (block_bytes < MOST_BLOCK && block_bytes * BLOCKS_OF_SLOT < slot_bytes)
        block_bytes *= 2;
    copies->least_room_bytes = between(LEAST_BLOCK, slot_bytes, LEAST_ROOM);
    copies->most_room_bytes = between(LEAST_BLOCK, slot_bytes, MOST_ROOM);
    GB_TRY(check(cudaStreamCreateWithFlags(&copies->stream, cudaStreamNonBlocking), error));
    GB_TRY(make_event(&copies->gathered, error));
    for (uint32_t i = 0; i < GB_CUDA_ROOMS; i++)
        GB_TRY(make_event(&copies->rooms[i].left, error));
    GB_TRY(gb_cuda_host_blocks_create(block_bytes, &copies->blocks, error));
    return allocate_rooms(copies, copies->least_room_bytes, error);
}

static void destroy_event(cudaEvent_t event) {
    if (event)
        cudaEventDestroy(event);
}

void gb_cuda_host_copies_destroy(gb_cuda_host_copies *copies) {
    if (copies->stream) {
        cudaStreamSynchronize(copies->stream);
        cudaStreamSynchronize(copies->steps);
        cudaStreamDestroy(copies->stream);
    }
    destroy_event(copies->gathered);
    for (uint32_t i = 0; i < GB_CUDA_ROOMS; i++)
        destroy_event(copies->rooms[i].left);
    gb_cuda_host_blocks_destroy(&copies->blocks);
    gb_cuda_free(copies->rooms[0].memory);
    *copies = (gb_cuda_host_copies){0};
}

/* ---- Rooms --------------------------------------------------------------------------------------------- */

/* Without memory for these there are none. */
static gumbel_status replace_rooms(gb_cuda_host_copies *copies, uint64_t bytes, gumbel_error *error) {
    cudaStreamSynchronize(copies->stream);
    cudaStreamSynchronize(copies->steps);
    gb_cuda_free(copies->rooms[0].memory);
    copies->rooms[0].memory = NULL;
    copies->room_bytes = 0;
    return allocate_rooms(copies, bytes, error);
}

/* The first states that are larger than the rooms find larger ones, if there is memory. */
static gumbel_status prepare_rooms(gb_cuda_host_copies *copies, uint64_t bytes, gumbel_error *error) {
    if (bytes > copies->room_bytes && copies->room_bytes < copies->most_room_bytes && !copies->is_short)
        copies->is_short = replace_rooms(copies, copies->most_room_bytes, NULL) != GUMBEL_OK;
    return copies->room_bytes > 0 ? GUMBEL_OK : replace_rooms(copies, copies->least_room_bytes, error);
}

bool gb_cuda_host_copies_shrink(gb_cuda_host_copies *copies) {
    const bool is_large = copies->room_bytes > copies->least_room_bytes;
    copies->is_short = true;
    if (is_large)
        replace_rooms(copies, copies->least_room_bytes, NULL);
    return is_large;
}

/* ---- Blocks -------------------------------------------------------------------------------------------- */

static gumbel_status take_blocks(host_states *states, uint64_t bytes, gumbel_error *error) {
    gb_cuda_host_blocks *blocks = &states->copies->blocks;
    const uint64_t count = (bytes + blocks->block_bytes - 1) / blocks->block_bytes;
    states->base.bytes = count * blocks->block_bytes;
    return gb_cuda_host_blocks_take(blocks, (size_t)count, &states->blocks, error);
}

/* Nothing waits for copies into the blocks or out of them: the next ones into them come after both, since
 * they wait for what the steps' stream has to do before. */
static void release(gb_host_states *base) {
    host_states *states = (host_states *)base;
    gb_cuda_host_blocks_give_back(&states->copies->blocks, states->blocks);
    destroy_event(states->arrived);
    gb_free(states);
}

/* The longest stretch of the block that is left, up to so many bytes. */
static uint8_t *take_stretch(const gb_cuda_host_copies *copies, place *at, uint64_t *size) {
    if (at->used == copies->blocks.block_bytes)
        *at = (place){.block = at->block->next};
    uint8_t *stretch = at->block->memory + at->used;
    if (*size > copies->blocks.block_bytes - at->used)
        *size = copies->blocks.block_bytes - at->used;
    at->used += *size;
    return stretch;
}

/* ---- To the host --------------------------------------------------------------------------------------- */

static gumbel_status add_bytes(void *user, const void *from, uint64_t size, gumbel_error *error) {
    uint64_t *bytes = user;
    (void)from, (void)error;
    *bytes += size;
    return GUMBEL_OK;
}

/* Copies what the room holds into blocks, behind the steps that come now. */
static gumbel_status send_room(departure *d, gumbel_error *error) {
    gb_cuda_host_copies *copies = d->copies;
    gb_cuda_room *room = &copies->rooms[copies->room];
    GB_TRY(check(cudaEventRecord(copies->gathered, copies->steps), error));
    GB_TRY(check(cudaStreamWaitEvent(copies->stream, copies->gathered, 0), error));
    for (uint64_t done = 0; done < d->filled;) {
        uint64_t size = d->filled - done;
        uint8_t *to = take_stretch(copies, &d->to, &size);
        GB_TRY(check(
            cudaMemcpyAsync(to, room->memory + done, (size_t)size, cudaMemcpyDeviceToHost, copies->stream),
            error));
        done += size;
    }
    GB_TRY(check(cudaEventRecord(room->left, copies->stream), error));
    copies->room = (copies->room + 1) % GB_CUDA_ROOMS;
    d->filled = 0;
    return GUMBEL_OK;
}

/* Puts a state's bytes into rooms, each as soon as it is empty. */
static gumbel_status gather(void *user, const void *from, uint64_t size, gumbel_error *error) {
    departure *d = user;
    const gb_cuda_host_copies *copies = d->copies;
    for (uint64_t done = 0; done < size;) {
        const gb_cuda_room *room = &copies->rooms[copies->room];
        const uint64_t left = copies->room_bytes - d->filled, part = size - done < left ? size - done : left;
        if (d->filled == 0)
            GB_TRY(check(cudaStreamWaitEvent(copies->steps, room->left, 0), error));
        GB_TRY(check(cudaMemcpyAsync(room->memory + d->filled, (const uint8_t *)from + done, (size_t)part,
                                     cudaMemcpyDeviceToDevice, copies->steps),
                     error));
        done += part;
        d->filled += part;
        if (d->filled == copies->room_bytes)
            GB_TRY(send_room(d, error));
    }
    return GUMBEL_OK;
}

static gumbel_status send(host_states *states, const gb_states *of, uint32_t slot, uint32_t position,
                          gb_saved_states saved, gumbel_error *error) {
    gb_cuda_host_copies *copies = states->copies;
    departure d = {.copies = copies, .to = {.block = states->blocks}};
    GB_TRY(gb_states_save(of, slot, position, saved, gather, &d, error));
    if (d.filled > 0)
        GB_TRY(send_room(&d, error));
    GB_TRY(make_event(&states->arrived, error));
    return check(cudaEventRecord(states->arrived, copies->stream), error);
}

gumbel_status gb_cuda_copy_to_host(gb_cuda_host_copies *copies, const gb_states *states, uint32_t slot,
                                   uint32_t position, gb_saved_states saved, gb_host_states **made,
                                   gumbel_error *error) {
    uint64_t bytes = 0;
    GB_TRY(gb_states_save(states, slot, position, saved, add_bytes, &bytes, error));
    host_states *copy = gb_allocate(1, sizeof *copy);
    if (!copy)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no host memory for a sequence's states");
    *copy = (host_states){.base.release = release, .copies = copies};
    gumbel_status status = prepare_rooms(copies, bytes, error);
    if (status == GUMBEL_OK)
        status = take_blocks(copy, bytes, error);
    if (status == GUMBEL_OK)
        status = send(copy, states, slot, position, saved, error);
    if (status != GUMBEL_OK) {
        release(&copy->base);
        return status;
    }
    *made = &copy->base;
    return GUMBEL_OK;
}

/* ---- From the host ------------------------------------------------------------------------------------- */

static gumbel_status scatter(void *user, void *to, uint64_t size, gumbel_error *error) {
    arrival *a = user;
    for (uint64_t done = 0; done < size;) {
        uint64_t part = size - done;
        const uint8_t *from = take_stretch(a->copies, &a->from, &part);
        GB_TRY(check(cudaMemcpyAsync((uint8_t *)to + done, from, (size_t)part, cudaMemcpyHostToDevice,
                                     a->copies->steps),
                     error));
        done += part;
    }
    return GUMBEL_OK;
}

gumbel_status gb_cuda_copy_from_host(gb_cuda_host_copies *copies, const gb_states *states, uint32_t slot,
                                     uint32_t position, gb_saved_states saved, const gb_host_states *from,
                                     gumbel_error *error) {
    const host_states *copy = (const host_states *)from;
    arrival a = {.copies = copies, .from = {.block = copy->blocks}};
    GB_TRY(check(cudaStreamWaitEvent(copies->steps, copy->arrived, 0), error));
    return gb_states_load(states, slot, position, saved, scatter, &a, error);
}
