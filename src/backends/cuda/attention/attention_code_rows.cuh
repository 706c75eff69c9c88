/* SPDX-License-Identifier: Apache-2.0
 *
 * Cached rows of codes on their way to a block of decode, as attention_rows.cuh says it of floats: a round's
 * keys and its values are two stages, which are copied together.
 */
#ifndef GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_CODE_ROWS_CUH
#define GUMBEL_BACKENDS_CUDA_ATTENTION_ATTENTION_CODE_ROWS_CUH

#include "backends/cuda/attention/attention_own.cuh"
#include "backends/cuda/attention/store_codes.cuh"
#include "backends/cuda/device/tiles.cuh"

namespace gb_cuda {

/* Keys of a round: as many codes whatever the heads' size. */
template <unsigned SIZE>
constexpr unsigned CODE_KEYS = 16384 / SIZE;

/* Of a row in a stage; and of its scales, which lie behind all rows. */
template <unsigned SIZE, unsigned FORM>
constexpr unsigned CODE_BYTES = SIZE *FORM / 8;
template <unsigned SIZE>
constexpr unsigned SCALE_BYTES = SIZE / GB_CODE_GROUP * 2;

template <unsigned SIZE, unsigned FORM>
constexpr unsigned CODE_STAGE = CODE_KEYS<SIZE> *(CODE_BYTES<SIZE, FORM> + SCALE_BYTES<SIZE>);

/* ---- Rows in a stage ----------------------------------------------------------------------------------- */

/* What the numbers of 16 bytes of a row are changed by, bit by bit, so that lanes that read keys, or values,
 * side by side find them in different banks. Each bit is one of the row's number. */
template <unsigned SIZE, unsigned FORM>
__device__ constexpr unsigned swizzle_of_codes(unsigned row, bool are_keys) {
    if (FORM == AS_Q8)
        return are_keys ? row % 4 * 2 : row / 4 % 4 * 2;
    return !are_keys ? row / 4 % 4 : SIZE > 128 ? row % 8 : row / 2 % 4;
}

/* Where 16 bytes of a row lie. */
template <unsigned SIZE, unsigned FORM>
__device__ inline unsigned place_of_codes(unsigned row, unsigned at, bool are_keys) {
    return row * CODE_BYTES<SIZE, FORM> + (at ^ swizzle_of_codes<SIZE, FORM>(row, are_keys)) * 16;
}

/* Where a row's scales do. */
template <unsigned SIZE, unsigned FORM>
__device__ inline unsigned place_of_scales(unsigned row) {
    return CODE_KEYS<SIZE> * CODE_BYTES<SIZE, FORM> + row * SCALE_BYTES<SIZE>;
}

/* ---- The token's own row ------------------------------------------------------------------------------- */

/* The token's own key and value as caches have them, in shared memory. */
template <unsigned SIZE, unsigned FORM>
struct own_rows {
    uint2 codes[2][CODE_BYTES<SIZE, FORM> / 8];
    uint16_t scales[2][SIZE / GB_CODE_GROUP];
};

/* Where a thread's codes lie in their row, as eight bytes each; whether it has some. */
template <unsigned FORM>
__device__ inline unsigned place_of_own(unsigned number) {
    return FORM == AS_Q8 ? number : number / 4 * 2 + number % 2;
}
template <unsigned FORM>
__device__ inline bool has_codes(unsigned number) {
    return FORM == AS_Q8 || number % 4 < 2;
}

/* Rounds the thread's part and stores it there and in the caches. Keys and values are rotated alike, because
 * a warp may have both. */
template <unsigned SIZE, unsigned FORM>
__device__ inline void append_own(const attention &a, const query_tile &t, eight_numbers x,
                                  own_rows<SIZE, FORM> &own) {
    const own_place<SIZE> place;
    if (!place.is_there)
        return;
    rotate_eight(x.of, a.keys.rotation);
    lane_codes codes = round_group(x.of, FORM == AS_Q8 ? GB_Q8 : GB_Q4);
    if (FORM == AS_Q4)
        join_halves(codes);
    const cache &c = place.is_key ? a.keys : a.values;
    const size_t row = (size_t)a.positions[t.first] % c.capacity;
    uint8_t *head = c.data + (size_t)a.slots[t.first] * c.slot_bytes + row * row_bytes(c) +
                    t.kv_head * CODE_BYTES<SIZE, FORM>;
    const unsigned at = place_of_own<FORM>(place.number), which = place.is_key ? 0 : 1;
    if (has_codes<FORM>(place.number))
        own.codes[which][at] = reinterpret_cast<uint2 *>(head)[at] = uint2{codes.bytes[0], codes.bytes[1]};
    if (place.number % 4 == 0)
        own.scales[which][place.number / 4] =
            reinterpret_cast<uint16_t *>(head + scales_behind(c, t.kv_head))[place.number / 4] = codes.scale;
}

/* It goes to a row of the stages of a round. */
template <unsigned SIZE, unsigned FORM>
__device__ inline void stage_own(uint8_t *keys, uint8_t *values, unsigned row,
                                 const own_rows<SIZE, FORM> &own) {
    constexpr unsigned PIECES = CODE_BYTES<SIZE, FORM> / 8, SCALES = SIZE / GB_CODE_GROUP;
    if (threadIdx.x < 2 * PIECES) {
        const unsigned which = threadIdx.x / PIECES, at = threadIdx.x % PIECES;
        uint8_t *rows = which == 0 ? keys : values;
        *reinterpret_cast<uint2 *>(rows + place_of_codes<SIZE, FORM>(row, at / 2, which == 0) + at % 2 * 8) =
            own.codes[which][at];
    } else if (threadIdx.x >= SPAN_THREADS - 2 * SCALES) {
        const unsigned number = threadIdx.x - (SPAN_THREADS - 2 * SCALES), which = number / SCALES;
        uint8_t *rows = which == 0 ? keys : values;
        *reinterpret_cast<uint16_t *>(rows + place_of_scales<SIZE, FORM>(row) + number % SCALES * 2) =
            own.scales[which][number % SCALES];
    }
}

/* ---- The ring ------------------------------------------------------------------------------------------ */

/* What is copied next. All threads of the block go through it together. */
template <unsigned SIZE, unsigned FORM>
struct code_copies {
    static constexpr unsigned KEYS = CODE_KEYS<SIZE>;
    /* A thread's bytes of one of its rows: as many rows are copied at a time. */
    static constexpr unsigned IN_ROW = CODE_BYTES<SIZE, FORM> / 16, AT_ONCE = SPAN_THREADS / IN_ROW;
    /* And of a row's scales, those of values in the block's second half of threads. */
    static constexpr unsigned PIECE = SCALE_BYTES<SIZE> < 16 ? 8 : 16, PIECES = SCALE_BYTES<SIZE> / PIECE;
    static_assert(KEYS * PIECES <= SPAN_THREADS / 2, "a thread has one piece of scales");

    block_work work;
    positions_left at;
    unsigned own;                 /* the position whose row is not in the cache yet, or NO_POSITION */
    const uint8_t *keys, *values; /* of the kv head in the slot */
    unsigned row;                 /* of position at.j, in the ring of the cache */
    unsigned stage;               /* of the next round's keys */
    unsigned stride;              /* bytes from a row of the cache to the next one */
    unsigned mine, of_scale;      /* from a round's first row to the thread's bytes, and to its scales */
    unsigned to_key, to_value;    /* where in a stage those of its first row lie */

    __device__ explicit code_copies(const block_work &of)
        : work(of), at(), own(NO_POSITION), keys(nullptr), values(nullptr), row(0), stage(0) {
        stride = (unsigned)row_bytes(work.a->keys);
        mine = threadIdx.x / IN_ROW * stride + threadIdx.x % IN_ROW * 16;
        of_scale = (unsigned)scales_behind(work.a->keys, heads_of(*work.a, work.across).kv_head) +
                   scaled_key() * stride + threadIdx.x % PIECES * PIECE;
        to_key = place_of_codes<SIZE, FORM>(threadIdx.x / IN_ROW, threadIdx.x % IN_ROW, true);
        to_value = place_of_codes<SIZE, FORM>(threadIdx.x / IN_ROW, threadIdx.x % IN_ROW, false);
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
                     head = heads_of(a, work.across).kv_head * (size_t)CODE_BYTES<SIZE, FORM>;
        at = positions_of(p, KEYS);
        own = work.appends && at.end == p.spans.end ? at.end - 1 : NO_POSITION;
        keys = a.keys.data + slot * a.keys.slot_bytes + head;
        values = a.values.data + slot * a.values.slot_bytes + head;
        row = at.j % (unsigned)a.keys.capacity;
    }

    /* Begins the next round's copies, to the next two stages of so many. */
    __device__ void begin_next(uint8_t *ring, unsigned stages) {
        const unsigned second = stage + 1 < stages ? stage + 1 : 0;
        if (at.j < at.end) {
            copy_rows(ring + stage * CODE_STAGE<SIZE, FORM>, ring + second * CODE_STAGE<SIZE, FORM>);
            next_round();
        }
        commit_copies();
        stage = second + 1 < stages ? second + 1 : 0;
    }

    __device__ void copy_rows(uint8_t *to_keys, uint8_t *to_values) const {
        if (row + KEYS > work.a->keys.capacity || at.j + KEYS > at.end)
            copy_some(to_keys, to_values);
        else if (at.j + KEYS > own)
            copy_whole_round<true>(to_keys, to_values);
        else
            copy_whole_round<false>(to_keys, to_values);
    }

    /* What the place of the thread's row number i in a stage differs by from its first row's. */
    __device__ static constexpr unsigned swizzle_of(unsigned i, bool are_keys) {
        return swizzle_of_codes<SIZE, FORM>(i * AT_ONCE, are_keys) * 16;
    }

    /* The key, or value, of which a thread copies scales. */
    __device__ static unsigned scaled_key() {
        return threadIdx.x % (SPAN_THREADS / 2) / PIECES;
    }
    __device__ void copy_scales(const uint8_t *from, uint8_t *to, bool is_there) const {
        uint8_t *place = to + place_of_scales<SIZE, FORM>(scaled_key()) + threadIdx.x % PIECES * PIECE;
        if (scaled_key() >= KEYS)
            return;
        if constexpr (PIECE == 8)
            copy_8(place, from + of_scale, is_there);
        else
            copy_16(place, from + of_scale, is_there);
    }

    /* HAS_OWN: the token's own row is in the round. */
    template <bool HAS_OWN>
    __device__ void copy_whole_round(uint8_t *to_keys, uint8_t *to_values) const {
        const unsigned left_out = own - at.j - threadIdx.x / IN_ROW;
        const size_t first = (size_t)row * stride;
        const uint8_t *from_keys = keys + first + mine, *from_values = values + first + mine;
#pragma unroll
        for (unsigned i = 0; i < KEYS / AT_ONCE; i++) {
            const unsigned at_row = i * AT_ONCE * CODE_BYTES<SIZE, FORM>;
            const bool is_there = !HAS_OWN || left_out != i * AT_ONCE;
            copy_16(to_keys + at_row + (to_key ^ swizzle_of(i, true)), from_keys, is_there);
            copy_16(to_values + at_row + (to_value ^ swizzle_of(i, false)), from_values, is_there);
            from_keys += AT_ONCE * stride;
            from_values += AT_ONCE * stride;
        }
        const bool are_keys = threadIdx.x < SPAN_THREADS / 2;
        copy_scales((are_keys ? keys : values) + first, are_keys ? to_keys : to_values,
                    !HAS_OWN || scaled_key() != own - at.j);
    }

    /* Whether the round's key is one that is copied: rows past the end are zeros, and so is the token's own
     * one, over which stage_own puts it. */
    __device__ bool is_copied(unsigned key) const {
        return at.j + key < at.end && at.j + key != own;
    }

    /* From a slot's row 0 to where a round's first row would lie whose key `key` is at its place, around the
     * end of a ring. */
    __device__ long long offset_for(unsigned key) const {
        const unsigned capacity = (unsigned)work.a->keys.capacity;
        const int first = (int)(row + key < capacity ? row : row - capacity);
        return (is_copied(key) ? first : -(int)key) * (long long)stride;
    }

    __device__ void copy_some(uint8_t *to_keys, uint8_t *to_values) const {
#pragma unroll 1
        for (unsigned i = 0; i < KEYS / AT_ONCE; i++) {
            const unsigned key = threadIdx.x / IN_ROW + i * AT_ONCE,
                           at_row = i * AT_ONCE * CODE_BYTES<SIZE, FORM>;
            const long long from = offset_for(key) + mine + (long long)i * AT_ONCE * stride;
            copy_16(to_keys + at_row + (to_key ^ swizzle_of(i, true)), keys + from, is_copied(key));
            copy_16(to_values + at_row + (to_value ^ swizzle_of(i, false)), values + from, is_copied(key));
        }
        const bool are_keys = threadIdx.x < SPAN_THREADS / 2;
        copy_scales((are_keys ? keys : values) + offset_for(scaled_key()), are_keys ? to_keys : to_values,
                    is_copied(scaled_key()));
    }

    __device__ void next_round() {
        const unsigned capacity = (unsigned)work.a->keys.capacity;
        at.j += KEYS;
        row += KEYS;
        row -= row >= capacity ? capacity : 0;
        if (at.j >= at.end)
            take_piece();
    }
};

} // namespace gb_cuda

#endif
