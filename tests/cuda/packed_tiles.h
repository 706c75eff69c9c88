/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices in tiles as the device has them, for tests that make their own.
 */
#ifndef GUMBEL_TESTS_CUDA_PACKED_TILES_H
#define GUMBEL_TESTS_CUDA_PACKED_TILES_H

#include "tensor/padded_tiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* Packs `count` canonical matrices of that size, one above the other, in tiles that zeros fill. Sets planes
 * to those of the result, which the caller frees; NULL where the format cannot lie in tiles. */
static inline uint8_t *pack_in_tiles(const gb_format *format, uint64_t rows, uint64_t columns, uint64_t count,
                                     const uint8_t *data, gb_planes *planes) {
    gb_padded_tiles tiles;
    gb_planes own;
    if (!gb_find_padded_tiles(format, rows, columns, count, &tiles))
        return NULL;
    assert_true(gb_format_planes(format, rows * count, columns, &own));
    uint8_t *packed = calloc(tiles.all.size, 1), *scratch = malloc(tiles.padded.size);
    assert_true(packed && scratch);
    for (gb_plane_kind kind = GB_PLANE_CODES; kind < GB_PLANE_KINDS; kind++)
        for (uint64_t t = 0; t < gb_padded_tile_count(&tiles); t++) {
            const gb_plane *from = gb_plane_of(&own, kind), *to = gb_plane_of(&tiles.all, kind);
            if (from->row_bytes > 0)
                gb_pack_padded_tile(&tiles, kind, gb_padded_tile_rows(&tiles, t),
                                    data + from->offset + gb_padded_tile_first(&tiles, t) * from->row_bytes,
                                    scratch, packed + to->offset + t * GB_TILE_ROWS * to->row_bytes);
        }
    free(scratch);
    *planes = tiles.all;
    return packed;
}

#endif
