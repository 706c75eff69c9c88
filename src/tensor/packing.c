/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/packing.h"

#include <string.h>

enum { STEP_COLUMNS = 4 };

/* ---- The interleaved packing --------------------------------------------------------------------------- */

/* Pieces of that many bits of 16 rows: a byte has pieces of columns that are `apart` from each other; apart
 * bytes of a row stand together. */
static gb_layout interleaved_pieces(uint32_t bits, uint32_t apart) {
    return (gb_layout){.part_count = 5,
                       .parts = {{GB_AXIS_ROWS, 0},
                                 {GB_AXIS_ROWS, GB_INTERLEAVED_ROWS},
                                 {GB_AXIS_COLUMNS, 0},
                                 {GB_AXIS_COLUMNS, 8 / bits},
                                 {GB_AXIS_COLUMNS, apart}},
                       .order = {0, 2, 1, 4, 3}};
}

bool gb_packing_interleaved(const gb_format *format, uint64_t rows, uint64_t columns, gb_packing *packing) {
    *packing = (gb_packing){.block_rows = GB_INTERLEAVED_ROWS};
    if (format->kind == GB_FORMAT_DENSE || !gb_format_valid(format) || !gb_format_fits(format, columns))
        return false;
    const uint32_t low_bits = gb_low_bits(format->bits);
    if (format->bits == 8)
        packing->codes = gb_layout_interleaved(GB_INTERLEAVED_ROWS, STEP_COLUMNS);
    else
        packing->codes = interleaved_pieces(low_bits, STEP_COLUMNS);
    if (format->bits > low_bits)
        packing->high_codes = interleaved_pieces(format->bits - low_bits, STEP_COLUMNS);
    packing->scales = gb_layout_interleaved(GB_INTERLEAVED_ROWS, 1);
    if (gb_format_supers(format, columns) > 0) {
        packing->supers = packing->scales;
        if (format->scale_bits < 8)
            packing->scales = interleaved_pieces(4, 1);
        if (format->scale_bits == 6)
            packing->high_scales = interleaved_pieces(2, 1);
    }
    return gb_packing_fits(packing, format, rows, columns);
}

/* ---- The fragments of tensor cores ----------------------------------------------------------------------
 */

/* Rows are (rest, half of the block, r), columns (rest, unit, quarter, code); see the header. */
static gb_layout fragment_codes(uint32_t units) {
    return (gb_layout){.part_count = 7,
                       .parts = {{GB_AXIS_ROWS, 0},
                                 {GB_AXIS_ROWS, 2},
                                 {GB_AXIS_ROWS, GB_FRAGMENT_ROWS / 2},
                                 {GB_AXIS_COLUMNS, 0},
                                 {GB_AXIS_COLUMNS, units},
                                 {GB_AXIS_COLUMNS, 4},
                                 {GB_AXIS_COLUMNS, 8}},
                       .order = {0, 3, 2, 5, 4, 1, 6}};
}

static gb_layout fragment_scales(void) {
    return (gb_layout){.part_count = 4,
                       .parts = {{GB_AXIS_ROWS, 0},
                                 {GB_AXIS_ROWS, 2},
                                 {GB_AXIS_ROWS, GB_FRAGMENT_ROWS / 2},
                                 {GB_AXIS_COLUMNS, 0}},
                       .order = {0, 3, 2, 1}};
}

bool gb_packing_fragments(const gb_format *format, uint64_t rows, uint64_t columns, gb_packing *packing) {
    *packing = (gb_packing){.block_rows = GB_FRAGMENT_ROWS};
    if (format->kind != GB_FORMAT_ONE_LEVEL || (format->bits != 4 && format->bits != 8) ||
        format->book != GB_BOOK_NONE || !gb_format_valid(format) || !gb_format_fits(format, columns))
        return false;
    packing->codes = fragment_codes(8 / format->bits);
    packing->scales = fragment_scales();
    return gb_packing_fits(packing, format, rows, columns);
}

/* ---- Tiles ----------------------------------------------------------------------------------------------
 */

/* Rows are (fragment, half of it, r), columns (rest, pair of units, unit, quarter, code). */
static gb_layout tile_codes(void) {
    return (gb_layout){.part_count = 8,
                       .parts = {{GB_AXIS_ROWS, 0},
                                 {GB_AXIS_ROWS, 2},
                                 {GB_AXIS_ROWS, GB_FRAGMENT_ROWS / 2},
                                 {GB_AXIS_COLUMNS, 0},
                                 {GB_AXIS_COLUMNS, 2},
                                 {GB_AXIS_COLUMNS, 2},
                                 {GB_AXIS_COLUMNS, 4},
                                 {GB_AXIS_COLUMNS, 8}},
                       .order = {3, 0, 4, 2, 6, 5, 1, 7}};
}

/* The same rows; columns are (rest, group). */
static gb_layout tile_groups(uint32_t groups) {
    return (gb_layout){.part_count = 5,
                       .parts = {{GB_AXIS_ROWS, 0},
                                 {GB_AXIS_ROWS, 2},
                                 {GB_AXIS_ROWS, GB_FRAGMENT_ROWS / 2},
                                 {GB_AXIS_COLUMNS, 0},
                                 {GB_AXIS_COLUMNS, groups}},
                       .order = {3, 0, 4, 2, 1}};
}

bool gb_packing_tiles(const gb_format *format, uint64_t rows, uint64_t columns, gb_packing *packing) {
    *packing = (gb_packing){.block_rows = GB_TILE_ROWS};
    if (format->kind != GB_FORMAT_PROGRESSIVE || format->bits != 4 || !gb_format_valid(format) ||
        columns % GB_TILE_COLUMNS != 0)
        return false;
    packing->codes = tile_codes();
    packing->scales = tile_groups(GB_TILE_COLUMNS / format->group);
    packing->supers = gb_layout_canonical();
    return gb_packing_fits(packing, format, rows, columns);
}

/* ---- Comparing and checking ---------------------------------------------------------------------------- */

bool gb_packing_equal(const gb_packing *a, const gb_packing *b) {
    return a->block_rows == b->block_rows && gb_layout_equal(&a->codes, &b->codes) &&
           gb_layout_equal(&a->high_codes, &b->high_codes) && gb_layout_equal(&a->scales, &b->scales) &&
           gb_layout_equal(&a->high_scales, &b->high_scales) && gb_layout_equal(&a->supers, &b->supers);
}

/* The numbers of a plane: how many a row has, of how many bits. */
typedef struct numbers {
    uint64_t columns; /* 0: the format lacks the plane */
    uint32_t bits;
    const gb_layout *layout, *high; /* high may have no parts */
} numbers;

static const gb_layout no_layout = {0};

static numbers numbers_of(const gb_packing *packing, const gb_format *format, gb_plane_kind kind,
                          uint64_t columns) {
    uint64_t group = format->group ? format->group : columns;
    switch (kind) {
    case GB_PLANE_CODES:
        return (numbers){columns, format->bits, &packing->codes, &packing->high_codes};
    case GB_PLANE_SCALES:
    case GB_PLANE_BIASES:
        return (numbers){columns / group, gb_format_scale_bits(format), &packing->scales,
                         &packing->high_scales};
    default:
        return (numbers){gb_format_supers(format, columns), 16, &packing->supers, &no_layout};
    }
}

static bool numbers_fit(const numbers *n, uint32_t rows) {
    if (n->columns == 0)
        return n->layout->part_count == 0 && n->high->part_count == 0;
    if (n->high->part_count == 0)
        return gb_layout_fits(n->layout, rows, n->columns, n->bits);
    const uint32_t low_bits = gb_low_bits(n->bits);
    return n->bits > low_bits && gb_layout_fits(n->layout, rows, n->columns, low_bits) &&
           gb_layout_fits(n->high, rows, n->columns, n->bits - low_bits);
}

bool gb_packing_fits(const gb_packing *packing, const gb_format *format, uint64_t rows, uint64_t columns) {
    if (format->kind == GB_FORMAT_DENSE || packing->block_rows < 1 ||
        packing->block_rows > GB_MAX_BLOCK_ROWS || rows % packing->block_rows != 0 || columns == 0 ||
        !gb_format_fits(format, columns))
        return false;
    for (gb_plane_kind kind = GB_PLANE_CODES; kind < GB_PLANE_KINDS; kind++) {
        numbers n = numbers_of(packing, format, kind, columns);
        if (!numbers_fit(&n, packing->block_rows))
            return false;
    }
    return true;
}

/* ---- Rearranging --------------------------------------------------------------------------------------- */

const gb_plane *gb_plane_of(const gb_planes *planes, gb_plane_kind kind) {
    const gb_plane *const of[GB_PLANE_KINDS] = {&planes->codes, &planes->scales, &planes->biases,
                                                &planes->super_scales, &planes->super_biases};
    return of[kind];
}

static gb_layout_blocks blocks_of(const gb_packing *packing, const numbers *n, uint64_t rows) {
    return (gb_layout_blocks){.count = rows / packing->block_rows,
                              .rows = packing->block_rows,
                              .columns = n->columns,
                              .packed_bytes = packing->block_rows * n->columns * n->bits / 8};
}

/* Of a block: where its high bits begin. */
static uint64_t low_bytes(const gb_layout_blocks *blocks, const numbers *n) {
    return blocks->rows * blocks->columns * gb_low_bits(n->bits) / 8;
}

static gb_layout_bits high_bits(const numbers *n) {
    return (gb_layout_bits){n->bits, gb_low_bits(n->bits), n->bits - gb_low_bits(n->bits)};
}

void gb_pack_rows(const gb_packing *packing, const gb_format *format, gb_plane_kind kind, uint64_t rows,
                  uint64_t columns, const uint8_t *canonical, uint8_t *packed) {
    numbers n = numbers_of(packing, format, kind, columns);
    gb_layout_blocks blocks = blocks_of(packing, &n, rows);
    gb_layout_bits bits = {n.bits, 0, n.high->part_count ? gb_low_bits(n.bits) : n.bits};
    gb_layout_pack_bits(n.layout, &blocks, bits, canonical, packed);
    if (n.high->part_count)
        gb_layout_pack_bits(n.high, &blocks, high_bits(&n), canonical, packed + low_bytes(&blocks, &n));
}

void gb_unpack_rows(const gb_packing *packing, const gb_format *format, gb_plane_kind kind, uint64_t rows,
                    uint64_t columns, const uint8_t *packed, uint8_t *canonical) {
    numbers n = numbers_of(packing, format, kind, columns);
    gb_layout_blocks blocks = blocks_of(packing, &n, rows);
    gb_layout_bits bits = {n.bits, 0, n.high->part_count ? gb_low_bits(n.bits) : n.bits};
    memset(canonical, 0, blocks.count * blocks.packed_bytes);
    gb_layout_unpack_bits(n.layout, &blocks, bits, packed, canonical);
    if (n.high->part_count)
        gb_layout_unpack_bits(n.high, &blocks, high_bits(&n), packed + low_bytes(&blocks, &n), canonical);
}

typedef void (*rearrange_rows)(const gb_packing *packing, const gb_format *format, gb_plane_kind kind,
                               uint64_t rows, uint64_t columns, const uint8_t *from, uint8_t *to);

static void rearrange(rearrange_rows rearranging, const gb_packing *packing, const gb_format *format,
                      uint64_t rows, uint64_t columns, const void *from, void *to) {
    gb_planes planes;
    if (!gb_format_planes(format, rows, columns, &planes))
        return;
    memset(to, 0, planes.size);
    for (gb_plane_kind kind = GB_PLANE_CODES; kind < GB_PLANE_KINDS; kind++) {
        const gb_plane *plane = gb_plane_of(&planes, kind);
        if (plane->row_bytes > 0)
            rearranging(packing, format, kind, rows, columns, (const uint8_t *)from + plane->offset,
                        (uint8_t *)to + plane->offset);
    }
}

void gb_pack_matrix(const gb_packing *packing, const gb_format *format, uint64_t rows, uint64_t columns,
                    const void *canonical, void *packed) {
    rearrange(gb_pack_rows, packing, format, rows, columns, canonical, packed);
}

void gb_unpack_matrix(const gb_packing *packing, const gb_format *format, uint64_t rows, uint64_t columns,
                      const void *packed, void *canonical) {
    rearrange(gb_unpack_rows, packing, format, rows, columns, packed, canonical);
}
