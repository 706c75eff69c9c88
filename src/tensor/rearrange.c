/* SPDX-License-Identifier: Apache-2.0
 *
 * The one routine that packs and unpacks any layout. Codes move as words of up to 32 bits where a word of the
 * packed side has all codes of one canonical word, which is so in every layout that kernels like; tables say
 * where the bits of each byte of a word go. Otherwise codes move one by one.
 */
#include "tensor/format.h"
#include "tensor/layout.h"

#include <string.h>

/* ---- Digits -------------------------------------------------------------------------------------------- */

/* The digits of an index in memory's order, the one that varies slowest first, and how far a step of each
 * moves in canonical order. */
typedef struct digits {
    int count;
    uint64_t size[GB_MAX_LAYOUT_PARTS + 1],
        step[GB_MAX_LAYOUT_PARTS + 1]; /* one more: a digit may be split */
} digits;

static digits digits_of(const gb_layout *layout, uint64_t rows, uint64_t columns) {
    uint64_t step[GB_MAX_LAYOUT_PARTS], size[GB_MAX_LAYOUT_PARTS];
    uint64_t weight[2] = {columns, 1}, left[2] = {rows, columns};
    for (int p = layout->part_count - 1; p >= 0; p--) {
        const gb_layout_part *part = &layout->parts[p];
        size[p] = part->size ? part->size : left[part->axis];
        step[p] = weight[part->axis];
        weight[part->axis] *= size[p];
        left[part->axis] /= size[p];
    }
    digits d = {.count = layout->part_count};
    for (int i = 0; i < d.count; i++) {
        d.size[i] = size[layout->order[i]];
        d.step[i] = step[layout->order[i]];
    }
    return d;
}

/* Canonical indices of the runs of the last digit, one after another in memory's order. */
typedef struct walk {
    uint64_t digit[GB_MAX_LAYOUT_PARTS + 1];
    uint64_t at;
} walk;

/* To the next run; false after the last one. */
static bool next_run(const digits *d, walk *w) {
    for (int i = d->count - 2; i >= 0; i--) {
        w->at += d->step[i];
        if (++w->digit[i] < d->size[i])
            return true;
        w->at -= d->size[i] * d->step[i];
        w->digit[i] = 0;
    }
    return false;
}

/* ---- Words --------------------------------------------------------------------------------------------- */

enum { MAX_WORD_BITS = 32, MAX_WORD_BYTES = 4 };

typedef struct words {
    uint32_t codes;                      /* in a word; 0: codes do not move as words */
    uint32_t bytes;                      /* of a word */
    bool is_straight;                    /* codes have the same order on both sides of a word */
    uint32_t moved[MAX_WORD_BYTES][256]; /* where the bits of that byte of a word are on the other side */
    digits digits;                       /* of the words; steps count words */
} words;

/* Takes digits that make `codes` successive codes off the end, splitting the last one that is taken where it
 * is longer. at gets the canonical place of each code in memory's order. */
static bool take_word(digits *d, uint32_t codes, uint64_t *at) {
    uint32_t taken = 1; /* codes of the digits so far */
    at[0] = 0;
    while (taken < codes) {
        if (d->count == 0)
            return false;
        int last = d->count - 1;
        uint64_t size = d->size[last], step = d->step[last], missing = codes / taken;
        bool is_whole = size <= missing;
        if (is_whole ? missing % size != 0 : size % missing != 0)
            return false;
        uint64_t taking = is_whole ? size : missing;
        for (uint64_t i = 1; i < taking; i++)
            for (uint32_t k = 0; k < taken; k++)
                at[i * taken + k] = at[k] + i * step;
        taken *= (uint32_t)taking;
        d->size[last] = size / taking;
        d->step[last] = step * taking;
        d->count -= is_whole;
    }
    return true;
}

/* Bit b of a word goes to bit to[b]. */
static void fill_tables(words *w, const uint32_t to[MAX_WORD_BITS]) {
    for (uint32_t b = 0; b < w->bytes; b++) {
        w->moved[b][0] = 0;
        for (uint32_t bit = 0; bit < 8; bit++)
            for (uint32_t lower = 0; lower < 1u << bit; lower++)
                w->moved[b][lower | 1u << bit] = w->moved[b][lower] | 1u << to[8 * b + bit];
    }
}

/* Makes the words of that many bits; false where a packed word is not one canonical word. */
static bool make_words(const gb_layout *layout, const digits *all, uint32_t bits, uint32_t word_bits,
                       bool is_unpacking, words *w) {
    uint64_t at[MAX_WORD_BITS], seen = 0;
    uint32_t to[MAX_WORD_BITS];
    w->codes = word_bits / bits;
    w->bytes = word_bits / 8;
    w->digits = *all;
    if (word_bits % bits != 0 || !take_word(&w->digits, w->codes, at))
        return false;
    for (int i = 0; i < w->digits.count; i++) {
        if (w->digits.size[i] > 1 && w->digits.step[i] % w->codes != 0)
            return false;
        w->digits.step[i] /= w->codes;
    }
    w->is_straight = true;
    for (uint32_t k = 0; k < w->codes; k++) {
        if (at[k] >= w->codes || (seen & (uint64_t)1 << at[k]))
            return false;
        seen |= (uint64_t)1 << at[k];
        uint32_t canonical = (uint32_t)at[k], packed = layout->high_nibble_first ? k ^ 1 : k;
        w->is_straight = w->is_straight && canonical == packed;
        for (uint32_t b = 0; b < bits; b++)
            to[(is_unpacking ? packed : canonical) * bits + b] =
                (is_unpacking ? canonical : packed) * bits + b;
    }
    fill_tables(w, to);
    return true;
}

/* The largest words that the layout allows, or single codes. */
static void find_words(const gb_layout *layout, uint64_t rows, uint64_t columns, uint32_t bits,
                       bool is_unpacking, words *w) {
    digits all = digits_of(layout, rows, columns);
    for (uint32_t word_bits = MAX_WORD_BITS; word_bits >= 8; word_bits /= 2)
        if (word_bits >= bits && make_words(layout, &all, bits, word_bits, is_unpacking, w))
            return;
    w->codes = 0;
    w->digits = all;
}

/* ---- Rows of words ------------------------------------------------------------------------------------- */

enum { RUN = 64 }; /* words that are moved together, at most */

static uint32_t load_word(const uint8_t *from, uint32_t bytes) {
    uint32_t word = from[0];
    if (bytes >= 2)
        word |= (uint32_t)from[1] << 8;
    if (bytes == 4)
        word |= (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
    return word;
}

static void store_word(uint8_t *to, uint32_t bytes, uint32_t word) {
    to[0] = (uint8_t)word;
    if (bytes >= 2)
        to[1] = (uint8_t)(word >> 8);
    if (bytes == 4) {
        to[2] = (uint8_t)(word >> 16);
        to[3] = (uint8_t)(word >> 24);
    }
}

/* Words that lie `stride` bytes apart. The sizes stand apart so that each loop has a load of that width. */
static void load_words(const uint8_t *from, uint64_t stride, uint32_t bytes, uint32_t count, uint32_t *to) {
    for (uint32_t i = 0; bytes == 4 && i < count; i++, from += stride)
        to[i] = load_word(from, 4);
    for (uint32_t i = 0; bytes == 2 && i < count; i++, from += stride)
        to[i] = load_word(from, 2);
    for (uint32_t i = 0; bytes == 1 && i < count; i++, from += stride)
        to[i] = load_word(from, 1);
}

static void store_words(const uint32_t *from, uint32_t count, uint8_t *to, uint64_t stride, uint32_t bytes) {
    for (uint32_t i = 0; bytes == 4 && i < count; i++, to += stride)
        store_word(to, 4, from[i]);
    for (uint32_t i = 0; bytes == 2 && i < count; i++, to += stride)
        store_word(to, 2, from[i]);
    for (uint32_t i = 0; bytes == 1 && i < count; i++, to += stride)
        store_word(to, 1, from[i]);
}

/* The wanted bits of the codes from number `code` on, as one word. */
static uint32_t take_bits(const uint8_t *canonical, gb_layout_bits bits, uint64_t code, uint32_t count) {
    uint32_t mask = (1u << bits.count) - 1u, word = 0;
    if (count % 8 != 0) {
        for (uint32_t k = 0; k < count; k++)
            word |= (gb_get_code(canonical, bits.code, code + k) >> bits.first & mask) << (k * bits.count);
        return word;
    }
    const uint8_t *from = canonical + code / 8 * bits.code;
    for (uint32_t k = 0; k < count; k += 8, from += bits.code) {
        uint64_t eight = 0;
        for (uint32_t b = 0; b < bits.code; b++)
            eight |= (uint64_t)from[b] << (8 * b);
        for (uint32_t i = 0; i < 8; i++)
            word |= ((uint32_t)(eight >> (i * bits.code + bits.first)) & mask) << ((k + i) * bits.count);
    }
    return word;
}

/* The way back, to where these bits are zero. */
static void give_bits(uint8_t *canonical, gb_layout_bits bits, uint64_t code, uint32_t count, uint32_t word) {
    uint32_t mask = (1u << bits.count) - 1u;
    if (count % 8 != 0) {
        for (uint32_t k = 0; k < count; k++)
            gb_put_code(canonical, bits.code, code + k, (word >> (k * bits.count) & mask) << bits.first);
        return;
    }
    uint8_t *to = canonical + code / 8 * bits.code;
    for (uint32_t k = 0; k < count; k += 8, to += bits.code) {
        uint64_t eight = 0;
        for (uint32_t i = 0; i < 8; i++)
            eight |= (uint64_t)(word >> ((k + i) * bits.count) & mask) << (i * bits.code + bits.first);
        for (uint32_t b = 0; b < bits.code; b++)
            to[b] = (uint8_t)(to[b] | eight >> (8 * b));
    }
}

/* Canonical words first, first + step, .. with the wanted bits alone. */
static void gather(const words *w, gb_layout_bits bits, const uint8_t *canonical, uint64_t first,
                   uint64_t step, uint32_t count, uint32_t *to) {
    if (bits.code == bits.count)
        load_words(canonical + first * w->bytes, step * w->bytes, w->bytes, count, to);
    else
        for (uint32_t i = 0; i < count; i++)
            to[i] = take_bits(canonical, bits, (first + i * step) * w->codes, w->codes);
}

static void scatter(const words *w, gb_layout_bits bits, const uint32_t *from, uint32_t count, uint64_t first,
                    uint64_t step, uint8_t *canonical) {
    if (bits.code == bits.count)
        store_words(from, count, canonical + first * w->bytes, step * w->bytes, w->bytes);
    else
        for (uint32_t i = 0; i < count; i++)
            give_bits(canonical, bits, (first + i * step) * w->codes, w->codes, from[i]);
}

static void move_bits(const words *w, uint32_t count, uint32_t *run) {
    if (w->is_straight)
        return;
    for (uint32_t i = 0; i < count && w->bytes == 4; i++)
        run[i] = w->moved[0][run[i] & 255] | w->moved[1][run[i] >> 8 & 255] |
                 w->moved[2][run[i] >> 16 & 255] | w->moved[3][run[i] >> 24];
    for (uint32_t i = 0; i < count && w->bytes == 2; i++)
        run[i] = w->moved[0][run[i] & 255] | w->moved[1][run[i] >> 8];
    for (uint32_t i = 0; i < count && w->bytes == 1; i++)
        run[i] = w->moved[0][run[i]];
}

/* The digit that varies fastest. */
static uint64_t run_length(const digits *d) {
    return d->count ? d->size[d->count - 1] : 1;
}
static uint64_t run_step(const digits *d) {
    return d->count ? d->step[d->count - 1] : 0;
}

static void pack_words(const words *w, gb_layout_bits bits, const uint8_t *canonical, uint8_t *packed) {
    uint64_t length = run_length(&w->digits), step = run_step(&w->digits);
    uint32_t run[RUN];
    walk at = {0};
    do {
        for (uint64_t i = 0; i < length; i += RUN) {
            uint32_t count = length - i < RUN ? (uint32_t)(length - i) : RUN;
            gather(w, bits, canonical, at.at + i * step, step, count, run);
            move_bits(w, count, run);
            store_words(run, count, packed, w->bytes, w->bytes);
            packed += (uint64_t)count * w->bytes;
        }
    } while (next_run(&w->digits, &at));
}

static void unpack_words(const words *w, gb_layout_bits bits, const uint8_t *packed, uint8_t *canonical) {
    uint64_t length = run_length(&w->digits), step = run_step(&w->digits);
    uint32_t run[RUN];
    walk at = {0};
    do {
        for (uint64_t i = 0; i < length; i += RUN) {
            uint32_t count = length - i < RUN ? (uint32_t)(length - i) : RUN;
            load_words(packed, w->bytes, w->bytes, count, run);
            move_bits(w, count, run);
            scatter(w, bits, run, count, at.at + i * step, step, canonical);
            packed += (uint64_t)count * w->bytes;
        }
    } while (next_run(&w->digits, &at));
}

/* ---- One code at a time -------------------------------------------------------------------------------- */

static void pack_codes(const gb_layout *layout, const digits *d, gb_layout_bits bits,
                       const uint8_t *canonical, uint8_t *packed) {
    uint32_t mask = (1u << bits.count) - 1u;
    uint64_t size = d->size[d->count - 1], step = d->step[d->count - 1], i = 0;
    walk at = {0};
    do {
        for (uint64_t k = 0; k < size; k++, i++) {
            uint32_t code = gb_get_code(canonical, bits.code, at.at + k * step) >> bits.first & mask;
            gb_put_code(packed, bits.count, layout->high_nibble_first ? i ^ 1 : i, code);
        }
    } while (next_run(d, &at));
}

static void unpack_codes(const gb_layout *layout, const digits *d, gb_layout_bits bits, const uint8_t *packed,
                         uint8_t *canonical) {
    uint64_t size = d->size[d->count - 1], step = d->step[d->count - 1], i = 0;
    walk at = {0};
    do {
        for (uint64_t k = 0; k < size; k++, i++) {
            uint32_t code = gb_get_code(packed, bits.count, layout->high_nibble_first ? i ^ 1 : i);
            gb_put_code(canonical, bits.code, at.at + k * step, code << bits.first);
        }
    } while (next_run(d, &at));
}

/* ---- Layouts ------------------------------------------------------------------------------------------- */

void gb_layout_pack_bits(const gb_layout *layout, const gb_layout_blocks *blocks, gb_layout_bits bits,
                         const uint8_t *canonical, uint8_t *packed) {
    uint64_t codes = blocks->rows * blocks->columns;
    words w;
    find_words(layout, blocks->rows, blocks->columns, bits.count, false, &w);
    for (uint64_t i = 0; i < blocks->count; i++) {
        if (w.codes > 0) {
            pack_words(&w, bits, canonical, packed);
        } else {
            memset(packed, 0, codes * bits.count / 8);
            pack_codes(layout, &w.digits, bits, canonical, packed);
        }
        canonical += codes * bits.code / 8;
        packed += blocks->packed_bytes;
    }
}

void gb_layout_unpack_bits(const gb_layout *layout, const gb_layout_blocks *blocks, gb_layout_bits bits,
                           const uint8_t *packed, uint8_t *canonical) {
    uint64_t codes = blocks->rows * blocks->columns;
    words w;
    find_words(layout, blocks->rows, blocks->columns, bits.count, true, &w);
    for (uint64_t i = 0; i < blocks->count; i++) {
        if (w.codes > 0)
            unpack_words(&w, bits, packed, canonical);
        else
            unpack_codes(layout, &w.digits, bits, packed, canonical);
        canonical += codes * bits.code / 8;
        packed += blocks->packed_bytes;
    }
}

void gb_layout_pack(const gb_layout *layout, uint64_t rows, uint64_t columns, uint32_t bits,
                    const uint8_t *canonical, uint8_t *packed) {
    const gb_layout_blocks whole = {1, rows, columns, 0};
    gb_layout_pack_bits(layout, &whole, (gb_layout_bits){bits, 0, bits}, canonical, packed);
}

void gb_layout_unpack(const gb_layout *layout, uint64_t rows, uint64_t columns, uint32_t bits,
                      const uint8_t *packed, uint8_t *canonical) {
    const gb_layout_blocks whole = {1, rows, columns, 0};
    memset(canonical, 0, rows * columns * bits / 8);
    gb_layout_unpack_bits(layout, &whole, (gb_layout_bits){bits, 0, bits}, packed, canonical);
}
