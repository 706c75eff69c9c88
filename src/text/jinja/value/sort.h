/* SPDX-License-Identifier: Apache-2.0
 *
 * Python's sorted().
 */
#ifndef GUMBEL_TEXT_JINJA_VALUE_SORT_H
#define GUMBEL_TEXT_JINJA_VALUE_SORT_H

#include "text/jinja/value/value.h"

/* Sorts entries by their keys, those with equal keys staying in order, also in reverse. FORMAT when keys
 * cannot be ordered. */
gumbel_status gb_jinja_sort(gb_jinja_state *state, gb_jinja_entry *entries, size_t count, bool reverse);

#endif
