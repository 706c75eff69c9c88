/* SPDX-License-Identifier: Apache-2.0
 *
 * The winner of a row: the largest s + g, looking only where it can be. The noise g is at most
 * GB_NOISE_BOUND, so once a candidate has reached the score S every logit with s + GB_NOISE_BOUND < S is
 * passed over without drawing its bits; on a peaked row that is all but a few blocks.
 */
#ifndef GUMBEL_BACKENDS_SAMPLER_DRAW_H
#define GUMBEL_BACKENDS_SAMPLER_DRAW_H

#include "backends/sampler/floor.h"
#include "backends/sampler/row.h"

#include <stdint.h>

/* What a logit needs to take part. */
typedef struct gb_draw_rule {
    float temperature;
    float least; /* the smallest s */
    gb_floor floor;
    uint64_t seed;
} gb_draw_rule;

/* The token, among the candidates that the rule lets take part, to which the row's largest logit
 * belongs. row->max is above -inf; where it is +inf, only the seed matters. GB_TOKEN_NO_CANDIDATE where the
 * rule lets none take part, GB_TOKEN_NAN where a score is not a number: s overflowed to +inf and the bits
 * were 0. */
int32_t gb_draw(const gb_row *row, const gb_draw_rule *rule);

#endif
