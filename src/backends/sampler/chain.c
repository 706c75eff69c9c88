/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes of the chain, but for the noise: candidates, apply_temperature, top_k_mask, top_p_mask,
 * min_p_mask, argmax.
 */
#include "backends/sampler/rule.h"
#include "backends/sampler/sampler.h"
#include "backends/sampler/scan.h"
#include "backends/sampler/select.h"

#include <string.h>

void gb_candidates(const float *logits, uint32_t count, bool *keep) {
    const float infinity = -gb_negative_infinity();
    bool any_infinite = false;
    for (uint32_t i = 0; i < count; i++)
        any_infinite |= logits[i] == infinity;
    for (uint32_t i = 0; i < count; i++)
        keep[i] = any_infinite ? logits[i] == infinity : logits[i] > -infinity;
}

void gb_apply_temperature(const float *logits, uint32_t count, float temperature, float *scaled) {
    const float infinity = -gb_negative_infinity();
    for (uint32_t i = 0; i < count; i++)
        scaled[i] = logits[i] == infinity ? 0.0f : gb_scale(logits[i], temperature);
}

static void keep_from(const float *x, const bool *keep, uint32_t count, float least, bool *kept) {
    for (uint32_t i = 0; i < count; i++)
        kept[i] = keep[i] & (x[i] >= least);
}

static void keep_all(const bool *keep, uint32_t count, bool *kept) {
    memmove(kept, keep, count * sizeof *kept);
}

void gb_top_k_mask(const float *x, const bool *keep, uint32_t count, int32_t top_k, bool *kept) {
    uint32_t candidates = 0;
    for (uint32_t i = 0; i < count; i++)
        candidates += keep[i];
    if (top_k <= 0 || (uint32_t)top_k >= candidates) {
        keep_all(keep, count, kept);
        return;
    }
    const gb_values values = {x, keep, count};
    keep_from(x, keep, count,
              gb_ranked(&values, (uint32_t)top_k, gb_negative_infinity(), gb_largest(&values)), kept);
}

void gb_top_p_mask(const float *x, const bool *keep, uint32_t count, float top_p, bool *kept) {
    const gb_values values = {x, keep, count};
    const float max = gb_largest(&values);
    if (!(top_p < 1.0f) || max == gb_negative_infinity()) {
        keep_all(keep, count, kept);
        return;
    }
    gb_mass_bins bins;
    gb_sum_masses(&values, max, &bins);
    keep_from(x, keep, count, gb_mass_threshold(&bins, gb_mass_limit(bins.total, top_p)), kept);
}

void gb_min_p_mask(const float *x, const bool *keep, uint32_t count, float min_p, bool *kept) {
    const float max = gb_largest(&(gb_values){x, keep, count});
    const uint64_t least = gb_least_mass(min_p);
    for (uint32_t i = 0; i < count; i++)
        kept[i] = keep[i] && gb_mass(x[i], max) >= least;
}

/* Among the kept values even -inf is a candidate. */
static int32_t argmax_of_kept(const float *x, const bool *keep, uint32_t count) {
    int32_t best = GB_TOKEN_NO_CANDIDATE;
    for (uint32_t i = 0; i < count; i++) {
        if (!keep[i])
            continue;
        if (x[i] != x[i])
            return GB_TOKEN_NAN;
        if (best < 0 || x[i] > x[best])
            best = (int32_t)i;
    }
    return best;
}

int32_t gb_argmax(const float *x, const bool *keep, uint32_t count) {
    if (keep != NULL)
        return argmax_of_kept(x, keep, count);
    float largest = gb_negative_infinity();
    uint32_t best = 0;
    bool has_nan = false;
    for (uint32_t begin = 0; begin < count; begin += GB_BLOCK) {
        const float max = gb_block_max(x + begin, gb_block_size(count, begin), &has_nan);
        if (max > largest) {
            largest = max;
            best = begin;
        }
    }
    if (has_nan)
        return GB_TOKEN_NAN;
    if (largest == gb_negative_infinity())
        return GB_TOKEN_NO_CANDIDATE;
    return (int32_t)(best + gb_first_equal(x + best, largest));
}
