/* SPDX-License-Identifier: Apache-2.0 */
#include "export/packed/parts.h"

#include "tensor/convert.h"

#include <string.h>

/* The group's codes in the format's own width, each byte with `flip` in its bits: all ones make codes count
 * down, the highest bit alone makes signed bytes unsigned. */
static void copy_codes(const gb_packed *packed, const uint8_t *from, uint8_t flip, uint8_t *to) {
    uint64_t bytes = packed->group * packed->bits / 8;
    for (uint64_t i = 0; i < bytes; i++)
        to[i] = from[i] ^ flip;
}

static void put_wider_codes(const gb_packed *packed, const uint8_t *from, uint64_t first, int32_t shift,
                            uint8_t *to) {
    for (uint64_t i = 0; i < packed->group; i++)
        gb_put_code(to, packed->format.bits, first + i,
                    (uint32_t)((int32_t)gb_get_code(from, packed->bits, first + i) + shift));
}

static void put_numbers(const gb_packed *packed, uint64_t group, const gb_packed_group *fitted,
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

void gb_packed_row(const gb_packed *packed, uint64_t row, const gb_imported_row *to) {
    if (packed->members) {
        gb_part_row at = gb_locate_row(&packed->stacking, row);
        gb_packed_row(&packed->members[at.part], at.row, to);
        return;
    }
    row = packed->first_row + row_in_turns(packed, row);
    uint64_t row_bytes = packed->columns * packed->bits / 8;
    const uint8_t *codes = packed->codes->data + row * row_bytes;
    bool is_wider = packed->format.bits != packed->bits;
    if (is_wider)
        memset(to->codes, 0, (size_t)((packed->columns * packed->format.bits + 7) / 8));
    for (uint64_t group = 0; group < packed->columns / packed->group; group++) {
        uint64_t first = group * packed->group, byte = first * packed->bits / 8;
        gb_packed_group fitted = {0};
        gb_packed_fit(packed, &packed->format, gb_packed_scale(packed, row, group),
                      gb_packed_offset(packed, row, group), &fitted);
        uint8_t flip = (uint8_t)((packed->has_signed_codes ? 0x80u : 0) ^ (fitted.counts_down ? 0xffu : 0));
        if (is_wider)
            put_wider_codes(packed, codes, first, fitted.shift, to->codes);
        else
            copy_codes(packed, codes + byte, flip, to->codes + byte);
        put_numbers(packed, group, &fitted, to);
    }
}
