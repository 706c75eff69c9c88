/* SPDX-License-Identifier: Apache-2.0
 *
 * A matrix whose rows are those of several matrices of one shape in turns: `run` rows of the first, `run` of
 * the second, and again. So experts' gate and up, which many checkpoints have apart, become one constant, and
 * so do the experts that stand one by one. With a stride the parts may lie between each other in one tensor.
 */
#ifndef GUMBEL_EXPORT_STACKING_H
#define GUMBEL_EXPORT_STACKING_H

#include "base/file_map.h"

#include <stdint.h>

/* All zero: one part, whose rows are the matrix's own. */
typedef struct gb_stacking {
    uint64_t parts;  /* 0 or 1: not stacked */
    uint64_t run;    /* rows of a part that stand together */
    uint64_t stride; /* from a row of a part to its next one in memory, in rows; 0: 1 */
} gb_stacking;

/* A row of one part. */
typedef struct gb_part_row {
    uint64_t part, row;
} gb_part_row;

/* Where a row of the whole comes from. */
static inline gb_part_row gb_locate_row(const gb_stacking *stacking, uint64_t row) {
    if (stacking->parts <= 1)
        return (gb_part_row){0, row};
    uint64_t turn = row / stacking->run;
    return (gb_part_row){turn % stacking->parts,
                         turn / stacking->parts * stacking->run + row % stacking->run};
}

/* How many rows of a part stand before a row of the whole. */
static inline uint64_t gb_part_rows_before(const gb_stacking *stacking, uint64_t part, uint64_t row) {
    if (stacking->parts <= 1)
        return row;
    uint64_t turns = stacking->parts * stacking->run, within = row % turns, begin = part * stacking->run;
    uint64_t own = within <= begin ? 0 : within - begin < stacking->run ? within - begin : stacking->run;
    return row / turns * stacking->run + own;
}

/* Rows of a tensor in `count` runs of `run` rows, each `period` rows after the one before, from row `first`.
 */
typedef struct gb_row_runs {
    int64_t first, run, period, count;
} gb_row_runs;

/* The bytes of all parts, row after row in each. */
typedef struct gb_stacked_bytes {
    const uint8_t *const *parts; /* one at least; NULL: there are no bytes */
    gb_stacking stacking;
} gb_stacked_bytes;

static inline uint64_t gb_part_stride(const gb_stacking *stacking) {
    return stacking->stride > 0 ? stacking->stride : 1;
}

static inline const uint8_t *gb_stacked_row(const gb_stacked_bytes *bytes, uint64_t row, uint64_t row_bytes) {
    gb_part_row at = gb_locate_row(&bytes->stacking, row);
    return bytes->parts[at.part] + at.row * gb_part_stride(&bytes->stacking) * row_bytes;
}

/* Says that rows first .. first + count - 1 of bytes in a file's mapping are not needed for now. */
static inline void gb_release_stacked(const gb_stacked_bytes *bytes, uint64_t first, uint64_t count,
                                      uint64_t row_bytes) {
    const uint64_t step = gb_part_stride(&bytes->stacking) * row_bytes;
    const uint64_t parts = bytes->stacking.parts > 1 ? bytes->stacking.parts : 1;
    for (uint64_t part = 0; part < parts; part++) {
        uint64_t begin = gb_part_rows_before(&bytes->stacking, part, first);
        uint64_t end = gb_part_rows_before(&bytes->stacking, part, first + count);
        if (begin < end)
            gb_release_pages(bytes->parts[part] + begin * step, (end - begin - 1) * step + row_bytes);
    }
}

#endif
