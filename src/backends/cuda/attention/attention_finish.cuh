/* SPDX-License-Identifier: Apache-2.0
 *
 * A launch of decode, over whatever the caches have, and what becomes of a token's sums of values.
 */
#ifndef GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_FINISH_CUH
#define GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_FINISH_CUH

#include "backends/cuda/attention/attention_sums.cuh"

namespace gb_cuda {

struct decoding {
    attention a;
    unsigned stages; /* of the ring */
    bool appends;    /* the block of the last span stores the token's own key and value */
    shared_parts parts;
    prepared_rows prepared; /* of all heads as one row */
    size_t first_row;       /* of token 0 there */
};

/* Whether a span's sums are for others to add up. */
__device__ inline bool is_left(const piece &p, unsigned span) {
    return p.first > 0 || (span + 1 == p.end && !p.has_all());
}

/* Whether this block is the last one that has some of the token's spans: then all of them are added up. */
template <unsigned SIZE>
__device__ inline bool gather_last(const decoding &d, const piece &p, const team_share &share,
                                   unsigned queries, unsigned place, sums_memory<SIZE> &all) {
    if (!is_last_block(&d.parts.arrivals[place], p.spans.count, p.end - p.first))
        return false;
    const unsigned together = parts_of(share.first_of(place / share.across + 1) - p.round, p.spans.size);
    gather_parts<SIZE>(d.parts, place, together - 1, p.spans.count, queries, all);
    return true;
}

/* Stores the result, also as prepared rows of the next GEMV. */
template <unsigned SIZE>
__device__ inline void finish(const decoding &d, const query_tile &t, const sums_memory<SIZE> &all) {
    constexpr unsigned QUARTERS = SIZE / 8;
    const unsigned count = count_of(t) * QUARTERS;
    __syncthreads();
#pragma unroll 1
    for (unsigned first = 0; first < count; first += SPAN_THREADS) {
        const unsigned i = first + threadIdx.x, q = i / QUARTERS, quarter = i % QUARTERS;
        const bool is_there = i < count;
        float v[8] = {};
        if (is_there) {
            constexpr float LN_2 = 0x1.62e43p-1f; /* scores are of powers of 2 */
            const softmax &total = all.totals[q];
            const float inverse = 1.0f / divisor_of(d.a, t.head + q, total.sum, total.largest * LN_2);
#pragma unroll
            for (unsigned h = 0; h < 2; h++) {
                const float4 sum = all.sums[q][quarter * 2 + h];
                v[4 * h] = sum.x * inverse;
                v[4 * h + 1] = sum.y * inverse;
                v[4 * h + 2] = sum.z * inverse;
                v[4 * h + 3] = sum.w * inverse;
            }
        }
        rotate_eight(v, d.a.values.rotation); /* a warp has whole blocks of the rotation */
        const bool is_own = is_there && is_own_half(d.a, t.head + q, quarter * 8);
        const size_t at = place_of_element(d.a, t.first, t.head + q, quarter * 8);
        if (is_own) {
            float4 *to = reinterpret_cast<float4 *>(d.a.y + at);
            to[0] = float4{v[0], v[1], v[2], v[3]};
            to[1] = float4{v[4], v[5], v[6], v[7]};
        }
        if (d.prepared.values)
            prepare_quarter(
                d.prepared, d.first_row + t.first,
                is_own ? at / 8 - t.first * d.a.heads * (d.a.head_size / 8) : d.prepared.units * 4, v);
    }
}

/* f of the size of the call's heads, as a type. */
template <typename F>
auto with_head_size(const attention &a, F f) {
    return a.keys.size == 128 ? f(fixed<128>()) : a.keys.size == 256 ? f(fixed<256>()) : f(fixed<512>());
}

/* Decode over caches of codes, and how many of its blocks a multiprocessor has at a time; 0: none fits.
 * attention_codes.cu */
unsigned code_decode_blocks(const attention &a);
void launch_code_decode(decoding d, unsigned blocks, gb_cuda_launch_list *launches);

} // namespace gb_cuda

#endif
