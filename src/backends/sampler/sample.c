/* SPDX-License-Identifier: Apache-2.0
 *
 * The fused sampler: scan the row once, find the thresholds of top-k and top-p from the blocks that matter,
 * draw the winner from those above.
 */
#include "backends/sampler/draw.h"
#include "backends/sampler/row.h"
#include "backends/sampler/rule.h"
#include "backends/sampler/sampler.h"
#include "backends/sampler/select.h"

/* Values this far under the largest s or farther are not looked at one by one, unless it proves necessary. */
static const float near_distance = 16.0f;

/* Values gathered from a row, to select a threshold from. */
typedef struct gathered_values {
    float *data; /* room for the whole row */
    uint32_t count;
} gathered_values;

size_t gb_sample_scratch_bytes(uint32_t count) {
    return ((size_t)count + 2 * (size_t)gb_row_block_count(count)) * sizeof(float);
}

/* Gathers every logit from bound on. */
static void gather_from(const gb_row *row, float bound, gathered_values *gathered) {
    gathered->count = 0;
    for (uint32_t block = 0; block < row->block_count; block++) {
        if (row->block_max[block] < bound)
            continue;
        uint32_t size, indices[GB_BLOCK];
        const float *x = gb_row_block(row, block, &size);
        const uint32_t found = gb_find_from(x, size, bound, GB_BLOCK, indices);
        for (uint32_t i = 0; i < found; i++)
            gathered->data[gathered->count++] = x[indices[i]];
    }
}

/* The k-th largest logit, with all logits from there on and perhaps more gathered. The k-th largest block
 * maximum bounds it from below. -inf, and everything gathered, where there are fewer than k candidates. */
static float top_k_logit(const gb_row *row, uint32_t k, gathered_values *gathered) {
    float bound = gb_negative_infinity();
    const gb_values maxima = {row->block_max, NULL, row->block_count};
    if (k <= row->block_count)
        bound = gb_ranked(&maxima, k, bound, row->max);
    gather_from(row, bound, gathered);
    return gb_ranked(&(gb_values){gathered->data, NULL, gathered->count}, k, bound, row->max);
}

/* Turns gathered logits into s, those under least into -inf: without mass. */
static void scale_gathered(gathered_values *gathered, float temperature, float least) {
    for (uint32_t i = 0; i < gathered->count; i++) {
        const float s = gb_scale(gathered->data[i], temperature);
        gathered->data[i] = s >= least ? s : gb_negative_infinity();
    }
}

static float top_p_of_gathered(const gathered_values *gathered, float max, float top_p) {
    gb_mass_bins bins;
    gb_sum_masses(&(gb_values){gathered->data, NULL, gathered->count}, max, &bins);
    return gb_mass_threshold(&bins, gb_mass_limit(bins.total, top_p));
}

/* Scales a block, gathers the s from near on and returns the mass of the others. */
static uint64_t gather_near(const float *x, uint32_t size, float temperature, float max, float near,
                            gathered_values *gathered) {
    float scaled[GB_BLOCK];
    uint32_t indices[GB_BLOCK];
    for (uint32_t i = 0; i < size; i++)
        scaled[i] = gb_scale(x[i], temperature);
    const uint32_t found = gb_find_from(scaled, size, near, GB_BLOCK, indices);
    for (uint32_t i = 0; i < found; i++) {
        gathered->data[gathered->count++] = scaled[indices[i]];
        scaled[indices[i]] = gb_negative_infinity();
    }
    return found < size ? gb_total_mass(scaled, size, max) : 0;
}

static uint32_t count_blocks_from(const gb_row *row, float bound) {
    uint32_t count = 0;
    for (uint32_t block = 0; block < row->block_count; block++)
        count += row->block_max[block] >= bound;
    return count;
}

/* The top-p threshold from the values near the largest alone. On a peaked row nearly all blocks are far from
 * it and hold next to no mass, so bounds do: such a block's largest has its own mass, and no other has more.
 * Where both bounds of the row's mass give the same threshold, and it is near, it is the one that the exact
 * mass gives. Otherwise, and where most of the row is near, false. far has room for block_count floats. */
static bool find_near_threshold(const gb_row *row, float temperature, float top_p, float *far,
                                gathered_values *gathered, float *threshold) {
    const float max = gb_scale(row->max, temperature);
    const float near = max - near_distance;
    const float bound = gb_logit_bound(near, temperature);
    if (2 * count_blocks_from(row, bound) > row->block_count)
        return false;
    uint32_t far_blocks = 0;
    uint64_t rest = 0;
    gathered->count = 0;
    for (uint32_t block = 0; block < row->block_count; block++) {
        if (row->block_max[block] < bound) {
            far[far_blocks++] = gb_scale(row->block_max[block], temperature);
            continue;
        }
        uint32_t size;
        const float *x = gb_row_block(row, block, &size);
        rest += gather_near(x, size, temperature, max, near, gathered);
    }
    /* Should our exp not be monotone in its last bits, the added terms make up for it. */
    const uint64_t far_mass = gb_total_mass(far, far_blocks, max);
    const uint64_t most_far_mass = GB_BLOCK * (far_mass + (far_mass >> 20) + far_blocks);

    gb_mass_bins bins;
    gb_sum_masses(&(gb_values){gathered->data, NULL, gathered->count}, max, &bins);
    const uint64_t least_mass = bins.total + rest + far_mass, most_mass = bins.total + rest + most_far_mass;
    *threshold = gb_mass_threshold(&bins, gb_mass_limit(least_mass, top_p));
    return *threshold >= near && *threshold == gb_mass_threshold(&bins, gb_mass_limit(most_mass, top_p));
}

/* The top-p threshold over the whole row. */
static float top_p_of_row(const gb_row *row, float temperature, float top_p, float *far,
                          gathered_values *gathered) {
    float threshold;
    if (find_near_threshold(row, temperature, top_p, far, gathered, &threshold))
        return threshold;
    for (uint32_t i = 0; i < row->count; i++)
        gathered->data[i] = gb_scale(row->logits[i], temperature);
    gathered->count = row->count;
    return top_p_of_gathered(gathered, gb_scale(row->max, temperature), top_p);
}

/* The smallest s that top-k and top-p keep. */
static float least_kept(const gb_row *row, const gb_row_settings *settings, float *values, float *far) {
    const float temperature = settings->temperature;
    const float max = gb_scale(row->max, temperature);
    const bool limits_mass = settings->top_p < 1.0f && max > gb_negative_infinity();
    gathered_values gathered = {.data = values};
    if (settings->top_k <= 0 || (uint32_t)settings->top_k >= row->count)
        return limits_mass ? top_p_of_row(row, temperature, settings->top_p, far, &gathered)
                           : gb_negative_infinity();
    const float kth = top_k_logit(row, (uint32_t)settings->top_k, &gathered);
    const float least = gb_scale(kth, temperature);
    if (!limits_mass)
        return least;
    scale_gathered(&gathered, temperature, least);
    return top_p_of_gathered(&gathered, max, settings->top_p);
}

int32_t gb_sample_row(const float *logits, uint32_t count, const gb_row_settings *settings, void *scratch) {
    float *values = scratch, *block_max = values + count;
    gb_row row;
    if (!gb_row_scan(logits, count, block_max, &row))
        return GB_TOKEN_NAN;
    const float infinity = -gb_negative_infinity();
    if (row.max == -infinity)
        return GB_TOKEN_NO_CANDIDATE;
    if (settings->temperature == 0.0f)
        return (int32_t)gb_row_argmax(&row);
    const float least =
        row.max == infinity ? -infinity : least_kept(&row, settings, values, block_max + row.block_count);
    const gb_draw_rule rule = {.temperature = settings->temperature,
                               .least = least,
                               .floor = gb_floor_of(settings),
                               .seed = settings->seed};
    return gb_draw(&row, &rule);
}
