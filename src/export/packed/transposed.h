/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of matrices that a checkpoint stores transposed, inputs first. A row is spread over the whole tensor,
 * so they are read in tiles of many rows, which share the lines of a cache.
 */
#ifndef GUMBEL_EXPORT_PACKED_TRANSPOSED_H
#define GUMBEL_EXPORT_PACKED_TRANSPOSED_H

#include "export/packed/packed.h"

/* Which code of its 32-bit word a row is, the lowest bits being 0. */
uint32_t gb_packed_place_in_word(gb_packed_layout layout, uint32_t in_word, uint64_t row);

/* As gb_packed_rows, of a matrix with another layout than GB_LAYOUT_ROWS; first is the tensor's row. */
void gb_packed_transposed_rows(const gb_packed *packed, uint64_t first, uint64_t count,
                               const gb_imported_row *to);

#endif
