/* SPDX-License-Identifier: Apache-2.0
 *
 * What the attention kernels share: caches, the rows that a query reads, and a block's tile of queries.
 */
#ifndef GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_CUH
#define GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_CUH

#include "backends/cuda/gemm/prepared.cuh"

extern "C" {
#include "tensor/cache_codes.h"
}

namespace gb_cuda {

/* Position p of a slot lies in row p mod capacity. */
struct cache {
    uint8_t *data;
    uint8_t *room; /* NULL: tokens' own rows are in data before they are read; else in row n of this */
    size_t slot_bytes;
    gb_dtype dtype;               /* float32, bfloat16, q8 or q4 */
    size_t capacity, heads, size; /* rows of a slot; elements of a head */
    unsigned rotation;            /* q8, q4: the block of what is stored's Hadamard transform, or 0 */
};

/* How a cached number enters the products of tensor cores: as bfloat16, as that many terms of it, or as a
 * code of so many bits. */
enum cached_form : unsigned { NOT_THEIRS = 0, AS_BF16 = 1, AS_TWO_TERMS = 2, AS_Q4 = 4, AS_Q8 = 8 };

template <unsigned FORM>
constexpr bool HAS_CODES = FORM == AS_Q4 || FORM == AS_Q8;

struct attention {
    const float *query;       /* [tokens, heads, key size] */
    const float *key, *value; /* [tokens, kv heads, key or value size]: what is appended; NULL: nothing */
    const int32_t *positions, *slots, *run_first;
    cache keys, values;
    const void *sinks; /* [heads] of sink_dtype, or NULL */
    gb_dtype sink_dtype;
    size_t tokens, heads, window, run_count;
    float scale;
    float *y;                         /* [tokens, heads, value size] */
    unsigned group;                   /* heads of a kv head */
    unsigned head_size;               /* of a query and of a result: a kv head's, or half of it */
    unsigned tile_heads, tile_tokens; /* of a block's queries */
    unsigned parts;                   /* blocks that share a kv head's queries of a token */
    size_t room_bytes;                /* first in the scratch; 0: the caches have no room */
    unsigned form;                    /* cached_form */
};

/* Of so many elements, without scales. */
__host__ __device__ inline size_t bytes_of(gb_dtype dtype, size_t elements) {
    return gb_dtype_has_codes(dtype) ? gb_code_bytes(dtype, elements) : elements * (dtype == GB_F32 ? 4 : 2);
}

/* Of all heads: of codes, behind them their scales. */
__host__ __device__ inline size_t row_bytes(const cache &c) {
    const size_t elements = c.heads * c.size;
    return bytes_of(c.dtype, elements) + (gb_dtype_has_codes(c.dtype) ? gb_code_scale_bytes(elements) : 0);
}

/* Bytes from a head's codes in a row to their scales. */
__host__ __device__ inline size_t scales_behind(const cache &c, size_t head) {
    return bytes_of(c.dtype, (c.heads - head) * c.size) + gb_code_scale_bytes(head * c.size);
}

/* The first position that the query at that one reads; the query's own is the last. */
__device__ inline size_t first_read(const attention &a, size_t position) {
    return a.window > 0 && position >= a.window ? position - a.window + 1 : 0;
}

/* Tensor cores take heads of half the size as pairs: two kv heads side by side are one, and a query has zeros
 * beside its own half. Whether element e of such a row is in the head's own half. */
__device__ inline bool is_own_half(const attention &a, size_t head, unsigned e) {
    return a.head_size == a.keys.size || (e >= a.head_size) == (head % a.group >= a.group / 2);
}

/* Where it is among queries and results. */
__device__ inline size_t place_of_element(const attention &a, size_t token, size_t head, unsigned e) {
    return (token * a.heads + head) * a.head_size + (e & (a.head_size - 1));
}

/* What a head's sums are divided by: sum, and the sink's weight beside the largest score. */
__device__ inline float divisor_of(const attention &a, size_t head, float sum, float largest) {
    return a.sinks ? sum + gb_exp(load_float(a.sinks, a.sink_dtype, head) - largest) : sum;
}

constexpr unsigned NO_POSITION = ~0u;

/* Queries of one slot and kv head: tokens first .. end - 1, heads head .. head_end - 1. Positions from
 * room_begin on are the rows of the room from row `run`, the run's first token, on. */
struct query_tile {
    unsigned first, end, head, head_end, kv_head;
    unsigned run, room_begin;
};

/* Blocks take up to `most` queries of a kv head at a time: all heads of a token first. */
inline void set_tiles(attention &a, unsigned most) {
    a.tile_heads = a.group < most ? a.group : most;
    a.tile_tokens = most / a.tile_heads;
    a.parts = (a.group + a.tile_heads - 1) / a.tile_heads;
}

/* The heads of kv head and part number `across`. */
__device__ inline query_tile heads_of(const attention &a, unsigned across) {
    const unsigned kv_head = across / a.parts, head = kv_head * a.group + across % a.parts * a.tile_heads;
    const unsigned end = (kv_head + 1) * a.group;
    return query_tile{0,       0, head,       head + a.tile_heads < end ? head + a.tile_heads : end,
                      kv_head, 0, NO_POSITION};
}

/* Tile number `tile` of the batch's runs, of kv head and part number `across`. Empty where there is none. */
__device__ inline query_tile find_tile(const attention &a, unsigned tile, unsigned across) {
    query_tile t = heads_of(a, across);
    for (size_t r = 0; r < a.run_count; r++) {
        const unsigned begin = (unsigned)a.run_first[r], end = (unsigned)a.run_first[r + 1];
        const unsigned tiles = (end - begin + a.tile_tokens - 1) / a.tile_tokens;
        if (tile < tiles) {
            t.first = begin + tile * a.tile_tokens;
            t.end = t.first + a.tile_tokens < end ? t.first + a.tile_tokens : end;
            t.run = begin;
            t.room_begin = a.keys.room ? (unsigned)a.positions[begin] : NO_POSITION;
            return t;
        }
        tile -= tiles;
    }
    return t;
}

__device__ inline unsigned count_of(const query_tile &t) {
    return (t.head_end - t.head) * (t.end - t.first);
}

struct query_place {
    bool is_there;
    size_t token, head;
};

/* Query q of a tile: token after token, of each its heads. */
__device__ inline query_place place_of(const query_tile &t, unsigned q) {
    const unsigned heads = t.head_end - t.head;
    const query_place p = {q < count_of(t), t.first + q / heads, t.head + q % heads};
    return p;
}

/* Keys and values of the call's tokens, if it has any, go to where they are read: the caches, or the room. */
void append_to_caches(const attention &a, gb_cuda_launch_list *launches);

/* Those that went to the room go to the caches, as far as these have rows for them. */
void append_to_rings(const attention &a, gb_cuda_launch_list *launches);

/* Reads the caches, of any size and dtype, in float32, a span of positions a block or all of them:
 * attention_float.cu. Either gives the same bits. */
void attend_few_in_float(attention a, const gb_cuda_scratch *scratch, gb_cuda_launch_list *launches);
uint64_t attend_few_in_float_scratch(const attention &a);
void attend_in_float(attention a, const gb_cuda_scratch *scratch, gb_cuda_launch_list *launches);
uint64_t attend_in_float_scratch(const attention &a);

/* What the tensor cores take. Tokens of which each continues its slot: appends, reads, and prepares the
 * result where `prepared` is somewhere; scratch has arrivals; where the device's blocks have the shared
 * memory that rows on their way take. attention_decode.cu */
void attend_decode(attention a, const prepared_rows &prepared, const gb_cuda_scratch *scratch,
                   gb_cuda_launch_list *launches);
uint64_t attend_decode_scratch(const attention &a);
bool decode_fits(const attention &a);

/* The same. Tokens of prompts, already appended; where the device's blocks have the shared memory that its
 * tiles take. attention_prefill.cu */
void attend_prefill(attention a, gb_cuda_launch_list *launches);
bool prompt_fits(const attention &a);

/* The same over caches of bfloat16 or codes, which are rounded to it, on Hopper: attention_wgmma.cu */
void attend_wgmma(const attention &a, gb_cuda_launch_list *launches);

} // namespace gb_cuda

#endif
