/* SPDX-License-Identifier: Apache-2.0 */
#include "export/packed/packed_row.h"

#include "export/packed/transposed.h"
#include "tensor/convert.h"

#include <string.h>

static bool is_wider(const gb_packed *packed) {
    return packed->format.bits != packed->bits;
}

void gb_packed_clear_codes(const gb_packed *packed, const gb_imported_row *to) {
    if (is_wider(packed))
        memset(to->codes, 0, (size_t)((packed->columns * packed->format.bits + 7) / 8));
}

/* In the format's own width, each byte with `flip` in its bits: all ones make codes count down, the highest
 * bit alone makes signed bytes unsigned. */
static void copy_codes(const uint8_t *from, uint64_t bytes, uint8_t flip, uint8_t *to) {
    for (uint64_t i = 0; i < bytes; i++)
        to[i] = from[i] ^ flip;
}

static void put_wider_codes(const gb_packed *packed, const uint8_t *from, uint64_t first, uint64_t count,
                            int32_t shift, uint8_t *to) {
    for (uint64_t i = 0; i < count; i++)
        gb_put_code(to, packed->format.bits, first + i,
                    (uint32_t)((int32_t)gb_get_code(from, packed->bits, i) + shift));
}

void gb_packed_put_codes(const gb_packed *packed, const gb_packed_group *fitted, const uint8_t *from,
                         uint64_t first, uint64_t count, uint8_t *to) {
    const uint32_t bits = packed->bits;
    const uint8_t flip =
        (uint8_t)((packed->has_signed_codes ? 0x80u : 0) ^ (fitted->counts_down ? 0xffu : 0));
    if (is_wider(packed))
        put_wider_codes(packed, from, first, count, fitted->shift, to);
    else
        copy_codes(from, count * bits / 8, flip, to + first * bits / 8);
}

void gb_packed_put_numbers(const gb_packed *packed, uint64_t group, const gb_packed_group *fitted,
                           const gb_imported_row *to) {
    const gb_format *format = &packed->format;
    uint64_t copies = format->group ? packed->group / format->group : 1;
    uint16_t scale = gb_round_half(fitted->scale, format->scale);
    uint16_t bias = gb_round_half(fitted->bias, format->scale);
    for (uint64_t i = group * copies; i < (group + 1) * copies; i++) {
        memcpy(to->scales + 2 * i, &scale, sizeof scale);
        if (format->has_bias)
            memcpy(to->biases + 2 * i, &bias, sizeof bias);
    }
}

/* Where a row stands of those in turns: of the first half, or behind one of them. */
static uint64_t row_in_turns(const gb_packed *packed, uint64_t row) {
    const uint64_t half = packed->row_pairs;
    if (half == 0)
        return row;
    const uint64_t within = row % (2 * half);
    return row - within + (within < half ? 2 * within : 2 * (within - half) + 1);
}

static void read_row(const gb_packed *packed, uint64_t row, const gb_imported_row *to) {
    const uint64_t row_bytes = packed->columns * packed->bits / 8;
    const uint8_t *codes = packed->codes->data + row * row_bytes;
    gb_packed_clear_codes(packed, to);
    for (uint64_t group = 0; group < packed->columns / packed->group; group++) {
        const uint64_t first = group * packed->group;
        gb_packed_group fitted = {0};
        gb_packed_fit(packed, &packed->format, gb_packed_scale(packed, row, group),
                      gb_packed_offset(packed, row, group), &fitted);
        gb_packed_put_codes(packed, &fitted, codes + first * packed->bits / 8, first, packed->group,
                            to->codes);
        gb_packed_put_numbers(packed, group, &fitted, to);
    }
}

/* Rows of a stack, as many together as one member has. */
static void read_members(const gb_packed *packed, uint64_t first, uint64_t count, const gb_imported_row *to) {
    const uint64_t run = packed->stacking.run;
    for (uint64_t done = 0; done < count;) {
        const gb_part_row at = gb_locate_row(&packed->stacking, first + done);
        const uint64_t within = run - at.row % run, left = count - done;
        const uint64_t together = within < left ? within : left;
        gb_packed_rows(&packed->members[at.part], at.row, together, to + done);
        done += together;
    }
}

void gb_packed_rows(const gb_packed *packed, uint64_t first, uint64_t count, const gb_imported_row *to) {
    if (packed->members)
        read_members(packed, first, count, to);
    else if (packed->layout != GB_LAYOUT_ROWS)
        gb_packed_transposed_rows(packed, packed->first_row + first, count, to);
    else
        for (uint64_t i = 0; i < count; i++)
            read_row(packed, packed->first_row + row_in_turns(packed, first + i), &to[i]);
}
