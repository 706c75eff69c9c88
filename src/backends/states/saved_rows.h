/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rows of a state are saved with a session, so that every backend writes the same bytes.
 */
#ifndef GUMBEL_BACKENDS_STATES_SAVED_ROWS_H
#define GUMBEL_BACKENDS_STATES_SAVED_ROWS_H

#include "program/program.h"

/* By position: the first, and how many up to the slot's own position. */
typedef struct gb_saved_rows {
    uint64_t first, count;
} gb_saved_rows;

/* Of a slot at position. rows is what a slot has room for. Of a ring those are saved that later tokens can
 * still read; a recurrent state is one row. */
static inline gb_saved_rows gb_rows_to_save(gb_state_kind kind, uint64_t rows, uint64_t window,
                                            uint64_t position) {
    const uint64_t most = kind == GB_STATE_RING ? window : rows;
    gb_saved_rows saved = {0, 1};
    if (kind == GB_STATE_RECURRENT)
        return saved;
    saved.count = position < most ? position : most;
    saved.first = position - saved.count;
    return saved;
}

#endif
