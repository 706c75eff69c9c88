/* SPDX-License-Identifier: Apache-2.0
 *
 * A round of keys of a decode token over caches of 8- or 4-bit codes (attention_code_rows.cuh), whose
 * products are of integers. Codes enter them as they are; a query, and a query's weights for a group of
 * elements, are numbers of 16 bits times a step, each as a high and a low byte in rows q and q + 8 of the
 * tensor cores' first matrix. Lane l has the scores, the softmax and sums of query l / 4, as every warp has.
 */
#ifndef GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_CODES_CUH
#define GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_CODES_CUH

#include "backends/cuda/attention/attention_code_rows.cuh"
#include "backends/cuda/attention/attention_round.cuh"

namespace gb_cuda {

/* How a block's warps share a round: scores of some keys over at most 256 elements each, then some elements
 * of the values of all keys. Few queries are at most four: then lanes from 16 on have the second half of the
 * round's keys, with sums of their own. */
template <unsigned SIZE_, unsigned FORM_, bool ARE_FEW>
struct code_shape {
    static constexpr unsigned SIZE = SIZE_, FORM = FORM_, KEYS = CODE_KEYS<SIZE>, DEPTHS = SIZE > 256 ? 2 : 1;
    static constexpr unsigned UNITS = SIZE / DEPTHS / GB_CODE_GROUP, OF_WARP = KEYS * DEPTHS / SPAN_WARPS;
    static constexpr unsigned HALVES = ARE_FEW ? 2 : 1, QUERIES = SPAN_QUERIES / HALVES;
    static constexpr unsigned BLOCKS = KEYS / 16 / HALVES, OF_LANE = BLOCKS * 4; /* a lane's keys */
    static constexpr unsigned GROUPS = SIZE > 256 ? SIZE / 256 : 1, EACH = SIZE < 256 ? 2 : 4;
    static constexpr unsigned SUMS = GROUPS * EACH * 2; /* a lane's, of values */
    static_assert(OF_WARP % 8 == 0 && SIZE == GROUPS * EACH * 8 * SPAN_WARPS, "all of a round is taken");

    __device__ static unsigned query() {
        return threadIdx.x % WARP / 4 % QUERIES;
    }
    __device__ static unsigned half() {
        return threadIdx.x % WARP / 4 / QUERIES;
    }
    /* Number i of a lane's keys. */
    __device__ static unsigned key(unsigned i) {
        return half() * (KEYS / 2) + i / 4 * 16 + threadIdx.x % 4 * 4 + i % 4;
    }
};

template <unsigned SIZE>
struct code_round {
    uint4 query[SIZE / GB_CODE_GROUP][WARP]; /* as the tensor cores take it */
    float step[SPAN_QUERIES];
    float scores[SIZE > 256 ? 2 : 1][SPAN_QUERIES][CODE_KEYS<SIZE> + 16]; /* 16: against bank conflicts */
};

/* ---- Numbers of 16 bits -------------------------------------------------------------------------------- */

/* The largest number that two bytes make, both signed or both unsigned, less what a reciprocal may be off by.
 */
template <bool ARE_SIGNED>
constexpr float MOST_STEPS = ARE_SIGNED ? 32638.0f : 65534.0f;

/* Steps for one, where the largest of some numbers is so large, at most 2^126; none where it is next to
 * nothing. */
template <bool ARE_SIGNED>
__device__ inline float per_step_of(float largest) {
    return largest < 0x1p-100f ? 0.0f : approximate_reciprocal(largest) * MOST_STEPS<ARE_SIGNED>;
}

/* The high bytes of four numbers, in steps and rounded, and the low ones. */
template <bool ARE_SIGNED>
__device__ inline uint2 split_steps(const float x[4], float per_step) {
    uint32_t low[4], high[4];
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        low[i] = gb_float_bits(fmaf(x[i], per_step, 0x1.8p+23f)); /* in the lower half of the bits */
        high[i] = low[i] + (ARE_SIGNED ? 128 : 0);
    }
    return uint2{
        select_bytes<0x5410>(select_bytes<0x0051>(high[0], high[1]), select_bytes<0x0051>(high[2], high[3])),
        select_bytes<0x5410>(select_bytes<0x0040>(low[0], low[1]), select_bytes<0x0040>(low[2], low[3]))};
}

/* What a product of both bytes' sums is. */
__device__ inline float join_sums(int32_t high, int32_t low) {
    return (float)(high * 256 + low);
}

/* Codes of 4 bits are multiplied as 16 times what they are, in the upper half of a byte. */
template <unsigned FORM>
constexpr float CODE_STEP = FORM == AS_Q4 ? 0.0625f : 1.0f;

/* Those in the upper halves. */
__device__ inline uint32_t upper_codes(uint32_t bytes) {
    return mask_and_flip<0xf0f0f0f0, 0x80808080>(bytes);
}

/* The largest of the lanes that have a query, or their sum. */
template <typename S>
__device__ inline float query_max(float x) {
    x = largest_or_nan(x, __shfl_xor_sync(0xffffffffu, x, 1));
    x = largest_or_nan(x, __shfl_xor_sync(0xffffffffu, x, 2));
    return S::HALVES > 1 ? largest_or_nan(x, __shfl_xor_sync(0xffffffffu, x, 16)) : x;
}
template <typename S>
__device__ inline float query_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    x += __shfl_xor_sync(0xffffffffu, x, 2);
    return S::HALVES > 1 ? x + __shfl_xor_sync(0xffffffffu, x, 16) : x;
}

/* ---- Scores -------------------------------------------------------------------------------------------- */

/* Where four elements of a unit lie among those of a product: the lane of its four, and which half. */
struct product_place {
    unsigned lane, half;
};

template <unsigned FORM>
__device__ inline product_place place_of_four(unsigned number) {
    return FORM == AS_Q8 ? product_place{number / 2, number % 2} : product_place{number % 4, number / 4};
}

/* The queries, of which a warp has one. What is not finite leaves a query no finite score. */
template <typename S>
__device__ inline void stage_code_queries(const attention &a, const query_tile &t,
                                          code_round<S::SIZE> &shared) {
    constexpr unsigned TIMES = S::SIZE > 256 ? S::SIZE / 256 : 1;
    const unsigned q = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    eight_numbers x[TIMES] = {};
    float largest = 0;
    if (S::SIZE > 256 || q < count_of(t)) { /* heads of 512 were measured without the branch */
#pragma unroll
        for (unsigned i = 0; i < TIMES; i++) {
            x[i] = load_numbers(find_query<S::SIZE>(a, t, q, i * WARP + lane));
            scale_query(a, x[i]);
#pragma unroll
            for (unsigned e = 0; e < 8; e++)
                largest = largest_or_nan(largest, fabsf(x[i].of[e]));
        }
#pragma unroll
        for (int distance = WARP / 2; distance > 0; distance /= 2)
            largest = largest_or_nan(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
    }
    const float per_step = largest < 0x1p-100f ? 0.0f : MOST_STEPS<true> / largest;
    if (lane == 0)
        shared.step[q] = largest * (CODE_STEP<S::FORM> / MOST_STEPS<true>);
#pragma unroll
    for (unsigned i = 0; i < TIMES; i++)
#pragma unroll
        for (unsigned h = 0; h < 2; h++) {
            const unsigned number = i * WARP + lane;
            const product_place place = place_of_four<S::FORM>(number % 4 * 2 + h);
            if (S::SIZE / 8 >= WARP || number < S::SIZE / 8)
                reinterpret_cast<uint2 *>(&shared.query[number / 4][q * 4 + place.lane])[place.half] =
                    split_steps<true>(x[i].of + 4 * h, per_step);
        }
}

/* Where a key's codes of unit 0 lie that the lane takes. Those of others differ by a bit of the number of 16
 * bytes: a round finds them anew, because registers for all would be too many. */
template <typename S>
__device__ inline uint32_t place_of_key(unsigned key) {
    const unsigned lane = threadIdx.x % 4;
    uint32_t place = S::FORM == AS_Q8 ? place_of_codes<S::SIZE, S::FORM>(key, lane / 2, true) + lane % 2 * 8
                                      : place_of_codes<S::SIZE, S::FORM>(key, 0, true) + lane * 4;
    keep_in_place(place);
    return place;
}

/* The lane's codes of a unit. */
template <typename S>
__device__ inline uint2 load_key_codes(const uint8_t *rows, uint32_t place, unsigned unit) {
    if constexpr (S::FORM == AS_Q8) {
        return *reinterpret_cast<const uint2 *>(rows + (place ^ unit * 32));
    } else {
        const uint32_t both = *reinterpret_cast<const uint32_t *>(rows + (place ^ unit * 16));
        return uint2{upper_codes(both << 4), upper_codes(both)};
    }
}

/* Scales of a key's units from `first` on, two in a word. */
template <typename S>
__device__ inline void load_scales(const uint8_t *rows, unsigned key, unsigned first,
                                   uint32_t to[S::UNITS / 2]) {
    const uint8_t *scales = rows + place_of_scales<S::SIZE, S::FORM>(key) + first * 2;
    if constexpr (S::UNITS == 8) {
        const uint4 four = *reinterpret_cast<const uint4 *>(scales);
        to[0] = four.x;
        to[1] = four.y;
        to[2] = four.z;
        to[3] = four.w;
    } else {
        const uint2 two = *reinterpret_cast<const uint2 *>(scales);
        to[0] = two.x;
        to[1] = two.y;
    }
}

/* Scores of eight keys over the warp's elements go to shared memory. */
template <typename S>
__device__ inline void score_eight_keys(const uint8_t *rows, unsigned key, unsigned depth,
                                        code_round<S::SIZE> &shared) {
    const unsigned lane = threadIdx.x % WARP;
    const uint32_t place = place_of_key<S>(key + lane / 4);
    uint32_t scales[2][S::UNITS / 2];
    float scores[2] = {};
#pragma unroll
    for (unsigned j = 0; j < 2; j++)
        load_scales<S>(rows, key + lane % 4 * 2 + j, depth * S::UNITS, scales[j]);
#pragma unroll
    for (unsigned u = 0; u < S::UNITS; u++) {
        const uint2 codes = load_key_codes<S>(rows, place, depth * S::UNITS + u);
        const uint4 four = shared.query[depth * S::UNITS + u][lane];
        const uint32_t query[4] = {four.x, four.y, four.z, four.w};
        int32_t sums[4] = {};
        multiply_add_signed_bytes(sums, query, codes.x, codes.y);
#pragma unroll
        for (unsigned j = 0; j < 2; j++) {
            const uint32_t two = scales[j][u / 2];
            scores[j] =
                fmaf(join_sums(sums[j], sums[j + 2]), u % 2 ? high_half(two) : low_half(two), scores[j]);
        }
    }
    const float step = shared.step[lane / 4];
    *reinterpret_cast<float2 *>(&shared.scores[depth][lane / 4][key + lane % 4 * 2]) =
        float2{scores[0] * step, scores[1] * step};
}

template <typename S>
__device__ inline void score_codes(const uint8_t *rows, code_round<S::SIZE> &shared) {
    const unsigned warp = threadIdx.x / WARP, depth = warp % S::DEPTHS, first = warp / S::DEPTHS * S::OF_WARP;
#pragma unroll
    for (unsigned i = 0; i < S::OF_WARP; i += 8)
        score_eight_keys<S>(rows, first + i, depth, shared);
}

/* ---- Weights ------------------------------------------------------------------------------------------- */

/* A lane's weights of a round, and what the sums so far count for beside them. */
template <typename S>
struct code_weights {
    float of[S::OF_LANE];
    float correction;
};

template <typename S>
__device__ inline void load_scores(const code_round<S::SIZE> &shared, float to[S::OF_LANE]) {
#pragma unroll
    for (unsigned d = 0; d < S::DEPTHS; d++)
#pragma unroll
        for (unsigned i = 0; i < S::OF_LANE; i += 4) {
            const float4 four = *reinterpret_cast<const float4 *>(&shared.scores[d][S::query()][S::key(i)]);
            const float loaded[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (unsigned k = 0; k < 4; k++)
                to[i + k] = d == 0 ? loaded[k] : to[i + k] + loaded[k];
        }
}

/* Keys from `count` on are none. In so_far the sum is a lane's part. */
template <typename S>
__device__ inline code_weights<S> weigh_codes(const code_round<S::SIZE> &shared, unsigned count,
                                              softmax &so_far) {
    code_weights<S> weights;
    float largest = so_far.largest, sums[4] = {};
    load_scores<S>(shared, weights.of);
    if (count < S::KEYS)
#pragma unroll
        for (unsigned i = 0; i < S::OF_LANE; i++)
            weights.of[i] = S::key(i) < count ? weights.of[i] : -INFINITY;
#pragma unroll
    for (unsigned i = 0; i < S::OF_LANE; i++)
        largest = largest_or_nan(largest, weights.of[i]);
    largest = query_max<S>(largest);
    weights.correction = exp2_fast(so_far.largest - largest);
#pragma unroll
    for (unsigned i = 0; i < S::OF_LANE; i++) {
        weights.of[i] = exp2_fast(weights.of[i] - largest);
        sums[i % 4] += weights.of[i];
    }
    so_far.sum = so_far.sum * weights.correction + ((sums[0] + sums[1]) + (sums[2] + sums[3]));
    so_far.largest = largest;
    return weights;
}

/* Whether weights times scales have signs: scales of 4-bit codes have some, those of 8-bit codes none. */
template <typename S>
constexpr bool HAS_SIGNS = S::FORM == AS_Q4;

/* As they count for a group of the values' elements: in steps, of which the largest of a lane's query has the
 * most, so that many small ones beside a large one whose value is nothing are not lost. */
template <typename S>
struct group_weights {
    uint2 blocks[S::KEYS / 16]; /* of 16 keys the high and the low bytes; zeros of keys that others have */
    float step;
};

template <typename S>
__device__ inline group_weights<S> weights_of_group(const uint8_t *rows, unsigned group,
                                                    const code_weights<S> &weights) {
    group_weights<S> found;
    float products[S::OF_LANE], largest = 0;
#pragma unroll
    for (unsigned i = 0; i < S::OF_LANE; i++) {
        const uint8_t *scale = rows + place_of_scales<S::SIZE, S::FORM>(S::key(i)) + group * 2;
        products[i] = weights.of[i] * low_half(*reinterpret_cast<const uint16_t *>(scale));
        largest = largest_or_nan(largest, fabsf(products[i]));
    }
    largest = largest_or_nan(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
    largest = largest_or_nan(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
    const float per_step = per_step_of<HAS_SIGNS<S>>(largest);
    found.step = largest * (CODE_STEP<S::FORM> / MOST_STEPS<HAS_SIGNS<S>>);
#pragma unroll
    for (unsigned b = 0; b < S::BLOCKS; b++) {
        const uint2 bytes = split_steps<HAS_SIGNS<S>>(products + 4 * b, per_step), none = {0, 0};
        found.blocks[b] = S::HALVES == 1 || S::half() == 0 ? bytes : none;
        if constexpr (S::HALVES > 1)
            found.blocks[S::BLOCKS + b] = S::half() == 1 ? bytes : none;
    }
    return found;
}

/* ---- Values -------------------------------------------------------------------------------------------- */

/* A lane's sums of values. */
template <typename S>
struct code_sums {
    float y[S::SUMS];
};

/* The first of the four elements of y[4 i] .., beside each other. */
template <typename S>
__device__ inline unsigned element_of_sums(unsigned i) {
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % 4;
    return warp * (S::SIZE / SPAN_WARPS) + i / 2 * GB_CODE_GROUP + lane * 2 * S::EACH + i % 2 * 4;
}

/* The first EACH bytes of four words, by byte. */
template <unsigned EACH>
__device__ inline void transpose_bytes(const uint32_t from[4], uint32_t to[EACH]) {
#pragma unroll
    for (unsigned e = 0; e < EACH; e += 2) {
        const uint32_t first = e == 0 ? select_bytes<0x5140>(from[0], from[1])
                                      : select_bytes<0x7362>(from[0], from[1]),
                       second = e == 0 ? select_bytes<0x5140>(from[2], from[3])
                                       : select_bytes<0x7362>(from[2], from[3]);
        to[e] = select_bytes<0x5410>(first, second);
        to[e + 1] = select_bytes<0x7632>(first, second);
    }
}

/* The first of a lane's elements in a group: EACH of them. */
template <typename S>
__device__ inline unsigned element_of_values() {
    const unsigned column = threadIdx.x % WARP / 4, warp = threadIdx.x / WARP;
    return S::EACH == 2 ? warp % 2 * 16 + column * 2 : column * 4;
}

/* Where they lie in the value of the lane's first key in a block of 16, of the warp's first group. The next
 * group's differ by a bit. */
template <typename S>
__device__ inline uint32_t place_of_value() {
    const unsigned warp = threadIdx.x / WARP, element = element_of_values<S>();
    const unsigned group = S::EACH == 2 ? warp / 2 : warp * S::GROUPS;
    const unsigned at = S::FORM == AS_Q8 ? group * 32 + element : group * 16 + element % 16;
    uint32_t place = place_of_codes<S::SIZE, S::FORM>(threadIdx.x % 4 * 4, at / 16, false) + at % 16;
    keep_in_place(place);
    return place;
}

/* They of four keys. Words of a key each become words of an element each. */
template <typename S>
__device__ inline void load_value_codes(const uint8_t *rows, uint32_t to[S::EACH]) {
    uint32_t words[4];
#pragma unroll
    for (unsigned k = 0; k < 4; k++) {
        const uint8_t *from = rows + k * CODE_BYTES<S::SIZE, S::FORM>;
        words[k] = S::EACH == 2 ? *reinterpret_cast<const uint16_t *>(from)
                                : *reinterpret_cast<const uint32_t *>(from);
    }
    transpose_bytes<S::EACH>(words, to);
    if constexpr (S::FORM == AS_Q4)
#pragma unroll
        for (unsigned e = 0; e < S::EACH; e++)
            to[e] = upper_codes(element_of_values<S>() < 16 ? to[e] << 4 : to[e]);
}

/* sums = correction * sums + weights * values, of a group's elements. */
template <typename S>
__device__ inline void add_group_of_values(const uint8_t *rows, unsigned number, uint32_t place,
                                           const code_weights<S> &weights, code_sums<S> &sums) {
    const unsigned warp = threadIdx.x / WARP, group = S::EACH == 2 ? warp / 2 : warp * S::GROUPS + number;
    const group_weights<S> of_group = weights_of_group<S>(rows, group, weights);
    const uint8_t *of_group_rows = rows + (place ^ number * (GB_CODE_GROUP * S::FORM / 8));
    int32_t products[S::EACH][4] = {};
#pragma unroll
    for (unsigned b = 0; b < S::KEYS / 16; b += 2) {
        const uint2 first = of_group.blocks[b], second = of_group.blocks[b + 1];
        const uint32_t bytes[4] = {first.x, first.y, second.x, second.y};
        uint32_t codes[2][S::EACH];
#pragma unroll
        for (unsigned h = 0; h < 2; h++)
            load_value_codes<S>(of_group_rows + (b + h) * 16 * CODE_BYTES<S::SIZE, S::FORM>, codes[h]);
#pragma unroll
        for (unsigned e = 0; e < S::EACH; e++)
            if constexpr (HAS_SIGNS<S>)
                multiply_add_signed_bytes(products[e], bytes, codes[0][e], codes[1][e]);
            else
                multiply_add_bytes(products[e], bytes, codes[0][e], codes[1][e], products[e]);
    }
#pragma unroll
    for (unsigned i = 0; i < 2 * S::EACH; i++) {
        const unsigned column = i / S::EACH, e = i % S::EACH;
        float &sum = sums.y[number * 2 * S::EACH + i];
        sum = fmaf(join_sums(products[e][column], products[e][column + 2]), of_group.step,
                   sum * weights.correction);
    }
}

/* The same of all groups of the warp. */
template <typename S>
__device__ inline void add_code_values(const uint8_t *rows, const code_weights<S> &weights,
                                       code_sums<S> &sums) {
    const uint32_t place = place_of_value<S>();
#pragma unroll
    for (unsigned i = 0; i < S::GROUPS; i++)
        add_group_of_values<S>(rows, i, place, weights, sums);
}

/* The sums of both halves of the keys are added up where a span ends, so that spans are added up alike in a
 * block and in memory. */
template <typename S>
__device__ inline void join_halves_of_keys(code_sums<S> &sums) {
    if constexpr (S::HALVES > 1)
#pragma unroll
        for (unsigned i = 0; i < S::SUMS; i++)
            sums.y[i] += __shfl_xor_sync(0xffffffffu, sums.y[i], 16);
}

/* Stores the sums of the first `queries` queries: to [SPAN_QUERIES, SIZE]. */
template <typename S>
__device__ inline void store_code_sums(const code_sums<S> &sums, unsigned queries, float4 *to) {
#pragma unroll
    for (unsigned i = 0; i < S::SUMS; i += 4)
        if (S::half() == 0 && S::query() < queries)
            to[(S::query() * S::SIZE + element_of_sums<S>(i / 4)) / 4] =
                float4{sums.y[i], sums.y[i + 1], sums.y[i + 2], sums.y[i + 3]};
}

} // namespace gb_cuda

#endif
