/* SPDX-License-Identifier: Apache-2.0
 *
 * Storing the tokens of a step and counting those of a row's slot. A hash table of the distinct tokens has
 * how often each occurred and where first; then a walk over the positions lists those that are first
 * occurrences, which is the order that the definition has.
 */
#include "backends/cuda/device/each.cuh"

using namespace gb_cuda;

enum { THREADS = 1024 };

/* Operands by their place in ops.def. */
enum { TOKENS, POSITIONS, SLOTS, ROWS, GENERATED_FROM, HISTORY };

/* Entries of the table that shared memory has room for. */
enum { SHARED_BITS = 13 };

/* An entry of a table; token -1: free. */
struct table_entry {
    int32_t token, first, prompt, generated;
};

struct counting {
    const int32_t *tokens;
    size_t token_count;
    const int32_t *positions, *slots, *rows, *generated_from;
    uint8_t *history;
    size_t slot_bytes, limit;
    table_entry *tables; /* [B, 2^table_bits]: for rows whose table is too long for shared memory */
    int table_bits;
    int32_t *counts; /* [B, limit, 3] */
};

__device__ static void store_token(const counting &c, size_t n) {
    reinterpret_cast<int32_t *>(c.history + (size_t)c.slots[n] * c.slot_bytes)[c.positions[n]] = c.tokens[n];
}

struct count_tokens_store {
    counting c;
    __device__ void operator()(size_t, size_t n) const {
        store_token(c, n);
    }
};

/* The entry of a token, which is made where there is none. (Multiplicative hashing: Knuth, 1973) */
__device__ static table_entry *find_entry(table_entry *table, int bits, int32_t token) {
    const uint32_t mask = (1u << bits) - 1;
    uint32_t at = (uint32_t)token * 0x9e3779b1u >> (32 - bits);
    for (;; at = (at + 1) & mask) {
        const int32_t found = atomicCAS(&table[at].token, -1, token);
        if (found == -1 || found == token)
            return &table[at];
    }
}

/* How many of the block's threads before this one have a true predicate; *total of all. */
__device__ static unsigned rank_in_block(bool predicate, unsigned *of_warps, unsigned *total) {
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const unsigned votes = __ballot_sync(0xffffffffu, predicate);
    __syncthreads();
    if (lane == 0)
        of_warps[warp] = (unsigned)__popc(votes);
    __syncthreads();
    unsigned before = (unsigned)__popc(votes & ((1u << lane) - 1));
    *total = 0;
    for (unsigned w = 0; w < THREADS / WARP; w++) {
        before += w < warp ? of_warps[w] : 0;
        *total += of_warps[w];
    }
    return before;
}

/* A table that is at most half full. */
__host__ __device__ static int bits_for(size_t count) {
    int bits = 4;
    while (bits < 31 && ((size_t)1 << bits) / 2 < count)
        bits++;
    return bits;
}

static __global__ void __launch_bounds__(THREADS) run_count_tokens(counting c) {
    wait_for_earlier();
    const size_t b = blockIdx.x;
    const int32_t row = c.rows[b], from = c.generated_from[b];
    GB_DYNAMIC_SHARED(table_entry, shared_table);
    __shared__ unsigned of_warps[THREADS / WARP];
    for (size_t n = threadIdx.x; n < c.token_count; n += THREADS)
        store_token(c, n); /* each block stores all, so that none waits for another */
    int32_t *list = c.counts + b * c.limit * 3;
    if (from < 0) {
        if (threadIdx.x == 0)
            list[0] = -1;
        return;
    }
    const int32_t *history =
        reinterpret_cast<const int32_t *>(c.history + (size_t)c.slots[row] * c.slot_bytes);
    const unsigned count = (unsigned)c.positions[row] + 1;
    const int bits = bits_for(count);
    table_entry *table = bits <= SHARED_BITS ? shared_table : c.tables + (b << c.table_bits);
    const table_entry free_entry = {-1, INT32_MAX, 0, 0};
    for (unsigned i = threadIdx.x; i < 1u << bits; i += THREADS)
        table[i] = free_entry;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < count; i += THREADS) {
        table_entry *entry = find_entry(table, bits, history[i]);
        atomicMin(&entry->first, (int32_t)i);
        atomicAdd((int32_t)i < from ? &entry->prompt : &entry->generated, 1);
    }
    __syncthreads();
    size_t entries = 0;
    for (unsigned begin = 0; begin < count; begin += THREADS) {
        const unsigned i = begin + threadIdx.x;
        const table_entry *entry = i < count ? find_entry(table, bits, history[i]) : nullptr;
        const bool is_first = entry && entry->first == (int32_t)i;
        unsigned total;
        const size_t at = entries + rank_in_block(is_first, of_warps, &total);
        if (is_first) {
            list[at * 3] = entry->token;
            list[at * 3 + 1] = entry->prompt;
            list[at * 3 + 2] = entry->generated;
        }
        entries += total;
    }
    const size_t together = GB_CUDA_COUNTS_TOGETHER, last = (entries / together + 1) * together;
    const size_t filled = last < c.limit ? last + 1 : c.limit;
    for (size_t i = entries * 3 + threadIdx.x; i < filled * 3; i += THREADS)
        list[i] = -1;
}

uint64_t gb_cuda_count_tokens_scratch(const gb_cuda_problem *problem) {
    const gb_cuda_call *call = problem->parts[0];
    const size_t rows = call->operands[ROWS]->dims[0], limit = call->results[0]->dims[1];
    const int bits = bits_for(limit);
    return bits <= SHARED_BITS ? 0 : ((uint64_t)rows << bits) * sizeof(table_entry);
}

void gb_cuda_count_tokens(const gb_cuda_call *call) {
    const gb_cuda_tensor *history = call->operands[HISTORY];
    const size_t tokens = call->operands[TOKENS]->dims[0], rows = call->operands[ROWS]->dims[0];
    counting c = {};
    c.positions = data_of<const int32_t>(call->operands[POSITIONS]);
    c.slots = data_of<const int32_t>(call->operands[SLOTS]);
    c.rows = data_of<const int32_t>(call->operands[ROWS]);
    c.generated_from = data_of<const int32_t>(call->operands[GENERATED_FROM]);
    c.history = data_of<uint8_t>(history);
    c.slot_bytes = history->slot_bytes;
    c.limit = call->results[0]->dims[1];
    c.tables = reinterpret_cast<table_entry *>(call->scratch->bytes);
    c.table_bits = bits_for(c.limit);
    c.counts = data_of<int32_t>(call->results[0]);
    c.tokens = data_of<const int32_t>(call->operands[TOKENS]);
    c.token_count = tokens;
    const int shared_bits = c.table_bits < SHARED_BITS ? c.table_bits : (int)SHARED_BITS;
    if (rows == 0)
        add_each(call->launches, "count_tokens_store", 1, tokens, count_tokens_store{c});
    else
        add_launch(call->launches, "count_tokens", run_count_tokens, (unsigned)rows, THREADS,
                   sizeof(table_entry) << shared_bits, c);
}
