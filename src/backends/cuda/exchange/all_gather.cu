/* SPDX-License-Identifier: Apache-2.0
 *
 * all_gather of ops.def. Small parts are sent: each word with the epoch beside it, so that its arrival says
 * that it is there (the LL protocol of NCCL; Hu et al., Demystifying NCCL, 2025). Large ones are written
 * where they are wanted, or read where they lie, before ranks meet by flags.
 */
#include "backends/cuda/exchange/exchange.cuh"

using namespace gb_cuda;

namespace {

enum { THREADS = 512, LOADS = 4 /* in flight */ };

/* One rank's part as runs of `width` numbers: run i goes to run i * ranks + rank of y. A step has too few
 * tokens for parts of 2^32 numbers. */
struct gathering {
    const float *x;
    float *y;
    uint32_t width;
    size_t count; /* numbers of a part */
};

__device__ inline size_t place_of(const gathering &g, uint32_t rank, uint32_t ranks, size_t i) {
    const uint32_t run = (uint32_t)i / g.width;
    return i + ((size_t)run * (ranks - 1) + rank) * g.width;
}

__device__ inline void begin(const gb_cuda_exchange &e) {
    fetch_parameters(e);
    wait_alone();
    if (!e.shares_device)
        let_next_begin();
}

/* ---- Sent ---------------------------------------------------------------------------------------------- */

/* A block's words lie in the same place of the mailboxes each time, and blocks count their epochs by
 * themselves, so that no block waits for another of its own rank. Two parities are enough: a block sends
 * epoch n after its launch of n - 1, which waited for the peer's, which began when that of n - 2 had ended.
 */
__device__ inline uint64_t *mail_of(const gb_cuda_exchange &e, uint32_t receiver, uint32_t sender,
                                    uint32_t epoch, uint32_t word) {
    return e.mail[receiver] + ((size_t)(epoch % 2) * e.ranks + sender) * GB_CUDA_MOST_MAIL + word;
}

__global__ void __launch_bounds__(GB_CUDA_MAIL_BLOCK)
    all_gather_mail(GB_GRID_CONSTANT gb_cuda_exchange e, GB_GRID_CONSTANT gathering g) {
    const uint32_t word = blockIdx.x * GB_CUDA_MAIL_BLOCK + threadIdx.x;
    begin(e);
    const uint32_t epoch = e.epochs[blockIdx.x] + 1;
    if (word < g.count) {
        const float own = g.x[word];
        for (uint32_t r = 0; r < e.ranks; r++)
            if (r != e.rank)
                send(mail_of(e, r, e.rank, epoch, word), epoch, gb_float_bits(own));
        g.y[place_of(g, e.rank, e.ranks, word)] = own;
        for (uint32_t r = 0; r < e.ranks; r++) {
            if (r != e.rank)
                g.y[place_of(g, r, e.ranks, word)] = gb_float_from_bits(
                    (uint32_t)receive<false>(e, mail_of(e, e.rank, r, epoch, word), epoch));
        }
    }
    __syncthreads();
    if (threadIdx.x == 0)
        e.epochs[blockIdx.x] = epoch;
}

/* ---- Meetings ------------------------------------------------------------------------------------------ */

__device__ inline void raise(uint32_t *flag, uint32_t epoch) {
#if defined(__CUDACC__)
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(epoch) : "memory");
#else
    atomicExch(flag, epoch);
#endif
}

__device__ inline uint32_t seen(const uint32_t *flag) {
#if defined(__CUDACC__)
    uint32_t epoch;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(epoch) : "l"(flag) : "memory");
    return epoch;
#else
    return atomicOr(const_cast<uint32_t *>(flag), 0u);
#endif
}

/* Tells the block of that number of every peer that this one has come so far, and waits for them. A peer may
 * have come to the next meeting already, and not further. */
__device__ void meet(const gb_cuda_exchange &e, uint32_t round, uint32_t epoch) {
    const size_t of_block = ((size_t)round * GB_CUDA_EXCHANGE_BLOCKS + blockIdx.x) * e.ranks;
    __syncthreads();
    if (threadIdx.x < e.ranks && threadIdx.x != e.rank) {
        __threadfence_system();
        raise(e.flags[threadIdx.x] + of_block + e.rank, epoch);
        const uint32_t *from = e.flags[e.rank] + of_block + threadIdx.x;
        for (uint32_t looks = 1; (int32_t)(seen(from) - epoch) < 0 && may_wait(e, looks);)
            looks++;
    }
    __syncthreads();
}

/* What others write is there, and they have what this rank has written. */
__device__ void meet_behind_writes(const gb_cuda_exchange &e) {
    uint32_t *const counter = e.epochs + GB_CUDA_MAIL_BLOCKS + blockIdx.x;
    const uint32_t epoch = *counter + 1;
    meet(e, 1, epoch);
    if (threadIdx.x == 0)
        *counter = epoch;
}

/* ---- Read where they lie ------------------------------------------------------------------------------- */

/* Not from a cache of this device, which knows nothing of other devices' writes. */
__device__ inline float4 load_fresh(const float4 *from) {
#if defined(__CUDACC__)
    float4 v;
    asm volatile("ld.relaxed.sys.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(from)
                 : "memory");
    return v;
#else
    return *from;
#endif
}

__device__ inline float load_fresh(const float *from) {
#if defined(__CUDACC__)
    float v;
    asm volatile("ld.relaxed.sys.global.f32 %0, [%1];" : "=f"(v) : "l"(from) : "memory");
    return v;
#else
    return *from;
#endif
}

/* T: float, or float4 where runs are whole ones. */
template <typename T>
__device__ void copy_part(const gb_cuda_exchange &e, const gathering &g, uint32_t rank) {
    constexpr size_t EACH = sizeof(T) / sizeof(float);
    const size_t offset = (size_t)(reinterpret_cast<const uint8_t *>(g.x) - e.arenas[e.rank]);
    const T *from = reinterpret_cast<const T *>(e.arenas[rank] + offset);
    const size_t count = g.count / EACH, stride = (size_t)gridDim.x * THREADS;
    for (size_t first = (size_t)blockIdx.x * THREADS + threadIdx.x; first < count; first += LOADS * stride) {
        T values[LOADS] = {};
#pragma unroll
        for (unsigned i = 0; i < LOADS; i++)
            if (first + i * stride < count)
                values[i] = load_fresh(from + first + i * stride);
#pragma unroll
        for (unsigned i = 0; i < LOADS; i++)
            if (first + i * stride < count)
                *reinterpret_cast<T *>(g.y + place_of(g, rank, e.ranks, (first + i * stride) * EACH)) =
                    values[i];
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    all_gather_parts(GB_GRID_CONSTANT gb_cuda_exchange e, GB_GRID_CONSTANT gathering g) {
    uint32_t *const counter = e.epochs + GB_CUDA_MAIL_BLOCKS + blockIdx.x;
    begin(e);
    const uint32_t epoch = *counter + 1;
    meet(e, 0, epoch);
    for (uint32_t i = 0; i < e.ranks; i++) /* each begins with another peer */
        copy_part<T>(e, g, (e.rank + i) % e.ranks);
    meet(e, 1, epoch);
    if (threadIdx.x == 0)
        *counter = epoch;
}

/* ---- Written where they are wanted --------------------------------------------------------------------- */

/* All ranks' y lie alike in their arenas, and have been free since the exchange before, which all have come
 * to. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    all_gather_written(GB_GRID_CONSTANT gb_cuda_exchange e, GB_GRID_CONSTANT gathering g) {
    constexpr size_t EACH = sizeof(T) / sizeof(float);
    begin(e);
    const T *from = reinterpret_cast<const T *>(g.x);
    const size_t count = g.count / EACH, stride = (size_t)gridDim.x * THREADS;
    for (size_t first = (size_t)blockIdx.x * THREADS + threadIdx.x; first < count; first += LOADS * stride) {
        T values[LOADS] = {};
#pragma unroll
        for (unsigned i = 0; i < LOADS; i++)
            if (first + i * stride < count)
                values[i] = from[first + i * stride];
#pragma unroll
        for (unsigned i = 0; i < LOADS; i++) {
            if (first + i * stride >= count)
                continue;
            T *own = reinterpret_cast<T *>(g.y + place_of(g, e.rank, e.ranks, (first + i * stride) * EACH));
            store_at_others(e, own, values[i]);
            *own = values[i];
        }
    }
    meet_behind_writes(e);
}

/* Behind launches that have written. */
__global__ void all_gather_met(GB_GRID_CONSTANT gb_cuda_exchange e) {
    begin(e);
    meet_behind_writes(e);
}

} // namespace

static void add_parts(const gb_cuda_call *call, const gb_cuda_exchange &e, const gathering &g) {
    const bool has_quads = g.width % 4 == 0 && reinterpret_cast<uintptr_t>(g.x) % sizeof(float4) == 0 &&
                           reinterpret_cast<uintptr_t>(g.y) % sizeof(float4) == 0;
    const size_t loads = g.count / (has_quads ? 4 : 1), blocks = blocks_for(loads, THREADS);
    const size_t most = GB_CUDA_EXCHANGE_BLOCKS;
    const unsigned grid = (unsigned)(blocks < most ? blocks : most);
    if (call->is_free_since_exchange)
        add_launch(call->launches, "all_gather_written",
                   has_quads ? all_gather_written<float4> : all_gather_written<float>, grid, THREADS, 0, e,
                   g);
    else
        add_launch(call->launches, "all_gather_parts",
                   has_quads ? all_gather_parts<float4> : all_gather_parts<float>, grid, THREADS, 0, e, g);
}

void gb_cuda_all_gather(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0];
    const gb_cuda_exchange *e = call->scratch->exchange;
    const size_t sections = (size_t)gb_node_int(call->node, GB_ATTRIBUTE_SECTIONS);
    const gathering g = {data_of<const float>(x), data_of<float>(call->results[0]),
                         (uint32_t)(x->dims[x->rank - 1] / sections), gb_cuda_elements(x)};
    if (!e)
        gb_cuda_move(call); /* of a program that is not sharded, or is only described */
    else if (call->is_stored_before)
        add_launch(call->launches, "all_gather_met", all_gather_met, 1, WARP, 0, *e);
    else if (g.count <= GB_CUDA_MOST_MAIL)
        add_launch(call->launches, "all_gather_mail", all_gather_mail,
                   blocks_for(g.count, GB_CUDA_MAIL_BLOCK), GB_CUDA_MAIL_BLOCK, 0, *e, g);
    else
        add_parts(call, *e, g);
}

void gb_cuda_gather(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    if (call->epilogue && !call->is_stored_before)
        gb_cuda_all_gather_rounded(call);
    if (!call->epilogue || gb_cuda_is_live(problem, 0))
        gb_cuda_all_gather(call);
}
