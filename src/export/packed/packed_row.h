/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts the parts of a packed row where they go in its format's planes.
 */
#ifndef GUMBEL_EXPORT_PACKED_PACKED_ROW_H
#define GUMBEL_EXPORT_PACKED_PACKED_ROW_H

#include "export/packed/parts.h"

/* Makes the row's codes 0, as gb_packed_put_codes wants them where the format's are wider. */
void gb_packed_clear_codes(const gb_packed *packed, const gb_imported_row *to);

/* Codes first .. first + count - 1 of a row, all of one group. `from` has them alone; both begin at whole
 * bytes. */
void gb_packed_put_codes(const gb_packed *packed, const gb_packed_group *fitted, const uint8_t *from,
                         uint64_t first, uint64_t count, uint8_t *to);

/* Scale and bias of a group, for each of the format's groups that it is. */
void gb_packed_put_numbers(const gb_packed *packed, uint64_t group, const gb_packed_group *fitted,
                           const gb_imported_row *to);

#endif
