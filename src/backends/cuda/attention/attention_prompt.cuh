/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of prefill on tensor cores share: where tiles of a head's rows lie, and the running
 * softmax over tiles of keys. Scores lie as multiply_add's sums do: of every eight keys a lane has two, of
 * two queries.
 */
#ifndef GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_PROMPT_CUH
#define GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_PROMPT_CUH

#include "backends/cuda/attention/attention.cuh"
#include "backends/cuda/device/quick_math.cuh"
#include "backends/cuda/device/tiles.cuh"
#include "backends/cuda/gemm/int8/hadamard.cuh"

namespace gb_cuda {

/* ---- Tiles --------------------------------------------------------------------------------------------- */

/* Of a tile with rows of WIDTH numbers, where number e (a multiple of 8) of a row lies: eight rows' same
 * numbers are in different banks. */
template <unsigned WIDTH>
__device__ inline unsigned place_in(unsigned row, unsigned e) {
    constexpr unsigned ACROSS = WIDTH / 8, ROWS_OF_BANKS = ACROSS < 8 ? 8 / ACROSS : 1;
    return row * WIDTH + ((e / 8) ^ (row / ROWS_OF_BANKS % (8 / ROWS_OF_BANKS))) * 8;
}

/* A kv head's rows in the slot's cache and in the room. */
struct head_rows {
    const uint8_t *data, *room;
    unsigned stride, capacity, room_begin;
};

__device__ inline head_rows rows_of(const attention &a, const cache &c, const query_tile &t) {
    const unsigned stride = (unsigned)row_bytes(c);
    const size_t slot = (size_t)a.slots[t.first], head = bytes_of(c.dtype, t.kv_head * c.size);
    return head_rows{c.data + slot * c.slot_bytes + head, c.room + (size_t)t.run * stride + head, stride,
                     (unsigned)c.capacity, t.room_begin};
}

/* The row of a position of the tile at `tile`, which begins in the cache's row `first`; a tile has no more
 * rows than the cache. */
__device__ inline const uint8_t *row_of(const head_rows &rows, unsigned tile, unsigned first, unsigned key) {
    const unsigned position = tile + key, row = first + key;
    const bool is_in_room = position >= rows.room_begin;
    const unsigned of_cache = row >= rows.capacity ? row - rows.capacity : row;
    return (is_in_room ? rows.room : rows.data) +
           (size_t)(is_in_room ? position - rows.room_begin : of_cache) * rows.stride;
}

/* ---- Softmax ------------------------------------------------------------------------------------------- */

/* The two queries of a lane: rows lane / 4 and lane / 4 + 8 of its warp's 16. */
struct queries {
    unsigned first[2], last[2]; /* the positions that they read */
    float largest[2], sum[2];   /* so far; the sum is of the lane's own keys */
};

__device__ inline void find_queries(const attention &a, const query_tile &t, unsigned warp_row, queries &q) {
#pragma unroll
    for (unsigned r = 0; r < 2; r++) {
        const query_place p = place_of(t, warp_row + threadIdx.x % WARP / 4 + r * 8);
        const size_t position = (size_t)a.positions[p.is_there ? p.token : t.first];
        q.first[r] = (unsigned)first_read(a, position);
        q.last[r] = (unsigned)position;
        q.largest[r] = -INFINITY;
        q.sum[r] = 0;
    }
}

__device__ inline float quad_max(float x) {
    x = larger(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return larger(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

/* Scores of COUNT keys from `key` on that a query does not read become -inf. largest: of them. */
template <unsigned COUNT>
__device__ inline void mask(const queries &q, unsigned key, bool all_are_read, float *scores,
                            float largest[2]) {
    const unsigned first = key + threadIdx.x % 4 * 2;
    if (!all_are_read)
#pragma unroll
        for (unsigned i = 0; i < COUNT / 2; i++) {
            const unsigned j = first + i / 4 * 8 + i % 2, r = i % 4 / 2;
            scores[i] = (j >= q.first[r]) & (j <= q.last[r]) ? scores[i] : -INFINITY;
        }
#pragma unroll
    for (unsigned r = 0; r < 2; r++) {
        largest[r] = scores[2 * r];
#pragma unroll
        for (unsigned i = 0; i < COUNT / 2; i++)
            if (i % 4 / 2 == r)
                largest[r] = larger(scores[i], largest[r]);
        largest[r] = quad_max(largest[r]);
    }
}

/* Turns scores into weights, powers of 2 of what scale > 0 makes of them. corrections: what so far was summed
 * is to be multiplied with. */
template <unsigned COUNT>
__device__ inline void weigh(queries &q, const float largest[2], float scale, float *scores,
                             float corrections[2]) {
    float from[2];
#pragma unroll
    for (unsigned r = 0; r < 2; r++) {
        const float both = larger(q.largest[r], largest[r]);
        from[r] = both == -INFINITY ? 0.0f : both * scale; /* nothing read as yet: all weights are 0 */
        corrections[r] = q.largest[r] == both ? 1.0f : exp2_fast((q.largest[r] - both) * scale);
        q.largest[r] = both;
        q.sum[r] *= corrections[r];
    }
#pragma unroll
    for (unsigned i = 0; i < COUNT / 2; i++) {
        scores[i] = exp2_fast(fmaf(scores[i], scale, -from[i % 4 / 2]));
        q.sum[i % 4 / 2] += scores[i];
    }
}

/* What was summed for COLUMNS elements; mostly a tile has no score above those before. */
template <unsigned COLUMNS>
__device__ inline void correct(float *y, const float corrections[2]) {
    if (__ballot_sync(0xffffffffu, corrections[0] != 1.0f || corrections[1] != 1.0f) == 0)
        return;
#pragma unroll
    for (unsigned i = 0; i < COLUMNS / 2; i++)
        y[i] *= corrections[i % 4 / 2];
}

/* The sum of a query's weights over the keys of all of its lanes. */
__device__ inline float quad_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/* Multiplies sums of COLUMNS elements by the matrix by which the values were. */
template <unsigned COLUMNS>
__device__ inline void rotate_sums(unsigned rotation, float y[COLUMNS / 2]) {
    if (rotation == 0)
        return;
#pragma unroll
    for (unsigned i = 0; i < COLUMNS / 2 && rotation > 1; i += 2)
        add_and_subtract(y[i], y[i + 1]);
    for (unsigned distance = 1; distance < 4 && distance * 2 < rotation; distance *= 2) {
        const float sign = threadIdx.x & distance ? -1.0f : 1.0f;
#pragma unroll
        for (unsigned i = 0; i < COLUMNS / 2; i++)
            y[i] = fmaf(y[i], sign, __shfl_xor_sync(0xffffffffu, y[i], (int)distance));
    }
#pragma unroll
    for (unsigned h = 4; h < COLUMNS / 2; h *= 2)
        if (h * 2 < rotation)
#pragma unroll
            for (unsigned i = 0; i < COLUMNS / 2; i++)
                if ((i & h) == 0)
                    add_and_subtract(y[i], y[i + h]);
    const float scale = gb_hadamard_scale(rotation);
#pragma unroll
    for (unsigned i = 0; i < COLUMNS / 2; i++)
        y[i] *= scale;
}

/* y / divisor, within a bit, of a query of the lane, COLUMNS elements from `column` on; r: which of its two.
 */
template <unsigned COLUMNS>
__device__ inline void store_query(const attention &a, const query_place &p, unsigned column, unsigned r,
                                   float divisor, const float *y) {
    if (!p.is_there)
        return;
    const float inverse = 1.0f / divisor;
    float *const row = a.y + place_of_element(a, p.token, p.head, 0);
#pragma unroll
    for (unsigned i = 0; i < COLUMNS / 8; i++) {
        const unsigned e = column + i * 8 + threadIdx.x % 4 * 2;
        if (is_own_half(a, p.head, e))
            *reinterpret_cast<float2 *>(row + (e & (a.head_size - 1))) =
                float2{y[i * 4 + 2 * r] * inverse, y[i * 4 + 2 * r + 1] * inverse};
    }
}

/* ---- Weights that two warps share ---------------------------------------------------------------------- */

/* The largest score of a query's whole tile, of which each of a pair of warps has half: puts down the warp's,
 * and takes the other's. */
__device__ inline void put_largest(float *to, unsigned warp_row, const float largest[2]) {
#pragma unroll
    for (unsigned r = 0; r < 2 && threadIdx.x % 4 == 0; r++)
        to[warp_row + threadIdx.x % WARP / 4 + r * 8] = largest[r];
}
__device__ inline void take_largest(const float *from, unsigned warp_row, float largest[2]) {
#pragma unroll
    for (unsigned r = 0; r < 2; r++)
        largest[r] = larger(largest[r], from[warp_row + threadIdx.x % WARP / 4 + r * 8]);
}

} // namespace gb_cuda

#endif
