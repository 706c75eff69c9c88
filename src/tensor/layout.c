/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/layout.h"

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
