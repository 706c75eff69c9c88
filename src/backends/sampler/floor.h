/* SPDX-License-Identifier: Apache-2.0
 *
 * The masks that look at one s beside the row's largest: min-p. They come last, and never drop the largest,
 * so that the fused samplers of all backends apply them where they draw.
 */
#ifndef GUMBEL_BACKENDS_SAMPLER_FLOOR_H
#define GUMBEL_BACKENDS_SAMPLER_FLOOR_H

#include "backends/sampler/rule.h"
#include "backends/sampler/sampler.h"

typedef struct gb_floor {
    uint64_t least_mass; /* min-p; 0: all */
} gb_floor;

GB_MATH gb_floor gb_floor_of(const gb_row_settings *settings) {
    gb_floor floor;
    floor.least_mass = gb_least_mass(settings->min_p);
    return floor;
}

/* Whether it keeps every s. */
GB_MATH bool gb_floor_is_open(gb_floor floor) {
    return floor.least_mass == 0;
}

/* Whether it keeps an s whose mass beside the largest, max, is known. */
GB_MATH bool gb_is_above(gb_floor floor, float s, float max, uint64_t mass) {
    (void)s, (void)max;
    return mass >= floor.least_mass;
}

/* It keeps no s below this; clear of all roundings. */
GB_MATH float gb_floor_bound(gb_floor floor, float max) {
    return gb_mass_bound(max, floor.least_mass);
}

#endif
