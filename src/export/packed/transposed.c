/* SPDX-License-Identifier: Apache-2.0 */
#include "export/packed/transposed.h"

#include "export/packed/packed_row.h"
#include "export/packed/parts.h"

#include <string.h>

enum { TILE_ROWS = 128, TILE_COLUMNS = 128 };

/* Codes of a part of a matrix, packed as in format.h, row after row without gaps. */
typedef struct tile {
    uint64_t first_row, rows, first_column, columns, row_bytes;
    uint8_t codes[TILE_ROWS * TILE_COLUMNS];
} tile;

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

uint32_t gb_packed_place_in_word(gb_packed_layout layout, uint32_t in_word, uint64_t row) {
    const uint32_t index = (uint32_t)(row % in_word);
    return layout == GB_LAYOUT_WORDS_OF_ROWS ? index / 2 + index % 2 * (in_word / 2) : index;
}

/* ---- Reading ------------------------------------------------------------------------------------------- */

static uint32_t word_at(const gb_packed *packed, uint64_t index) {
    uint32_t word;
    memcpy(&word, packed->codes->data + 4 * index, sizeof word);
    return word;
}

/* A word has the codes of neighbouring columns as a row of ours has them. */
static void read_words_of_columns(const gb_packed *packed, tile *t) {
    const uint64_t in_word = 32 / packed->bits, first = t->first_column / in_word;
    for (uint64_t k = 0; k < t->columns / in_word; k++)
        for (uint64_t r = 0; r < t->rows; r++) {
            const uint32_t word = word_at(packed, (first + k) * packed->rows + t->first_row + r);
            memcpy(t->codes + r * t->row_bytes + 4 * k, &word, sizeof word);
        }
}

/* The codes of a row in 8 words that follow each other down a column of them. */
static uint32_t gather_8_columns(const gb_packed *packed, uint64_t column, uint64_t row) {
    const uint64_t words = packed->rows / 8;
    const uint32_t shift = 4 * gb_packed_place_in_word(packed->layout, 8, row);
    uint32_t codes = 0;
    for (uint64_t i = 0; i < 8; i++)
        codes |= (word_at(packed, (column + i) * words + row / 8) >> shift & 15u) << (4 * i);
    return codes;
}

static void read_words_of_rows(const gb_packed *packed, tile *t) {
    for (uint64_t c = 0; c < t->columns; c += 8)
        for (uint64_t r = 0; r < t->rows; r++) {
            const uint32_t codes = gather_8_columns(packed, t->first_column + c, t->first_row + r);
            memcpy(t->codes + r * t->row_bytes + c / 2, &codes, sizeof codes);
        }
}

/* ---- Writing ------------------------------------------------------------------------------------------- */

/* Puts a tile, which lies within a group, where its rows go. */
static void put_tile(const gb_packed *packed, const tile *t, const gb_imported_row *to) {
    const uint64_t group = t->first_column / packed->group;
    for (uint64_t r = 0; r < t->rows; r++) {
        gb_packed_group fitted = {0};
        gb_packed_fit(packed, &packed->format, gb_packed_scale(packed, t->first_row + r, group),
                      gb_packed_offset(packed, t->first_row + r, group), &fitted);
        gb_packed_put_codes(packed, &fitted, t->codes + r * t->row_bytes, t->first_column, t->columns,
                            to[r].codes);
        if (t->first_column % packed->group == 0)
            gb_packed_put_numbers(packed, group, &fitted, &to[r]);
    }
}

static void read_tiles(const gb_packed *packed, uint64_t first, uint64_t rows, const gb_imported_row *to) {
    tile t = {.first_row = first, .rows = rows};
    for (; t.first_column < packed->columns; t.first_column += t.columns) {
        t.columns = smaller(TILE_COLUMNS, packed->group - t.first_column % packed->group);
        t.row_bytes = t.columns * packed->bits / 8;
        if (packed->layout == GB_LAYOUT_WORDS_OF_COLUMNS)
            read_words_of_columns(packed, &t);
        else
            read_words_of_rows(packed, &t);
        put_tile(packed, &t, to);
    }
}

void gb_packed_transposed_rows(const gb_packed *packed, uint64_t first, uint64_t count,
                               const gb_imported_row *to) {
    for (uint64_t i = 0; i < count; i++)
        gb_packed_clear_codes(packed, &to[i]);
    for (uint64_t i = 0; i < count; i += TILE_ROWS)
        read_tiles(packed, first + i, smaller(TILE_ROWS, count - i), to + i);
}
