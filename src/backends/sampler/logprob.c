/* SPDX-License-Identifier: Apache-2.0
 *
 * Log-probabilities: the nodes log_normalizer, log_probability and top_ids.
 */
#include "backends/sampler/rule.h"
#include "backends/sampler/sampler.h"
#include "backends/sampler/scan.h"
#include "backends/sampler/select.h"

/* The logarithm of a mass in units of 2^-40, above 0: that of the nearest float, and what it leaves out. */
static float log_of_mass(uint64_t mass) {
    const float nearest = (float)mass;
    const double rest = ((double)mass - (double)nearest) / (double)nearest;
    return gb_log(nearest * 0x1p-40f) + (float)rest;
}

void gb_log_normalizer(const float *logits, uint32_t count, float normalizer[2]) {
    normalizer[0] = gb_largest(&(gb_values){logits, NULL, count});
    normalizer[1] = log_of_mass(gb_total_mass(logits, count, normalizer[0]));
}

float gb_log_probability(const float *logits, uint32_t count, const float normalizer[2], int32_t id) {
    if (id < 0 || (uint32_t)id >= count)
        return gb_negative_infinity();
    const float x = logits[id];
    if (x == normalizer[0]) /* also where both are infinite */
        return -normalizer[1];
    return (float)(((double)x - (double)normalizer[0]) - (double)normalizer[1]);
}

/* Puts a column in its place among the best so far; the last one falls out where there are limit. */
static void insert(const float *logits, uint32_t column, uint32_t limit, int32_t *ids, uint32_t *found) {
    uint32_t place = *found < limit ? (*found)++ : limit - 1;
    for (; place > 0 && logits[ids[place - 1]] < logits[column]; place--)
        ids[place] = ids[place - 1];
    ids[place] = (int32_t)column;
}

void gb_top_ids(const float *logits, uint32_t count, uint32_t limit, int32_t *ids) {
    uint32_t found = 0;
    for (uint32_t begin = 0; begin < count; begin += GB_BLOCK) {
        const uint32_t end = begin + gb_block_size(count, begin);
        bool has_nan = false;
        if (found == limit && !(gb_block_max(logits + begin, end - begin, &has_nan) > logits[ids[limit - 1]]))
            continue;
        for (uint32_t i = begin; i < end; i++)
            if (found < limit || logits[i] > logits[ids[limit - 1]])
                insert(logits, i, limit, ids, &found);
    }
}
