/* SPDX-License-Identifier: Apache-2.0
 *
 * Packings: the layouts of all planes of a quantized matrix, so that kernels find side by side what they use
 * together. A packing rearranges within blocks of rows: a block of `block_rows` rows has the bytes that its
 * rows have canonically, plane by plane, and only their order differs. So a packed matrix has the planes of
 * the canonical one, and can be packed block by block while it is written.
 *
 * Within a block's share of a plane the numbers stand in the order of the plane's layout, which is that of a
 * matrix [block_rows, columns of the plane]. Where a plane has a second, `high`, layout, the low bits of all
 * numbers of the block (gb_low_bits) come first, in the order of the first layout, and after them the
 * remaining bits, in the order of the second. Biases have the layouts of the scales.
 */
#ifndef GUMBEL_TENSOR_PACKING_H
#define GUMBEL_TENSOR_PACKING_H

#include "tensor/format.h"
#include "tensor/layout.h"

typedef struct gb_packing {
    uint32_t block_rows; /* 0: not packed, canonical; everything else is 0 then too */
    gb_layout codes, high_codes;
    gb_layout scales, high_scales; /* and biases */
    gb_layout supers;              /* super-scales and super-biases */
} gb_packing;

/* The packing that CPU kernels read, the same for every instruction set. Blocks have 16 rows, which become
 * the lanes: four neighbouring columns of one row are four bytes (4-bit codes: in the low nibbles columns
 * c .. c + 3, in the high ones c + 4 .. c + 7), then come the same columns of the next row. Pairs of bits and
 * high bits: byte j of row r has, from its lowest bits on, those of columns j, j + 4, j + 8 and so on.
 * Scales: those of 16 rows for a group, then the next group's; of 4 and 6 bits, low nibbles hold an even
 * group and high ones the odd group after it, and the byte of high bits those of four groups. Bytes of
 * progressive groups, and super-scales: those of 16 rows for a group, or the row, one after the other.
 *
 * False where the matrix cannot have it: 16 divides the rows, and the columns are whole steps (of 4 columns
 * for 8-bit codes, 8 for 4-bit, 16 for 2- and 6-bit, 32 for 3- and 5-bit ones). */
bool gb_packing_interleaved(const gb_format *format, uint64_t rows, uint64_t columns, gb_packing *packing);

enum { GB_INTERLEAVED_ROWS = 16 };

/* The bits of a number of that many that stand in the first layout of a plane of two. */
static inline uint32_t gb_low_bits(uint32_t bits) {
    return bits >= 8 ? bits : bits >= 4 ? 4 : 2;
}

/* The packing that kernels for tensor cores read: each lane of a warp finds side by side what it has of a
 * [16, 16] operand. Blocks have 16 rows. With r = lane / 4 and t = lane % 4, the 32 lanes of 16 bytes each
 * follow one another. 4-bit codes: the lane's bytes are the four words of (row r, unit 2i), (row r + 8, unit
 * 2i), (row r, unit 2i + 1), (row r + 8, unit 2i + 1), where a unit is 32 columns and a word its columns 8t
 * .. 8t + 7; after 512 bytes comes the next pair of units. 8-bit codes: the two double words of (row r, unit
 * i), (row r + 8, unit i); after 512 bytes comes the next unit. Scales and biases: of a group those of rows
 * 0, 8, 1, 9 .. 7, 15, then those of the next group.
 *
 * False where the matrix cannot have it: one level of scales for 32 inputs or more, codes of 4 or 8 bits and
 * no book, 16 divides the rows, and
 * the columns are whole steps (of 64 columns for 4-bit codes, 32 for 8-bit ones). */
bool gb_packing_fragments(const gb_format *format, uint64_t rows, uint64_t columns, gb_packing *packing);

enum { GB_FRAGMENT_ROWS = 16 };

/* The packing of 4-bit progressive matrices that kernels for tensor cores read: what a block of threads
 * multiplies in a step lies in one piece. Blocks have 128 rows. Of 128 columns at a time come the fragments
 * of 16 rows one after the other; of a fragment two pairs of units, each as gb_packing_fragments has it.
 * Bytes of groups: of 128 columns at a time those of each fragment, group by group, of rows 0, 8, 1, 9 ..
 * 7, 15. Super-scales stay in the order of the rows.
 *
 * False where the matrix cannot have it: another format, or 128 does not divide rows and columns. */
bool gb_packing_tiles(const gb_format *format, uint64_t rows, uint64_t columns, gb_packing *packing);

enum { GB_TILE_ROWS = 128, GB_TILE_COLUMNS = 128 };

bool gb_packing_equal(const gb_packing *a, const gb_packing *b);

/* Whether a matrix of that format and size can have the packing: blocks of 1 .. GB_MAX_BLOCK_ROWS rows divide
 * its rows, the layouts that its format needs fit, and the others have no parts. */
enum { GB_MAX_BLOCK_ROWS = 256 };
bool gb_packing_fits(const gb_packing *packing, const gb_format *format, uint64_t rows, uint64_t columns);

typedef enum gb_plane_kind {
    GB_PLANE_CODES,
    GB_PLANE_SCALES,
    GB_PLANE_BIASES,
    GB_PLANE_SUPER_SCALES,
    GB_PLANE_SUPER_BIASES,
    GB_PLANE_KINDS
} gb_plane_kind;

/* The plane of that kind; its row_bytes are 0 where the format lacks it. */
const gb_plane *gb_plane_of(const gb_planes *planes, gb_plane_kind kind);

/* Rearranges rows of one plane, a multiple of block_rows of them, and back: rows * row_bytes of the plane on
 * both sides, which do not overlap. columns are the matrix's; the packing fits. */
void gb_pack_rows(const gb_packing *packing, const gb_format *format, gb_plane_kind kind, uint64_t rows,
                  uint64_t columns, const uint8_t *canonical, uint8_t *packed);
void gb_unpack_rows(const gb_packing *packing, const gb_format *format, gb_plane_kind kind, uint64_t rows,
                    uint64_t columns, const uint8_t *packed, uint8_t *canonical);

/* All planes of a matrix, planes->size bytes on both sides. What lies between the planes becomes 0. */
void gb_pack_matrix(const gb_packing *packing, const gb_format *format, uint64_t rows, uint64_t columns,
                    const void *canonical, void *packed);
void gb_unpack_matrix(const gb_packing *packing, const gb_format *format, uint64_t rows, uint64_t columns,
                      const void *packed, void *canonical);

#endif
