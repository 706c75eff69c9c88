/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/sampler/select.h"

#include "backends/sampler/rule.h"

#include <stddef.h>
#include <string.h>

enum {
    BIN_COUNT = 1 << GB_BIN_BITS,
    CHUNK = 1024 /* values per step: the sum of 2^20 over a chunk fits in 32 bits */
};

/* Keys in [low, low + span], in bins of 2^shift keys. */
typedef struct key_bins {
    uint32_t low, span;
    int shift;
} key_bins;

/* What is summed in the bins: 1 for each value, or its mass. */
typedef struct weight_rule {
    bool by_mass;
    float max;
} weight_rule;

/* Larger keys for larger floats; the same key for both zeros. NaNs lie outside of the keys of -inf..+inf. */
static inline uint32_t key_of(float x) {
    const uint32_t bits = gb_float_bits(x + 0.0f);
    return bits ^ ((uint32_t)((int32_t)bits >> 31) | 0x80000000);
}

static float value_of(uint32_t key) {
    return gb_float_from_bits((key & 0x80000000) ? key ^ 0x80000000 : ~key);
}

static key_bins bins_over(uint32_t low, uint32_t high) {
    const uint32_t span = high > low ? high - low : 0;
    const int bits = span == 0 ? 0 : 32 - __builtin_clz(span);
    return (key_bins){low, span, bits > GB_BIN_BITS ? bits - GB_BIN_BITS : 0};
}

/* The values of a chunk, through buffer where some of them are to be left out. */
static const float *load_chunk(const gb_values *values, uint32_t begin, uint32_t count, float *buffer) {
    const float *data = values->data + begin;
    if (values->keep == NULL)
        return data;
    const bool *keep = values->keep + begin;
    for (uint32_t i = 0; i < count; i++)
        buffer[i] = keep[i] ? data[i] : gb_negative_infinity();
    return buffer;
}

static uint32_t chunk_size(const gb_values *values, uint32_t begin) {
    return values->count - begin < CHUNK ? values->count - begin : CHUNK;
}

float gb_largest(const gb_values *values) {
    float largest = gb_negative_infinity();
    for (uint32_t i = 0; i < values->count; i++) {
        const bool larger = values->data[i] > largest && (values->keep == NULL || values->keep[i]);
        largest = larger ? values->data[i] : largest;
    }
    return largest;
}

/* The masses of a chunk, in two parts each. */
static void chunk_masses(const float *restrict data, uint32_t count, float max, uint32_t *restrict high,
                         uint32_t *restrict low) {
    for (size_t i = 0; i < count; i++)
        gb_mass_parts(data[i], max, &high[i], &low[i]);
}

uint64_t gb_total_mass(const float *values, uint32_t count, float max) {
    uint32_t high[CHUNK], low[CHUNK];
    uint64_t total = 0;
    for (uint32_t begin = 0; begin < count; begin += CHUNK) {
        const uint32_t size = count - begin < CHUNK ? count - begin : CHUNK;
        chunk_masses(values + begin, size, max, high, low);
        uint32_t high_sum = 0, low_sum = 0;
        for (size_t i = 0; i < size; i++) {
            high_sum += high[i];
            low_sum += low[i];
        }
        total += ((uint64_t)high_sum << 20) + low_sum;
    }
    return total;
}

static uint64_t weight_of(const weight_rule *rule, float value) {
    return rule->by_mass ? gb_mass(value, rule->max) : 1;
}

/* Adds the weights of those values of a chunk that lie in the bins. */
static void add_matching(const float *data, uint32_t count, const weight_rule *rule, const key_bins *bins,
                         uint64_t *sums) {
    enum { STEP = 32 };
    for (uint32_t begin = 0; begin < count; begin += STEP) {
        const uint32_t end = count - begin < STEP ? count : begin + STEP;
        /* Later rounds match few values; a vectorized loop sees where there is none. */
        uint32_t any = end - begin < STEP;
        if (end - begin == STEP) {
            for (size_t i = 0; i < STEP; i++)
                any |= key_of(data[begin + i]) - bins->low <= bins->span;
        }
        for (uint32_t i = begin; any != 0 && i < end; i++) {
            const uint32_t key = key_of(data[i]) - bins->low;
            if (key <= bins->span)
                sums[key >> bins->shift] += weight_of(rule, data[i]);
        }
    }
}

/* The value at which the running sum of weights, from the largest value down, first exceeds limit: the
 * smallest one such that the weight of all larger ones is at most limit. It lies in bins; above is the weight
 * of the values above them. -inf where the sum stays within limit. */
static float select_value(const gb_values *values, const weight_rule *rule, uint64_t limit, uint64_t above,
                          key_bins bins) {
    float buffer[CHUNK];
    uint64_t sums[BIN_COUNT];
    for (;;) {
        memset(sums, 0, sizeof sums);
        for (uint32_t begin = 0; begin < values->count; begin += CHUNK) {
            const uint32_t count = chunk_size(values, begin);
            add_matching(load_chunk(values, begin, count, buffer), count, rule, &bins, sums);
        }
        uint32_t bin = (bins.span >> bins.shift) + 1;
        do {
            if (bin == 0)
                return gb_negative_infinity();
            bin--;
            above += sums[bin];
        } while (above <= limit);
        above -= sums[bin];
        const uint32_t offset = bin << bins.shift, last = ((uint32_t)1 << bins.shift) - 1;
        if (bins.shift == 0)
            return value_of(bins.low + offset);
        /* The last bin may reach past the span, to values that count as above. */
        const uint32_t size = bins.span - offset < last ? bins.span - offset : last;
        bins = bins_over(bins.low + offset, bins.low + offset + size);
    }
}

float gb_ranked(const gb_values *values, uint32_t rank, float lowest, float largest) {
    return select_value(values, &(weight_rule){.by_mass = false}, rank - 1, 0,
                        bins_over(key_of(lowest), key_of(largest)));
}

/* The bin of a value by its distance from max; the last ones are for values without mass and NaNs. */
static inline uint32_t distance_bin(float value, float max) {
    const float bins_per_unit = (float)(BIN_COUNT - 1) / GB_MASSLESS_DISTANCE;
    float distance = max - value;
    distance = distance < GB_MASSLESS_DISTANCE ? distance : GB_MASSLESS_DISTANCE;
    const uint32_t below = 0u - (uint32_t)(value != max);
    distance = gb_float_from_bits(gb_float_bits(distance) & below);
    return (uint32_t)(int32_t)(distance * bins_per_unit);
}

void gb_sum_masses(const gb_values *values, float max, gb_mass_bins *bins) {
    float buffer[CHUNK];
    uint32_t high[CHUNK], low[CHUNK], positions[CHUNK];
    *bins = (gb_mass_bins){.values = values, .max = max};
    for (uint32_t begin = 0; begin < values->count; begin += CHUNK) {
        const uint32_t count = chunk_size(values, begin);
        const float *data = load_chunk(values, begin, count, buffer);
        chunk_masses(data, count, max, high, low);
        for (size_t i = 0; i < count; i++)
            positions[i] = distance_bin(data[i], max);
        for (size_t i = 0; i < count; i++)
            bins->sums[positions[i]] += ((uint64_t)high[i] << 20) + low[i];
    }
    for (size_t i = 0; i < BIN_COUNT; i++)
        bins->total += bins->sums[i];
}

/* The smallest key of a value within the given bin or a nearer one. */
static uint32_t first_key_of_bin(uint32_t bin, float max) {
    uint32_t below = key_of(gb_negative_infinity()) - 1, found = key_of(max);
    while (found - below > 1) {
        const uint32_t middle = below + (found - below) / 2;
        if (distance_bin(value_of(middle), max) <= bin)
            found = middle;
        else
            below = middle;
    }
    return found;
}

float gb_mass_threshold(const gb_mass_bins *bins, uint64_t limit) {
    uint64_t above = 0;
    uint32_t bin = 0;
    while (bin < BIN_COUNT && above + bins->sums[bin] <= limit)
        above += bins->sums[bin++];
    if (bin == BIN_COUNT)
        return gb_negative_infinity();
    const uint32_t low = first_key_of_bin(bin, bins->max);
    const uint32_t high = bin == 0 ? key_of(bins->max) : first_key_of_bin(bin - 1, bins->max) - 1;
    return select_value(bins->values, &(weight_rule){.by_mass = true, .max = bins->max}, limit, above,
                        bins_over(low, high));
}
