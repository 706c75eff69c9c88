/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a value can be cut, as the ops that read it demand: a product's columns by the heads that they
 * become, or by the slices that are taken of them.
 */
#ifndef GUMBEL_PROGRAM_SHARD_DEMANDS_H
#define GUMBEL_PROGRAM_SHARD_DEMANDS_H

#include "program/shard/shard.h"

typedef struct gb_demanded_section {
    int64_t start, size, units; /* units 0: any */
} gb_demanded_section;

typedef struct gb_demand {
    int32_t dim;
    uint32_t count;
    bool is_contradictory;
    gb_demanded_section sections[GB_MOST_SECTIONS]; /* ascending, not overlapping */
} gb_demand;

/* Fills demands, one for each value, which are zeros. */
void gb_find_demands(const gb_program *program, gb_demand *demands);

/* How a value of that type is cut along its dim `dim`, if nothing else speaks against it; GB_WHOLE where the
 * demands contradict each other. */
gb_shard gb_demanded_shard(const gb_demand *demand, const gb_type *type, int32_t dim);

/* Whether heads are demanded. */
bool gb_demands_heads(const gb_demand *demand);

#endif
