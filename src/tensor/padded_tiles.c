/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/padded_tiles.h"

#include <string.h>

bool gb_find_padded_tiles(const gb_format *format, uint64_t rows, uint64_t columns, uint64_t count,
                          gb_padded_tiles *tiles) {
    const uint64_t all_rows = gb_fill_tiles(rows), all_columns = gb_fill_tiles(columns);
    *tiles = (gb_padded_tiles){.format = *format, .rows = rows, .columns = columns, .count = count};
    return gb_packing_tiles(format, all_rows, all_columns, &tiles->packing) &&
           gb_format_planes(format, GB_TILE_ROWS, columns, &tiles->tile) &&
           gb_format_planes(format, GB_TILE_ROWS, all_columns, &tiles->padded) &&
           gb_format_planes(format, count * all_rows, all_columns, &tiles->all);
}

static uint64_t tiles_of_matrix(const gb_padded_tiles *tiles) {
    return gb_fill_tiles(tiles->rows) / GB_TILE_ROWS;
}

uint64_t gb_padded_tile_count(const gb_padded_tiles *tiles) {
    return tiles->count * tiles_of_matrix(tiles);
}

uint64_t gb_padded_tile_first(const gb_padded_tiles *tiles, uint64_t tile) {
    return tile / tiles_of_matrix(tiles) * tiles->rows + tile % tiles_of_matrix(tiles) * GB_TILE_ROWS;
}

uint64_t gb_padded_tile_rows(const gb_padded_tiles *tiles, uint64_t tile) {
    const uint64_t left = tiles->rows - tile % tiles_of_matrix(tiles) * GB_TILE_ROWS;
    return left < GB_TILE_ROWS ? left : GB_TILE_ROWS;
}

void gb_pack_padded_tile(const gb_padded_tiles *tiles, gb_plane_kind kind, uint64_t rows,
                         const uint8_t *canonical, uint8_t *scratch, uint8_t *packed) {
    const uint64_t from = gb_plane_of(&tiles->tile, kind)->row_bytes,
                   to = gb_plane_of(&tiles->padded, kind)->row_bytes;
    memset(scratch, 0, GB_TILE_ROWS * to);
    for (uint64_t row = 0; row < rows; row++)
        memcpy(scratch + row * to, canonical + row * from, from);
    gb_pack_rows(&tiles->packing, &tiles->format, kind, GB_TILE_ROWS, gb_fill_tiles(tiles->columns), scratch,
                 packed);
}
