/* SPDX-License-Identifier: Apache-2.0
 *
 * A round of keys of a decode token, from shared memory (attention_rows.cuh): scores, weights and the sum of
 * values for up to eight query heads of a kv head. Queries and weights enter the products as two bfloat16
 * terms, high + low, which keep 16 bits. Cached rows are bfloat16, or float32, which enter as two terms as
 * well, without the product of the low ones. Those of codes: attention_codes.cuh.
 */
#ifndef GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_ROUND_CUH
#define GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_ROUND_CUH

#include "backends/cuda/attention/attention_rows.cuh"
#include "backends/cuda/device/mma.cuh"
#include "backends/cuda/device/quick_math.cuh"
#include "backends/cuda/gemm/int8/hadamard.cuh"

namespace gb_cuda {

constexpr unsigned SPAN_QUERIES = 8, SPLITS = 2;

/* A softmax so far: the largest score, and the sum of weights beside it. */
struct softmax {
    float largest, sum;
};

/* A query's scores, of each part of the elements; its weights, in one term or two, lie where its first scores
 * were. */
template <unsigned SIZE>
struct round_memory {
    using shape = decode_shape<SIZE>;

    uint4 query[SIZE / 32][SPLITS][WARP]; /* as the tensor cores take it */
    float scores[shape::DEPTHS][SPAN_QUERIES][shape::SCORE_STRIDE];
    float correction[SPAN_QUERIES]; /* of the span's sums so far */

    __device__ uint16_t *weights(unsigned term, unsigned q) {
        return reinterpret_cast<uint16_t *>(scores[0][q]) + term * shape::KEYS;
    }
    __device__ const uint16_t *weights(unsigned term, unsigned q) const {
        return reinterpret_cast<const uint16_t *>(scores[0][q]) + term * shape::KEYS;
    }
};

/* ---- Reading shared memory ----------------------------------------------------------------------------- */

/* Of the warp's keys number lane / 4 and 8 more: elements 32 u + 8 (lane mod 4) .. of each unit u of 32 of
 * the warp's elements. */
template <unsigned SIZE, unsigned FORM>
__device__ inline void load_keys(const uint8_t *rows, lane_keys<FORM> &keys) {
    using shape = decode_shape<SIZE>;
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
    for (unsigned i = 0; i < 2; i++) {
        const unsigned row = warp % shape::KEY_TILES * 16 + lane / 4 + 8 * i;
#pragma unroll
        for (unsigned u = 0; u < 4; u++)
            keys.of[u][i] =
                load_eight<SIZE, FORM>(rows, row, warp / shape::KEY_TILES * 16 + 4 * u + lane % 4);
    }
}

/* ---- Products ------------------------------------------------------------------------------------------ */

/* Eight numbers as words of their terms. */
__device__ inline void split_eight(const float x[8], uint32_t words[SPLITS][4]) {
#pragma unroll
    for (unsigned w = 0; w < 4; w++) {
        words[0][w] = pack_bf16(x[2 * w], x[2 * w + 1]);
        words[1][w] = pack_rest(words[0][w], x[2 * w], x[2 * w + 1]);
    }
}

/* Where eight elements are of the tile's query number q, from element 8 `number` on; NULL where there is
 * none. */
template <unsigned SIZE>
__device__ inline const float *find_query(const attention &a, const query_tile &t, unsigned q,
                                          unsigned number) {
    const bool is_there =
        q < count_of(t) && (SIZE / 8 >= WARP || number < SIZE / 8) && is_own_half(a, t.head + q, number * 8);
    return is_there ? a.query + place_of_element(a, t.first, t.head + q, number * 8) : nullptr;
}

/* They scaled, and rotated as the keys are. A warp has one query. */
__device__ inline void scale_query(const attention &a, eight_numbers &x) {
    rotate_eight(x.of, a.keys.rotation);
    const float scale = a.scale * LOG2_E; /* weights are powers of 2 */
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        x.of[i] *= scale;
}

/* A lane's elements of its warp's query. */
template <unsigned SIZE>
struct lane_query {
    static constexpr unsigned EIGHTS = SIZE / 8 > WARP ? SIZE / 8 / WARP : 1;
    eight_numbers of[EIGHTS];
};

/* The queries as the second matrix of multiply_add: lane l has of query l / 4 elements 8 (l mod 4) .. of each
 * unit of 32. */
template <unsigned SIZE>
__device__ inline void stage_query(const attention &a, lane_query<SIZE> query, round_memory<SIZE> &shared) {
    const unsigned q = threadIdx.x / WARP;
#pragma unroll
    for (unsigned i = 0; i < lane_query<SIZE>::EIGHTS; i++) {
        const unsigned number = i * WARP + threadIdx.x % WARP;
        scale_query(a, query.of[i]);
        uint32_t words[SPLITS][4];
        split_eight(query.of[i].of, words);
#pragma unroll
        for (unsigned s = 0; s < SPLITS; s++)
            if (SIZE / 8 >= WARP || number < SIZE / 8)
                shared.query[number / 4][s][q * 4 + number % 4] =
                    uint4{words[s][0], words[s][1], words[s][2], words[s][3]};
    }
}

/* Numbers 2 w and 2 w + 1 of the words of eight. */
template <unsigned TERMS>
__device__ inline uint2 two_words(const eight<TERMS> &of, unsigned w) {
    const uint4 four = of.words[w / 2];
    return w % 2 ? uint2{four.z, four.w} : uint2{four.x, four.y};
}

/* How many terms of a cached number a product takes. */
template <unsigned FORM>
constexpr unsigned TERMS_OF = FORM == AS_TWO_TERMS ? 2 : 1;

/* Elements 4 h .. 4 h + 3 of keys r and r + 8 as the tensor cores' first matrix. */
template <unsigned FORM>
__device__ inline void take_keys(const eight<FORM> keys[2], unsigned h, uint32_t to[TERMS_OF<FORM>][4]) {
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        if constexpr (FORM == AS_TWO_TERMS) {
            const uint2 two = two_words(keys[i % 2], 2 * h + i / 2);
            const float low = gb_float_from_bits(two.x), high = gb_float_from_bits(two.y);
            to[0][i] = pack_bf16(low, high);
            to[1][i] = pack_rest(to[0][i], low, high);
        } else {
            const uint2 two = two_words(keys[i % 2], h);
            to[0][i] = i / 2 ? two.y : two.x;
        }
    }
}

/* sums[s] += the keys' unit u * what rounding left s times of the queries. */
template <unsigned SIZE, unsigned FORM>
__device__ inline void score_unit(const eight<FORM> keys[2], const uint4 (*query)[WARP],
                                  float sums[SPLITS][4]) {
    constexpr unsigned TERMS = TERMS_OF<FORM>;
    uint32_t first[TERMS][4], second[TERMS][4];
    take_keys<FORM>(keys, 0, first);
    take_keys<FORM>(keys, 1, second);
#pragma unroll
    for (unsigned s = 0; s < SPLITS; s++) {
        const uint4 four = query[s][threadIdx.x % WARP];
#pragma unroll
        for (unsigned term = 0; term < TERMS && s + term < SPLITS; term++) {
            multiply_add(sums[s + term], first[term], four.x, four.y);
            multiply_add(sums[s + term], second[term], four.z, four.w);
        }
    }
}

/* What the warp's part of a round's keys gives to the scores of its 16 keys; of keys from `count` on there
 * are none. */
template <unsigned SIZE, unsigned FORM>
__device__ inline void score(const uint8_t *rows, unsigned count, round_memory<SIZE> &shared) {
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const unsigned depth = warp / decode_shape<SIZE>::KEY_TILES, tile = warp % decode_shape<SIZE>::KEY_TILES;
    if (tile * 16 >= count)
        return;
    lane_keys<FORM> keys;
    load_keys<SIZE, FORM>(rows, keys);
    float sums[SPLITS][4] = {};
#pragma unroll
    for (unsigned u = 0; u < 4; u++)
        score_unit<SIZE, FORM>(keys.of[u], shared.query[depth * 4 + u], sums);
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
        shared.scores[depth][lane % 4 * 2 + i % 2][tile * 16 + lane / 4 + i / 2 * 8] =
            sums[0][i] + sums[1][i];
}

/* Turns a round's scores of the warp's query into weights; keys from `count` on are none. In so_far the sum
 * is a lane's part. */
template <unsigned SIZE>
__device__ inline void weigh(round_memory<SIZE> &shared, unsigned count, softmax &so_far) {
    constexpr unsigned KEYS = decode_shape<SIZE>::KEYS;
    const unsigned lane = threadIdx.x % WARP, q = threadIdx.x / WARP;
    float scores[KEYS / WARP], largest = so_far.largest, sum = 0;
#pragma unroll
    for (unsigned i = 0; i < KEYS / WARP; i++) {
        const unsigned j = lane + i * WARP;
        scores[i] = shared.scores[0][q][j];
#pragma unroll
        for (unsigned d = 1; d < decode_shape<SIZE>::DEPTHS; d++)
            scores[i] += shared.scores[d][q][j];
        scores[i] = j < count ? scores[i] : -INFINITY;
        largest = larger(scores[i], largest);
    }
    __syncwarp(); /* weights are written where other lanes read scores */
    largest = warp_max(largest);
    const float correction = exp2_fast(so_far.largest - largest);
#pragma unroll
    for (unsigned i = 0; i < KEYS / WARP; i++) {
        const unsigned j = lane + i * WARP;
        const float weight = exp2_fast(scores[i] - largest);
        const uint32_t high = pack_bf16(weight, 0);
        shared.weights(0, q)[j] = (uint16_t)high;
        shared.weights(1, q)[j] = (uint16_t)pack_bf16(weight - low_bf16(high), 0);
        sum += weight;
    }
    so_far.sum = so_far.sum * correction + sum;
    so_far.largest = largest;
    if (lane == 0)
        shared.correction[q] = correction;
}

/* A thread's sums of values: in y[i] those of an element and of queries 2 (lane mod 4) and the next, then the
 * same of a second element. */
template <unsigned SIZE>
struct lane_sums {
    float y[decode_shape<SIZE>::VALUE_TILES][4];
};

/* The elements of y[i]: of bfloat16 as load_matrices gives them, otherwise neighbours of one load. */
template <unsigned SIZE, unsigned FORM>
__device__ inline unsigned element_of_sums(unsigned i, bool is_second) {
    using shape = decode_shape<SIZE>;
    const unsigned first = threadIdx.x / WARP * shape::OF_WARP, column = threadIdx.x % WARP / 4;
    return FORM == AS_TWO_TERMS ? first + column * shape::OF_LANE + 2 * i + is_second
                                : first + 16 * i + column + 8 * is_second;
}

/* Values of 16 keys as the tensor cores' first matrix: elements by keys, which a lane has four of. */
template <unsigned SIZE, unsigned FORM>
struct value_tiles {
    using shape = decode_shape<SIZE>;

    uint32_t of[shape::VALUE_TILES][TERMS_OF<FORM>][4];

    /* Those of keys 4 (lane mod 4) .., of `key` and behind. */
    __device__ void load(const uint8_t *rows, unsigned key) {
        if constexpr (FORM == AS_TWO_TERMS)
            load_two_terms(rows, key + threadIdx.x % 4 * 4);
        else
            load_bf16(rows, key);
    }

    __device__ void load_two_terms(const uint8_t *rows, unsigned key) {
        lane_value<SIZE> values[4];
#pragma unroll
        for (unsigned k = 0; k < 4; k++)
            values[k] = load_value<SIZE>(rows, key + k);
#pragma unroll
        for (unsigned n = 0; n < shape::VALUE_TILES * 4; n++) {
            const unsigned i = n / 4, k = n % 4 / 2 * 2, e = n % 2;
            const float low = gb_float_from_bits(values[k].words[2 * i + e]),
                        high = gb_float_from_bits(values[k + 1].words[2 * i + e]);
            of[i][0][k + e] = pack_bf16(low, high);
            of[i][1][k + e] = pack_rest(of[i][0][k + e], low, high);
        }
    }

    /* A lane names a row of its eight elements: of the keys that weights lie beside, two by two. */
    __device__ void load_bf16(const uint8_t *rows, unsigned key) {
        const unsigned lane = threadIdx.x % WARP, row = lane % 8 / 2 * 4 + lane % 2 + lane / 16 * 2;
        const unsigned eighth = threadIdx.x / WARP * (shape::OF_WARP / 8) + lane / 8 % 2;
        const unsigned place = place_in_row<SIZE, AS_BF16>(row, eighth, false);
#pragma unroll
        for (unsigned i = 0; i < shape::VALUE_TILES; i++)
            load_matrices<true>(of[i][0], reinterpret_cast<const uint16_t *>(
                                              rows + key * STAGED_BYTES<SIZE, AS_BF16> + (place ^ i * 32)));
    }
};

/* sums = correction * sums + weights * values, of the warp's elements. rows: of the round's values. */
template <unsigned SIZE, unsigned FORM>
__device__ inline void add_values(const uint8_t *rows, const round_memory<SIZE> &shared,
                                  lane_sums<SIZE> &sums) {
    using shape = decode_shape<SIZE>;
    constexpr unsigned TERMS = TERMS_OF<FORM>;
    const unsigned lane = threadIdx.x % WARP;
    const float corrections[2] = {shared.correction[lane % 4 * 2], shared.correction[lane % 4 * 2 + 1]};
#pragma unroll
    for (unsigned i = 0; i < shape::VALUE_TILES; i++)
#pragma unroll
        for (unsigned c = 0; c < 4; c++)
            sums.y[i][c] *= corrections[c % 2];
#pragma unroll
    for (unsigned key = 0; key < shape::KEYS; key += 16) {
        value_tiles<SIZE, FORM> values;
        uint2 weights[SPLITS];
        values.load(rows, key);
#pragma unroll
        for (unsigned s = 0; s < SPLITS; s++)
            weights[s] = *reinterpret_cast<const uint2 *>(shared.weights(s, lane / 4) + key + lane % 4 * 4);
#pragma unroll
        for (unsigned i = 0; i < shape::VALUE_TILES; i++)
#pragma unroll
            for (unsigned s = 0; s < SPLITS; s++)
#pragma unroll
                for (unsigned term = 0; term < TERMS && s + term < SPLITS; term++)
                    multiply_add(sums.y[i], values.of[i][term], weights[s].x, weights[s].y);
    }
}

} // namespace gb_cuda

#endif
