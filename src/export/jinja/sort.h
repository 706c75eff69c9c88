/* SPDX-License-Identifier: Apache-2.0
 *
 * Python's sorted().
 */
#ifndef GUMBEL_EXPORT_JINJA_SORT_H
#define GUMBEL_EXPORT_JINJA_SORT_H

#include "export/jinja/value.h"

/* Sorts entries by their keys, those with equal keys staying in order, also in reverse. FORMAT when keys
 * cannot be ordered. */
gumbel_status gb_jinja_sort(gb_jinja_state *state, gb_jinja_entry *entries, size_t count, bool reverse);

#endif
