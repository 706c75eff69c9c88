/* SPDX-License-Identifier: Apache-2.0
 *
 * A token's own key and value, which the block that attends to them has before the caches do, and how their
 * numbers and a query's are loaded.
 */
#ifndef GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_OWN_CUH
#define GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_OWN_CUH

#include "backends/cuda/attention/attention_share.cuh"

namespace gb_cuda {

/* The block's last 2 SIZE / 8 threads, whole warps, have some: first those of the key. Few queries are the
 * first warps'. */
template <unsigned SIZE>
struct own_place {
    bool is_there, is_key;
    unsigned number; /* of the eight elements in their row */

    __device__ own_place() {
        constexpr unsigned OF_ROW = SIZE / 8, FIRST = SPAN_THREADS - 2 * OF_ROW;
        static_assert(FIRST % WARP == 0, "a warp has some or none");
        is_there = threadIdx.x >= FIRST;
        is_key = threadIdx.x < FIRST + OF_ROW;
        number = threadIdx.x % OF_ROW;
    }
};

/* Eight numbers, of a query, a key or a value. */
struct eight_numbers {
    float of[8];
};

/* Zeros of NULL. */
__device__ inline eight_numbers load_numbers(const float *from) {
    const float4 none = {0, 0, 0, 0}, *four = reinterpret_cast<const float4 *>(from);
    const float4 first = from ? four[0] : none, second = from ? four[1] : none;
    return eight_numbers{first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
}

/* Where the thread's part is of a token's key or value; NULL where it has none. */
template <unsigned SIZE>
__device__ inline const float *find_own(const attention &a, const query_tile &t) {
    const own_place<SIZE> place;
    const float *rows = place.is_key ? a.key : a.value;
    return place.is_there ? rows + ((t.first * a.keys.heads + t.kv_head) * (SIZE / 8) + place.number) * 8
                          : nullptr;
}

} // namespace gb_cuda

#endif
