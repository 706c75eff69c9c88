/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotary position embedding (Su et al., "RoFormer", 2021): pair i of a head is turned by
 * position * theta^(-2i / head_dim).
 */
#ifndef GUMBEL_EXPORT_NN_ROTARY_H
#define GUMBEL_EXPORT_NN_ROTARY_H

#include "export/nn/graph.h"

typedef struct gb_rotary {
    gb_ref frequencies;  /* f32[pairs] */
    int64_t pair_offset; /* dimension i is paired with i + pair_offset */
    double scale;        /* of what turns */
} gb_rotary;

/* Frequencies of the first pairs of the head_dim / 2 pairs, divided by factor, in a constant called name; the
 * other dimensions are left alone. Each is the float32 nearest to the exact value, which is within the
 * references' own rounding of theirs. 0 <= pairs <= head_dim / 2. */
gb_rotary gb_rotary_create(const gb_scope *scope, const char *name, double theta, double factor,
                           int64_t head_dim, int64_t pairs);

/* The same with frequencies of the caller's, one for each pair of the first rotary_dim dims. */
gb_rotary gb_rotary_of(const gb_scope *scope, const char *name, const double *frequencies,
                       int64_t rotary_dim);

/* Turns x f32[N, heads, head_dim] by the positions of the step. */
gb_ref gb_rotate(const gb_scope *scope, const gb_rotary *rotary, gb_ref x);

/* Turns queries of a draft head, as gb_attend takes them, by the position behind the input last. */
gb_ref gb_rotate_behind(const gb_scope *scope, const gb_rotary *rotary, gb_ref x);

#endif
