/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices in tiles (gb_packing_tiles) whose rows or columns 128 does not divide: zeros fill the last tile of
 * each matrix, of experts of each one. No sum of products with inputs that have zeros there has another bit.
 */
#ifndef GUMBEL_TENSOR_PADDED_TILES_H
#define GUMBEL_TENSOR_PADDED_TILES_H

#include "tensor/packing.h"

/* So many rows or columns and those that fill the last tile. */
static inline uint64_t gb_fill_tiles(uint64_t count) {
    return (count + GB_TILE_ROWS - 1) / GB_TILE_ROWS * GB_TILE_ROWS;
}

/* A matrix of a format that can lie in tiles, and its last tiles' zeros. */
typedef struct gb_padded_tiles {
    gb_format format;
    gb_packing packing;            /* that of `padded` */
    uint64_t rows, columns, count; /* of one matrix; matrices of that size, one above the other */
    gb_planes tile, padded;        /* of a tile's rows: with columns as they are, with all of them; */
    gb_planes all;                 /* of all matrices with zeros */
} gb_padded_tiles;

/* False where the format cannot lie in tiles. */
bool gb_find_padded_tiles(const gb_format *format, uint64_t rows, uint64_t columns, uint64_t count,
                          gb_padded_tiles *tiles);

/* Tiles of rows of all matrices; rows of the one of that number: the first, and how many are no zeros. */
uint64_t gb_padded_tile_count(const gb_padded_tiles *tiles);
uint64_t gb_padded_tile_first(const gb_padded_tiles *tiles, uint64_t tile);
uint64_t gb_padded_tile_rows(const gb_padded_tiles *tiles, uint64_t tile);

/* Packs a tile's part of a plane from its canonical rows, of which it has so many. scratch and packed:
 * GB_TILE_ROWS rows of `padded`; canonical may be packed. */
void gb_pack_padded_tile(const gb_padded_tiles *tiles, gb_plane_kind kind, uint64_t rows,
                         const uint8_t *canonical, uint8_t *scratch, uint8_t *packed);

#endif
