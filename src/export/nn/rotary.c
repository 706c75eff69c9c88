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

static gb_ref rotate(const gb_scope *scope, const gb_rotary *rotary, gb_ref x, gb_role positions,
                     int64_t start) {
    if (rotary->frequencies == GB_NO_VALUE) /* nothing turns */
        return x;
    gb_attribute attributes[3] = {gb_int(GB_ATTRIBUTE_PAIR_OFFSET, rotary->pair_offset)};
    uint32_t count = 1;
    if (rotary->scale != 1)
        attributes[count++] = gb_float(GB_ATTRIBUTE_SCALE, rotary->scale);
    if (start != 0)
        attributes[count++] = gb_int(GB_ATTRIBUTE_START, start);
    const gb_ref operands[] = {x, gb_build_input(scope->builder, positions), rotary->frequencies};
    return gb_build_op(scope->builder, GB_OP_ROPE, operands, 3, attributes, count);
}

gb_ref gb_rotate(const gb_scope *scope, const gb_rotary *rotary, gb_ref x) {
    return rotate(scope, rotary, x, GB_ROLE_POSITIONS, 0);
}

gb_ref gb_rotate_behind(const gb_scope *scope, const gb_rotary *rotary, gb_ref x) {
    return rotate(scope, rotary, x, GB_ROLE_LAST, 1);
}
