/* SPDX-License-Identifier: Apache-2.0
 *
 * A round of keys of a decode token over caches of 8- or 4-bit codes (attention_rows.cuh), whose products are
 * of integers. Codes enter them as they are; a query, and a query's weights for a group of elements, are
 * numbers of 16 bits times a step, each as a high and a low byte in rows q and q + 8 of the tensor cores'
 * first matrix. Lane l has the scores and the softmax of query l / 4, as every warp has them.
 */
#ifndef GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_CODES_CUH
#define GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_CODES_CUH

#include "backends/cuda/attention/attention_round.cuh"

namespace gb_cuda {

/* How a block's warps share a round: scores of some keys over at most 256 elements each, then some elements
 * of the values of all keys, as decode_shape has them. */
template <unsigned SIZE>
struct code_shape {
    static constexpr unsigned KEYS = decode_shape<SIZE>::KEYS, DEPTHS = SIZE > 256 ? 2 : 1;
    static constexpr unsigned UNITS = SIZE / DEPTHS / GB_CODE_GROUP, OF_WARP = KEYS * DEPTHS / SPAN_WARPS;
    static constexpr unsigned SCORE_STRIDE = KEYS + 16; /* against bank conflicts */
    static constexpr unsigned OF_LANE = KEYS / 4;       /* of a query's keys: 16 i + 4 (l mod 4) .. */
    static constexpr unsigned GROUPS = SIZE > 256 ? SIZE / 256 : 1, EACH = SIZE < 256 ? 2 : 4; /* of values */
    static_assert(OF_WARP % 8 == 0 && SIZE == GROUPS * EACH * 8 * SPAN_WARPS, "all of a round is taken");
};

template <unsigned SIZE>
struct code_memory {
    using shape = code_shape<SIZE>;

    uint4 query[SIZE / GB_CODE_GROUP][WARP]; /* as the tensor cores take it */
    float step[SPAN_QUERIES];
    float scores[shape::DEPTHS][SPAN_QUERIES][shape::SCORE_STRIDE];
};

/* Codes of 4 bits are multiplied as 16 times what they are, in the upper half of a byte. */
template <unsigned FORM>
constexpr float CODE_STEP = FORM == AS_Q4 ? 0.0625f : 1.0f;

/* Those in the upper halves. */
__device__ inline uint32_t upper_codes(uint32_t bytes) {
    return mask_and_flip<0xf0f0f0f0, 0x80808080>(bytes);
}

/* ---- Numbers of 16 bits -------------------------------------------------------------------------------- */

/* The largest number that is two signed bytes, less what division may be off by. */
constexpr float MOST_STEPS = 32638;

/* x, a whole number after rounding, in the lower half of a word. */
__device__ inline uint32_t steps_of(float x, float per_step) {
    return gb_float_bits(fmaf(x, per_step, 0x1.8p+23f));
}

/* The high bytes of four numbers, and the low ones, both signed. */
__device__ inline uint2 split_steps(const uint32_t x[4]) {
    const uint32_t low =
        select_bytes<0x5410>(select_bytes<0x0040>(x[0], x[1]), select_bytes<0x0040>(x[2], x[3]));
    uint32_t raised[4];
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
        raised[i] = x[i] + 128;
    return uint2{select_bytes<0x5410>(select_bytes<0x0051>(raised[0], raised[1]),
                                      select_bytes<0x0051>(raised[2], raised[3])),
                 low};
}

/* Steps for one, where the largest of some numbers is so large; none where it is nothing beside others. */
__device__ inline float per_step_of(float largest) {
    return largest < 0x1p-100f ? 0.0f : approximate_reciprocal(largest) * MOST_STEPS;
}

/* What a product of both bytes' sums is. */
__device__ inline float join_sums(int32_t high, int32_t low) {
    return (float)(high * 256 + low);
}

/* The largest of the four lanes that have a query, or their sum. */
__device__ inline float query_max(float x) {
    x = largest_or_nan(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return largest_or_nan(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ inline float query_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/* ---- Scores -------------------------------------------------------------------------------------------- */

/* Where four elements of a unit lie among those of a lane's product: of its four lanes the number, and which
 * half. */
struct product_place {
    unsigned lane, half;
};

template <unsigned FORM>
__device__ inline product_place place_of_four(unsigned number) {
    return FORM == AS_Q8 ? product_place{number / 2, number % 2} : product_place{number % 4, number / 4};
}

/* The queries, of which a warp has one. What is no number makes all of a query's scores none. */
template <unsigned SIZE, unsigned FORM>
__device__ inline void stage_code_queries(const attention &a, const query_tile &t,
                                          code_memory<SIZE> &shared) {
    constexpr unsigned TIMES = SIZE > 256 ? SIZE / 256 : 1;
    const unsigned q = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    float x[TIMES][8], largest = 0;
#pragma unroll
    for (unsigned i = 0; i < TIMES; i++) {
        load_query<SIZE>(a, t, q, i * WARP + lane, x[i]);
#pragma unroll
        for (unsigned e = 0; e < 8; e++)
            largest = largest_or_nan(largest, fabsf(x[i][e]));
    }
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        largest = largest_or_nan(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
    const float per_step = per_step_of(largest);
    if (lane == 0)
        shared.step[q] = largest * (CODE_STEP<FORM> / MOST_STEPS);
#pragma unroll
    for (unsigned i = 0; i < TIMES; i++)
#pragma unroll
        for (unsigned h = 0; h < 2; h++) {
            const unsigned number = i * WARP + lane;
            const product_place place = place_of_four<FORM>(number % 4 * 2 + h);
            uint32_t steps[4];
#pragma unroll
            for (unsigned e = 0; e < 4; e++)
                steps[e] = steps_of(x[i][4 * h + e], per_step);
            if (SIZE / 8 >= WARP || number < SIZE / 8)
                reinterpret_cast<uint2 *>(&shared.query[number / 4][q * 4 + place.lane])[place.half] =
                    split_steps(steps);
        }
}

/* The lane's codes of a key's unit. */
template <unsigned SIZE, unsigned FORM>
__device__ inline uint2 load_key_codes(const uint8_t *rows, unsigned key, unsigned unit) {
    const unsigned lane = threadIdx.x % 4;
    if constexpr (FORM == AS_Q8) {
        const unsigned place = place_in_row<SIZE, FORM>(key, unit * 2 + lane / 2, true);
        return *reinterpret_cast<const uint2 *>(rows + place + lane % 2 * 8);
    } else {
        const unsigned place = place_in_row<SIZE, FORM>(key, unit, true);
        const uint32_t both = *reinterpret_cast<const uint32_t *>(rows + place + lane * 4);
        return uint2{upper_codes(both << 4), upper_codes(both)};
    }
}

/* The first of a row's scales in a stage. */
template <unsigned SIZE, unsigned FORM>
__device__ inline const uint16_t *scales_of_row(const uint8_t *rows, unsigned row) {
    return reinterpret_cast<const uint16_t *>(rows + decode_shape<SIZE>::KEYS * STAGED_BYTES<SIZE, FORM> +
                                              row * SCALE_BYTES<SIZE>);
}

/* Scales of a key's units from `first` on, two in a word. */
template <unsigned SIZE, unsigned FORM>
__device__ inline void load_scales(const uint8_t *rows, unsigned key, unsigned first,
                                   uint32_t to[code_shape<SIZE>::UNITS / 2]) {
    const uint16_t *scales = scales_of_row<SIZE, FORM>(rows, key) + first;
    if constexpr (code_shape<SIZE>::UNITS == 8) {
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
template <unsigned SIZE, unsigned FORM>
__device__ inline void score_eight_keys(const uint8_t *rows, unsigned key, unsigned depth,
                                        code_memory<SIZE> &shared) {
    constexpr unsigned UNITS = code_shape<SIZE>::UNITS;
    const unsigned lane = threadIdx.x % WARP;
    uint32_t scales[2][UNITS / 2];
    float scores[2] = {};
#pragma unroll
    for (unsigned j = 0; j < 2; j++)
        load_scales<SIZE, FORM>(rows, key + lane % 4 * 2 + j, depth * UNITS, scales[j]);
#pragma unroll
    for (unsigned u = 0; u < UNITS; u++) {
        const uint2 codes = load_key_codes<SIZE, FORM>(rows, key + lane / 4, depth * UNITS + u);
        const uint4 four = shared.query[depth * UNITS + u][lane];
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

template <unsigned SIZE, unsigned FORM>
__device__ inline void score_codes(const uint8_t *rows, code_memory<SIZE> &shared) {
    using shape = code_shape<SIZE>;
    const unsigned warp = threadIdx.x / WARP, depth = warp % shape::DEPTHS,
                   first = warp / shape::DEPTHS * shape::OF_WARP;
#pragma unroll
    for (unsigned i = 0; i < shape::OF_WARP; i += 8)
        score_eight_keys<SIZE, FORM>(rows, first + i, depth, shared);
}

/* ---- Weights ------------------------------------------------------------------------------------------- */

/* A lane's weights of a round, and what the sums so far count for beside them. */
template <unsigned SIZE>
struct code_weights {
    float of[code_shape<SIZE>::OF_LANE];
    float correction;
};

/* Keys from `count` on are none. In so_far the sum is a lane's part. */
template <unsigned SIZE>
__device__ inline code_weights<SIZE> weigh_codes(const code_memory<SIZE> &shared, unsigned count,
                                                 softmax &so_far) {
    using shape = code_shape<SIZE>;
    const unsigned lane = threadIdx.x % WARP;
    code_weights<SIZE> weights;
    float largest = so_far.largest, sums[4] = {};
#pragma unroll
    for (unsigned d = 0; d < shape::DEPTHS; d++)
#pragma unroll
        for (unsigned i = 0; i < shape::OF_LANE; i += 4) {
            const float4 four =
                *reinterpret_cast<const float4 *>(&shared.scores[d][lane / 4][4 * i + lane % 4 * 4]);
            const float loaded[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (unsigned k = 0; k < 4; k++)
                weights.of[i + k] = d == 0 ? loaded[k] : weights.of[i + k] + loaded[k];
        }
    if (count < shape::KEYS)
#pragma unroll
        for (unsigned i = 0; i < shape::OF_LANE; i++)
            weights.of[i] = i / 4 * 16 + lane % 4 * 4 + i % 4 < count ? weights.of[i] : -INFINITY;
#pragma unroll
    for (unsigned i = 0; i < shape::OF_LANE; i++)
        largest = largest_or_nan(largest, weights.of[i]);
    largest = query_max(largest);
    weights.correction = exp2_fast(so_far.largest - largest);
#pragma unroll
    for (unsigned i = 0; i < shape::OF_LANE; i++) {
        weights.of[i] = exp2_fast(weights.of[i] - largest);
        sums[i % 4] += weights.of[i];
    }
    so_far.sum = so_far.sum * weights.correction + ((sums[0] + sums[1]) + (sums[2] + sums[3]));
    so_far.largest = largest;
    return weights;
}

/* As they count for a group of the values' elements: in steps, of which the largest has the most, and so that
 * many small ones beside a large one whose value is nothing are not lost. */
template <unsigned SIZE>
struct group_weights {
    uint32_t words[code_shape<SIZE>::OF_LANE / 8][4]; /* as the tensor cores take those of 32 keys */
    float step;
};

template <unsigned SIZE, unsigned FORM>
__device__ inline group_weights<SIZE> weights_of_group(const uint8_t *rows, unsigned group,
                                                       const code_weights<SIZE> &weights) {
    using shape = code_shape<SIZE>;
    group_weights<SIZE> found;
    float products[shape::OF_LANE], largest = 0;
#pragma unroll
    for (unsigned i = 0; i < shape::OF_LANE; i++) {
        const unsigned key = i / 4 * 16 + threadIdx.x % 4 * 4 + i % 4;
        products[i] = weights.of[i] * low_half(scales_of_row<SIZE, FORM>(rows, key)[group]);
        largest = largest_or_nan(largest, fabsf(products[i]));
    }
    largest = query_max(largest);
    const float per_step = per_step_of(largest);
    found.step = largest * (CODE_STEP<FORM> / MOST_STEPS);
#pragma unroll
    for (unsigned i = 0; i < shape::OF_LANE; i += 4) {
        uint32_t steps[4];
#pragma unroll
        for (unsigned k = 0; k < 4; k++)
            steps[k] = steps_of(products[i + k], per_step);
        const uint2 both = split_steps(steps);
        found.words[i / 8][i / 4 % 2 * 2] = both.x;
        found.words[i / 8][i / 4 % 2 * 2 + 1] = both.y;
    }
    return found;
}

/* ---- Values -------------------------------------------------------------------------------------------- */

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

/* The lane's codes of four keys' values: elements EACH (l / 4) .. of the warp's, and words of a key each
 * become words of an element each. */
template <unsigned SIZE, unsigned FORM>
__device__ inline void load_value_codes(const uint8_t *rows, unsigned key, unsigned group,
                                        uint32_t to[code_shape<SIZE>::EACH]) {
    constexpr unsigned EACH = code_shape<SIZE>::EACH;
    const unsigned column = threadIdx.x % WARP / 4, warp = threadIdx.x / WARP;
    const unsigned element = EACH == 2 ? warp % 2 * 16 + column * 2 : column * 4; /* of the group */
    uint32_t words[4];
#pragma unroll
    for (unsigned k = 0; k < 4; k++) {
        const unsigned at = FORM == AS_Q8 ? group * 32 + element : group * 16 + element % 16;
        load_bytes<SIZE, FORM, EACH>(rows, key + k, at, &words[k]);
    }
    transpose_bytes<EACH>(words, to);
    if constexpr (FORM == AS_Q4)
#pragma unroll
        for (unsigned e = 0; e < EACH; e++)
            to[e] = upper_codes(element < 16 ? to[e] << 4 : to[e]);
}

/* sums = correction * sums + weights * values, of a group's elements. */
template <unsigned SIZE, unsigned FORM>
__device__ inline void add_group_of_values(const uint8_t *rows, unsigned number,
                                           const code_weights<SIZE> &weights, lane_sums<SIZE> &sums) {
    using shape = code_shape<SIZE>;
    const unsigned warp = threadIdx.x / WARP,
                   group = shape::EACH == 2 ? warp / 2 : warp * shape::GROUPS + number;
    const group_weights<SIZE> of_group = weights_of_group<SIZE, FORM>(rows, group, weights);
    int32_t products[shape::EACH][4] = {};
#pragma unroll
    for (unsigned key = 0; key < shape::KEYS; key += 32) {
        uint32_t codes[2][shape::EACH];
#pragma unroll
        for (unsigned h = 0; h < 2; h++)
            load_value_codes<SIZE, FORM>(rows, key + h * 16 + threadIdx.x % 4 * 4, group, codes[h]);
#pragma unroll
        for (unsigned e = 0; e < shape::EACH; e++)
            multiply_add_signed_bytes(products[e], of_group.words[key / 32], codes[0][e], codes[1][e]);
    }
#pragma unroll
    for (unsigned i = 0; i < 2 * shape::EACH; i++) {
        const unsigned column = i / shape::EACH, e = i % shape::EACH;
        float &sum = sums.y[(number * 2 * shape::EACH + i) / 4][i % 4];
        sum = fmaf(join_sums(products[e][column], products[e][column + 2]), of_group.step,
                   sum * weights.correction);
    }
}

/* Of a lane's sums, which are all of query l / 4: the first of the four elements of y[i]. */
template <unsigned SIZE>
__device__ inline unsigned element_of_sums(unsigned i) {
    using shape = code_shape<SIZE>;
    const unsigned lane = threadIdx.x % 4, warp = threadIdx.x / WARP;
    return warp * decode_shape<SIZE>::OF_WARP + i / 2 * GB_CODE_GROUP + lane * 2 * shape::EACH + i % 2 * 4;
}

/* The same of all groups of the warp. */
template <unsigned SIZE, unsigned FORM>
__device__ inline void add_code_values(const uint8_t *rows, const code_weights<SIZE> &weights,
                                       lane_sums<SIZE> &sums) {
#pragma unroll
    for (unsigned i = 0; i < code_shape<SIZE>::GROUPS; i++)
        add_group_of_values<SIZE, FORM>(rows, i, weights, sums);
}

} // namespace gb_cuda

#endif
