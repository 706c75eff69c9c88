/* SPDX-License-Identifier: Apache-2.0
 *
 * Cached rows on their way to a block of decode: a ring of stages in shared memory, each for the keys or the
 * values of a round. The copies run ahead of the products through all of the block's pieces, and begin before
 * earlier kernels end, because earlier steps wrote the rows.
 */
#ifndef GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_ROWS_CUH
#define GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_ROWS_CUH

#include "backends/cuda/attention/attention_own.cuh"
#include "backends/cuda/device/tiles.cuh"
#include "backends/cuda/gemm/prepared.cuh"

namespace gb_cuda {

/* How a block's warps share a round of keys: scores of 16 keys over 128 elements each, then some elements of
 * the values of all keys each, of which a lane has neighbouring ones. */
template <unsigned SIZE>
struct decode_shape {
    static constexpr unsigned KEYS = 16 * SPAN_WARPS * 128 / SIZE;
    static constexpr unsigned DEPTHS = SIZE / 128, KEY_TILES = SPAN_WARPS / DEPTHS;
    static constexpr unsigned OF_WARP = SIZE / SPAN_WARPS, OF_LANE = OF_WARP / 8, VALUE_TILES = OF_WARP / 16;
    static constexpr unsigned SCORE_STRIDE = KEYS + 8; /* against bank conflicts */
    static_assert(KEY_TILES * 16 == KEYS && VALUE_TILES * 2 == OF_LANE, "all of a round is taken");
};

/* Eight neighbouring elements as a cache has them: bfloat16 or float32. */
template <unsigned FORM>
struct eight {
    uint4 words[FORM];
};

/* A lane's keys: of units of 32 elements eight of each of two keys. */
template <unsigned FORM>
struct lane_keys {
    eight<FORM> of[4][2];
};

/* A lane's elements of a value in float32. */
template <unsigned SIZE>
struct lane_value {
    uint32_t words[decode_shape<SIZE>::OF_LANE];
};

/* Of a key or value in a stage. */
template <unsigned SIZE, unsigned FORM>
constexpr unsigned STAGED_BYTES = SIZE * 2 * FORM;

/* A stage of the ring: as many bytes whatever the heads' size. */
template <unsigned FORM>
constexpr unsigned STAGE_BYTES = STAGED_BYTES<16 * SPAN_WARPS * 128, FORM>;

/* ---- Rows in a stage ----------------------------------------------------------------------------------- */

/* What the numbers of 16 bytes of a row are changed by, bit by bit, so that lanes that read keys, or values,
 * side by side find them in different banks. Each bit is one of the row's number. */
template <unsigned FORM>
__device__ constexpr unsigned swizzle_of(unsigned row, bool are_keys) {
    if (FORM == AS_TWO_TERMS)
        return are_keys ? row % 2 : row / 4 % 2 + row / 8 % 2 * 4;
    return are_keys ? row % 2 * 4 : row % 2 + row / 4 % 4 * 2;
}

/* Where 16 bytes of a row lie. */
template <unsigned SIZE, unsigned FORM>
__device__ inline unsigned place_in_row(unsigned row, unsigned at, bool are_keys) {
    return row * STAGED_BYTES<SIZE, FORM> + (at ^ swizzle_of<FORM>(row, are_keys)) * 16;
}

/* Eight elements of a key: number `at` of them. */
template <unsigned SIZE, unsigned FORM>
__device__ inline eight<FORM> load_eight(const uint8_t *rows, unsigned row, unsigned at) {
    eight<FORM> loaded;
#pragma unroll
    for (unsigned i = 0; i < FORM; i++)
        loaded.words[i] =
            *reinterpret_cast<const uint4 *>(rows + place_in_row<SIZE, FORM>(row, at * FORM + i, true));
    return loaded;
}

/* The same of a key or a value, to a stage. */
template <unsigned SIZE, unsigned TERMS>
__device__ inline void store_eight(uint8_t *rows, unsigned row, unsigned at, bool is_key,
                                   const eight<TERMS> &stored) {
#pragma unroll
    for (unsigned i = 0; i < TERMS; i++)
        *reinterpret_cast<uint4 *>(rows + place_in_row<SIZE, TERMS>(row, at * TERMS + i, is_key)) =
            stored.words[i];
}

/* BYTES of a value from byte `at` on, which one load takes. */
template <unsigned SIZE, unsigned BYTES>
__device__ inline void load_bytes(const uint8_t *rows, unsigned row, unsigned at, uint32_t *to) {
    const uint8_t *from = rows + place_in_row<SIZE, AS_TWO_TERMS>(row, at / 16, false) + at % 16;
    if constexpr (BYTES == 16) {
        const uint4 four = *reinterpret_cast<const uint4 *>(from);
        to[0] = four.x;
        to[1] = four.y;
        to[2] = four.z;
        to[3] = four.w;
    } else {
        const uint2 two = *reinterpret_cast<const uint2 *>(from);
        to[0] = two.x;
        to[1] = two.y;
    }
}

/* A lane's elements of a value. */
template <unsigned SIZE>
__device__ inline lane_value<SIZE> load_value(const uint8_t *rows, unsigned row) {
    lane_value<SIZE> value;
    constexpr unsigned BYTES = sizeof value, PIECE = BYTES < 16 ? BYTES : 16;
#pragma unroll
    for (unsigned i = 0; i < BYTES / PIECE; i++)
        load_bytes<SIZE, PIECE>(rows, row, threadIdx.x / 4 * BYTES + i * PIECE, &value.words[i * PIECE / 4]);
    return value;
}

/* ---- The token's own row ------------------------------------------------------------------------------- */

/* As the caches have them. */
template <unsigned FORM>
__device__ inline eight<FORM> as_cached(const eight_numbers &of) {
    const float(&x)[8] = of.of;
    eight<FORM> own = {};
    if constexpr (FORM == AS_TWO_TERMS) {
        for (unsigned i = 0; i < 2; i++)
            own.words[i] = uint4{gb_float_bits(x[4 * i]), gb_float_bits(x[4 * i + 1]),
                                 gb_float_bits(x[4 * i + 2]), gb_float_bits(x[4 * i + 3])};
    } else {
        own.words[0] =
            uint4{pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3]), pack_bf16(x[4], x[5]), pack_bf16(x[6], x[7])};
    }
    return own;
}

/* They go to the caches, */
template <unsigned SIZE, unsigned FORM>
__device__ inline void append_own(const attention &a, const query_tile &t, unsigned position,
                                  const eight<FORM> &own) {
    const own_place<SIZE> place;
    if (!place.is_there)
        return;
    const cache &c = place.is_key ? a.keys : a.values;
    const unsigned row = position % (unsigned)c.capacity;
    uint8_t *head = c.data + (size_t)a.slots[t.first] * c.slot_bytes + row * row_bytes(c) +
                    t.kv_head * STAGED_BYTES<SIZE, FORM>;
    reinterpret_cast<eight<FORM> *>(head)[place.number] = own;
}

/* and to a stage's row, by the threads that have the key, or the value. */
template <unsigned SIZE, unsigned FORM>
__device__ inline void store_own(uint8_t *rows, unsigned row, bool is_key, const eight<FORM> &own) {
    const own_place<SIZE> place;
    if (place.is_there && place.is_key == is_key)
        store_eight<SIZE, FORM>(rows, row, place.number, is_key, own);
}

/* ---- The ring ------------------------------------------------------------------------------------------ */

/* What is copied next. All threads of the block go through it together. */
template <unsigned SIZE, unsigned FORM>
struct row_copies {
    block_work work;
    positions_left at;
    unsigned own;                 /* the position whose row is not in the cache yet, or NO_POSITION */
    const uint8_t *keys, *values; /* of the kv head in the slot */
    unsigned row;                 /* of position at.j, in the ring of the cache */
    unsigned stage;               /* the next one */
    bool are_values;
    unsigned stride;           /* bytes from a row of the cache to the next one */
    unsigned first;            /* of a round's rows the thread's first */
    unsigned mine;             /* from a round's first row to the thread's bytes */
    unsigned of_key, of_value; /* where in a stage those of its first row lie */

    __device__ explicit row_copies(const block_work &of)
        : work(of), at(), own(NO_POSITION), keys(nullptr), values(nullptr), row(0), stage(0),
          are_values(false) {
        stride = (unsigned)row_bytes(work.a->keys);
        first = threadIdx.x / IN_ROW;
        mine = first * stride + threadIdx.x % IN_ROW * 16;
        of_key = place_in_row<SIZE, FORM>(first, threadIdx.x % IN_ROW, true);
        of_value = place_in_row<SIZE, FORM>(first, threadIdx.x % IN_ROW, false);
        take_piece();
    }

    /* Goes to the next piece, if there is one. */
    __device__ void take_piece() {
        const piece p = work.take();
        at = positions_left{0, 0};
        if (p.first == p.end)
            return;
        const attention &a = *work.a;
        const size_t slot = (size_t)a.slots[p.token],
                     head = heads_of(a, work.across).kv_head * (size_t)STAGED_BYTES<SIZE, FORM>;
        at = positions_of(p, decode_shape<SIZE>::KEYS);
        own = work.appends && at.end == p.spans.end ? at.end - 1 : NO_POSITION;
        keys = a.keys.data + slot * a.keys.slot_bytes + head;
        values = a.values.data + slot * a.values.slot_bytes + head;
        row = at.j < (unsigned)a.keys.capacity ? at.j : at.j % (unsigned)a.keys.capacity;
    }

    /* Begins the next copies, to the next stage of so many. */
    __device__ void begin_next(uint8_t *ring, unsigned stages) {
        uint8_t *to = ring + stage * STAGE_BYTES<FORM>;
        if (at.j < at.end) {
            if (are_values) {
                copy_rows<false>(values, to);
                next_round();
            } else {
                copy_rows<true>(keys, to);
            }
            are_values = !are_values;
        }
        commit_copies();
        stage = stage + 1 < stages ? stage + 1 : 0;
    }

    template <bool ARE_KEYS>
    __device__ void copy_rows(const uint8_t *head, uint8_t *to) const {
        constexpr unsigned KEYS = decode_shape<SIZE>::KEYS;
        if (row + KEYS > (unsigned)work.a->keys.capacity)
            copy_around_end<ARE_KEYS>(head, to);
        else if (at.j + KEYS > at.end || at.j + KEYS > own)
            copy_round<ARE_KEYS, false>(head + (size_t)row * stride, to);
        else
            copy_round<ARE_KEYS, true>(head + (size_t)row * stride, to);
    }

    /* A thread's bytes of one of its rows: as many rows are copied at a time. */
    static constexpr unsigned IN_ROW = STAGED_BYTES<SIZE, FORM> / 16, AT_ONCE = SPAN_THREADS / IN_ROW;

    /* Where in a stage the thread's bytes lie of its row number i, but for what rows before it take. */
    template <bool ARE_KEYS>
    __device__ unsigned place_of(unsigned i) const {
        return (ARE_KEYS ? of_key : of_value) ^ swizzle_of<FORM>(i * AT_ONCE, ARE_KEYS) * 16;
    }

    /* IS_WHOLE: the caches have all of the round's rows. Else those past the end are zeros, and the token's
     * own one is left to store_own. */
    template <bool ARE_KEYS, bool IS_WHOLE>
    __device__ void copy_round(const uint8_t *rows, uint8_t *to) const {
        copy_from<ARE_KEYS, IS_WHOLE, 0>(rows + mine, to, at.end - at.j - first, own - at.j - first);
    }

    /* The thread's rows from number I on, of which `from` is the first, each a constant from the place
     * before. left, left_out: how many rows behind its first one the end and the token's own are; less than
     * none is many. */
    template <bool ARE_KEYS, bool IS_WHOLE, unsigned I>
    __device__ void copy_from(const uint8_t *from, uint8_t *to, unsigned left, unsigned left_out) const {
        constexpr unsigned BEFORE = I * AT_ONCE;
        uint8_t *place = to + place_of<ARE_KEYS>(I);
        if constexpr (IS_WHOLE)
            copy_16_behind<BEFORE * STAGED_BYTES<SIZE, FORM>>(place, from);
        else
            copy_16_behind<BEFORE * STAGED_BYTES<SIZE, FORM>>(place, from, (int)BEFORE < (int)left,
                                                              BEFORE != left_out);
        if constexpr (BEFORE + AT_ONCE < decode_shape<SIZE>::KEYS)
            copy_from<ARE_KEYS, IS_WHOLE, I + 1>(from + AT_ONCE * stride, to, left, left_out);
    }

    /* The same where rows go on at the begin of the cache. */
    template <bool ARE_KEYS>
    __device__ void copy_around_end(const uint8_t *head, uint8_t *to) const {
        const unsigned capacity = (unsigned)work.a->keys.capacity;
#pragma unroll 1
        for (unsigned i = 0; i < decode_shape<SIZE>::KEYS / AT_ONCE; i++) {
            const unsigned key = first + i * AT_ONCE;
            const int begin = (int)(row + key < capacity ? row : row - capacity);
            const uint8_t *from = head + begin * (long long)stride + mine;
            if (at.j + key != own)
                copy_16(to + i * AT_ONCE * STAGED_BYTES<SIZE, FORM> + place_of<ARE_KEYS>(i),
                        from + i * AT_ONCE * (size_t)stride, at.j + key < at.end);
        }
    }

    __device__ void next_round() {
        constexpr unsigned KEYS = decode_shape<SIZE>::KEYS;
        const unsigned capacity = (unsigned)work.a->keys.capacity;
        at.j += KEYS;
        row += KEYS;
        row -= row >= capacity ? capacity : 0;
        if (at.j >= at.end)
            take_piece();
    }
};

/* Waits for the thread's copies but those of the last `left` calls of begin_next. With six stages that is
 * mostly 4 or 5, which are compared first. */
__device__ inline void wait_for_rows(unsigned left) {
    if (left == 4)
        return wait_for_copies<4>();
    if (left == 5)
        return wait_for_copies<5>();
    switch (left) {
    case 0:
        return wait_for_copies<0>();
    case 1:
        return wait_for_copies<1>();
    case 2:
        return wait_for_copies<2>();
    default:
        return wait_for_copies<3>();
    }
}

} // namespace gb_cuda

#endif
