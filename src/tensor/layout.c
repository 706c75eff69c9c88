/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/layout.h"

#include "tensor/format.h"

#include <string.h>

gb_layout gb_layout_canonical(void) {
    return (gb_layout){.part_count = 2, .parts = {{GB_AXIS_ROWS, 0}, {GB_AXIS_COLUMNS, 0}}, .order = {0, 1}};
}

gb_layout gb_layout_interleaved(uint32_t rows, uint32_t columns) {
    return (gb_layout){
        .part_count = 4,
        .parts = {{GB_AXIS_ROWS, 0}, {GB_AXIS_ROWS, rows}, {GB_AXIS_COLUMNS, 0}, {GB_AXIS_COLUMNS, columns}},
        .order = {0, 2, 1, 3}};
}

bool gb_layout_equal(const gb_layout *a, const gb_layout *b) {
    if (a->part_count != b->part_count || a->high_nibble_first != b->high_nibble_first)
        return false;
    for (int i = 0; i < a->part_count; i++)
        if (a->parts[i].axis != b->parts[i].axis || a->parts[i].size != b->parts[i].size ||
            a->order[i] != b->order[i])
            return false;
    return true;
}

/* ---- Checking ------------------------------------------------------------------------------------------ */

static bool parts_fit(const gb_layout *layout, uint64_t rows, uint64_t columns) {
    uint64_t left[2] = {rows, columns};
    bool is_open[2] = {false, false};
    for (int p = 0; p < layout->part_count; p++) {
        const gb_layout_part *part = &layout->parts[p];
        if (part->axis > GB_AXIS_COLUMNS || is_open[part->axis] == (part->size == 0))
            return false; /* the open part is an axis's first one, and no other */
        is_open[part->axis] = true;
        if (part->size == 0)
            continue;
        if (left[part->axis] % part->size != 0)
            return false;
        left[part->axis] /= part->size;
    }
    return is_open[GB_AXIS_ROWS] && is_open[GB_AXIS_COLUMNS];
}

bool gb_layout_fits(const gb_layout *layout, uint64_t rows, uint64_t columns, uint32_t bits) {
    bool has_width = bits == 1 || bits == 2 || (bits >= 4 && bits <= 6) || bits == 8 || bits == 16;
    if (layout->part_count < 2 || layout->part_count > GB_MAX_LAYOUT_PARTS || !has_width || rows == 0 ||
        columns == 0 || columns * bits % 8 != 0 || (layout->high_nibble_first && bits != 4))
        return false;
    uint32_t named = 0;
    for (int i = 0; i < layout->part_count; i++) {
        uint8_t part = layout->order[i];
        if (part >= layout->part_count || (named & 1u << part))
            return false;
        named |= 1u << part;
    }
    return parts_fit(layout, rows, columns);
}

/* ---- Rearranging --------------------------------------------------------------------------------------- */

/* How far a step in the memory's order moves in the canonical one. */
typedef struct walk {
    int count;
    uint64_t size[GB_MAX_LAYOUT_PARTS], step[GB_MAX_LAYOUT_PARTS], digit[GB_MAX_LAYOUT_PARTS];
    uint64_t at; /* canonical index of the code */
} walk;

static walk begin_walk(const gb_layout *layout, uint64_t rows, uint64_t columns) {
    uint64_t step[GB_MAX_LAYOUT_PARTS], size[GB_MAX_LAYOUT_PARTS];
    uint64_t weight[2] = {columns, 1}, left[2] = {rows, columns};
    for (int p = layout->part_count - 1; p >= 0; p--) {
        const gb_layout_part *part = &layout->parts[p];
        size[p] = part->size ? part->size : left[part->axis];
        step[p] = weight[part->axis];
        weight[part->axis] *= size[p];
        left[part->axis] /= size[p];
    }
    walk w = {.count = layout->part_count};
    for (int i = 0; i < w.count; i++) {
        w.size[i] = size[layout->order[i]];
        w.step[i] = step[layout->order[i]];
    }
    return w;
}

/* To the next code in memory: the innermost digit goes up, with a carry. */
static void advance(walk *w) {
    for (int i = w->count - 1; i >= 0; i--) {
        w->at += w->step[i];
        if (++w->digit[i] < w->size[i])
            return;
        w->at -= w->size[i] * w->step[i];
        w->digit[i] = 0;
    }
}

void gb_layout_pack_bits(const gb_layout *layout, uint64_t rows, uint64_t columns, gb_layout_bits bits,
                         const uint8_t *canonical, uint8_t *packed) {
    uint64_t count = rows * columns;
    uint32_t mask = (1u << bits.count) - 1u;
    walk w = begin_walk(layout, rows, columns);
    memset(packed, 0, count * bits.count / 8);
    for (uint64_t i = 0; i < count; i++, advance(&w)) {
        uint32_t code = gb_get_code(canonical, bits.code, w.at) >> bits.first & mask;
        gb_put_code(packed, bits.count, layout->high_nibble_first ? i ^ 1 : i, code);
    }
}

void gb_layout_unpack_bits(const gb_layout *layout, uint64_t rows, uint64_t columns, gb_layout_bits bits,
                           const uint8_t *packed, uint8_t *canonical) {
    uint64_t count = rows * columns;
    walk w = begin_walk(layout, rows, columns);
    for (uint64_t i = 0; i < count; i++, advance(&w)) {
        uint32_t code = gb_get_code(packed, bits.count, layout->high_nibble_first ? i ^ 1 : i);
        gb_put_code(canonical, bits.code, w.at, code << bits.first);
    }
}

void gb_layout_pack(const gb_layout *layout, uint64_t rows, uint64_t columns, uint32_t bits,
                    const uint8_t *canonical, uint8_t *packed) {
    gb_layout_pack_bits(layout, rows, columns, (gb_layout_bits){bits, 0, bits}, canonical, packed);
}

void gb_layout_unpack(const gb_layout *layout, uint64_t rows, uint64_t columns, uint32_t bits,
                      const uint8_t *packed, uint8_t *canonical) {
    memset(canonical, 0, rows * columns * bits / 8);
    gb_layout_unpack_bits(layout, rows, columns, (gb_layout_bits){bits, 0, bits}, packed, canonical);
}
