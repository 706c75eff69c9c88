/* SPDX-License-Identifier: Apache-2.0 */
#include "export/nn/rotary.h"

#include "base/memory.h"

#include <math.h>

/* `pairs` of the head's pairs turn. */
static gb_rotary rotary_of(const gb_scope *scope, const char *name, const double *exact, int64_t head_dim,
                           int64_t pairs) {
    gb_rotary rotary = {.frequencies = GB_NO_VALUE, .pair_offset = head_dim / 2, .scale = 1};
    float *frequencies = gb_allocate((size_t)pairs, sizeof *frequencies);
    if (!frequencies) {
        gb_builder_fail(scope->builder, GUMBEL_ERROR_MEMORY, "no memory for %s", name);
        return rotary;
    }
    for (int64_t i = 0; i < pairs; i++)
        frequencies[i] = (float)exact[i];
    rotary.frequencies = gb_values(scope, name, frequencies, (size_t)pairs);
    gb_free(frequencies);
    return rotary;
}

gb_rotary gb_rotary_of(const gb_scope *scope, const char *name, const double *frequencies,
                       int64_t rotary_dim) {
    return rotary_of(scope, name, frequencies, rotary_dim, rotary_dim / 2);
}

gb_rotary gb_rotary_create(const gb_scope *scope, const char *name, double theta, double factor,
                           int64_t head_dim, int64_t pairs) {
    gb_rotary rotary = {.frequencies = GB_NO_VALUE, .pair_offset = head_dim / 2, .scale = 1};
    if (pairs == 0)
        return rotary;
    double *exact = gb_allocate((size_t)pairs, sizeof *exact);
    if (!exact) {
        gb_builder_fail(scope->builder, GUMBEL_ERROR_MEMORY, "no memory for %s", name);
        return rotary;
    }
    for (int64_t i = 0; i < pairs; i++)
        exact[i] = pow(theta, -2.0 * (double)i / (double)head_dim) / factor;
    rotary = rotary_of(scope, name, exact, head_dim, pairs);
    gb_free(exact);
    return rotary;
}

gb_ref gb_rotate(const gb_scope *scope, const gb_rotary *rotary, gb_ref x) {
    if (rotary->frequencies == GB_NO_VALUE) /* nothing turns */
        return x;
    gb_ref positions = gb_build_input(scope->builder, GB_ROLE_POSITIONS);
    const gb_attribute attributes[] = {gb_int(GB_ATTRIBUTE_PAIR_OFFSET, rotary->pair_offset),
                                       gb_float(GB_ATTRIBUTE_SCALE, rotary->scale)};
    return gb_build_op(scope->builder, GB_OP_ROPE, (const gb_ref[]){x, positions, rotary->frequencies}, 3,
                       attributes, rotary->scale == 1 ? 1 : 2);
}
