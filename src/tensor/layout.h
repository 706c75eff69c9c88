/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts: in which order the codes of a matrix stand in memory. A layout is data: the two axes are split
 * into parts, and the parts are put into an order. Canonical is row-major. A layout that interleaves 16 rows
 * in steps of 8 columns splits rows into (rest, 16) and columns into (rest, 8), and orders them rest of rows,
 * rest of columns, 16, 8. The low and high nibbles of GGUF's Q4_0 are columns split into (rest, 2, 16),
 * ordered rest, 16, 2.
 */
#ifndef GUMBEL_TENSOR_LAYOUT_H
#define GUMBEL_TENSOR_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

enum { GB_MAX_LAYOUT_PARTS = 8 };

enum { GB_AXIS_ROWS = 0, GB_AXIS_COLUMNS = 1 };

/* A part of an axis. The parts of one axis, in the order of the list, are the digits of an index along it,
 * the most significant first; the first part of each axis has size 0: as many as the matrix needs. */
typedef struct gb_layout_part {
    uint8_t axis;
    uint32_t size;
} gb_layout_part;

typedef struct gb_layout {
    uint8_t part_count;
    gb_layout_part parts[GB_MAX_LAYOUT_PARTS];
    uint8_t order[GB_MAX_LAYOUT_PARTS]; /* part numbers, the one that varies slowest in memory first */
    bool high_nibble_first;             /* of 4-bit codes: the earlier one of a byte is in its high bits */
} gb_layout;

/* Row-major, low nibble first. */
gb_layout gb_layout_canonical(void);

/* Rows in blocks of `rows`, their codes interleaved in steps of `columns`. */
gb_layout gb_layout_interleaved(uint32_t rows, uint32_t columns);

bool gb_layout_equal(const gb_layout *a, const gb_layout *b);

/* Whether it is a layout, and one that a matrix of that size can have: every axis has its open part, the
 * order names every part once, the sizes divide the axes, rows of codes are whole bytes, and the nibble order
 * is said of 4-bit codes only. bits is 1, 2, 4, 5, 6, 8 or 16. */
bool gb_layout_fits(const gb_layout *layout, uint64_t rows, uint64_t columns, uint32_t bits);

/* Rearranges a matrix of codes from canonical to layout, and back. Both have rows * columns * bits / 8 bytes
 * and do not overlap; the layout fits. */
void gb_layout_pack(const gb_layout *layout, uint64_t rows, uint64_t columns, uint32_t bits,
                    const uint8_t *canonical, uint8_t *packed);
void gb_layout_unpack(const gb_layout *layout, uint64_t rows, uint64_t columns, uint32_t bits,
                      const uint8_t *packed, uint8_t *canonical);

/* Some bits of every code: canonical codes have `code` bits, and `count` of them from `first` on are what the
 * packed side holds. */
typedef struct gb_layout_bits {
    uint32_t code, first, count;
} gb_layout_bits;

/* Matrices [rows, columns] that follow one another, canonically without gaps, packed `packed_bytes` from one
 * to the next. */
typedef struct gb_layout_blocks {
    uint64_t count, rows, columns;
    uint64_t packed_bytes;
} gb_layout_blocks;

/* The same for all blocks and with only these bits: the packed side of a block has rows * columns * count / 8
 * bytes, for which the layout fits. Unpacking adds to a canonical side in which these bits are zero. */
void gb_layout_pack_bits(const gb_layout *layout, const gb_layout_blocks *blocks, gb_layout_bits bits,
                         const uint8_t *canonical, uint8_t *packed);
void gb_layout_unpack_bits(const gb_layout *layout, const gb_layout_blocks *blocks, gb_layout_bits bits,
                           const uint8_t *packed, uint8_t *canonical);

#endif
