/* SPDX-License-Identifier: Apache-2.0
 *
 * Progressive formats: a float16 scale of the row, and in integers of that scale a group's own scale and zero
 * (Lin et al., "QServe: W4A8KV4 quantization and system co-design for efficient LLM serving", 2024). All
 * three are searched for the least squared error. A smaller row scale gives groups finer steps and cuts off
 * the largest weights.
 */
#include "export/quantize/quantizer.h"

#include "tensor/convert.h"

#include <math.h>

/* Of the largest weight: with 119 the integers reach 127 in groups whose zero is off the middle. */
static const float REACH = 119.0f;
static const float ROW_SCALES[] = {1.0f, 0.9f, 0.8f, 0.7f, 0.6f};
enum { ROW_SCALE_COUNT = sizeof ROW_SCALES / sizeof *ROW_SCALES };

/* Of a group's range, what lies outside being clipped: the least that steps are tried for, and what is about
 * the best one, by which row scales are compared. */
static const float LEAST_SHRINK = 0.8f, USUAL_SHRINK = 0.95f;

/* Loops that compilers make vectors of, with sums in an order that is fixed. */
static float squared_error(const float *values, uint32_t count, float highest, gb_group_integers group) {
    const float scale = (float)group.scale, zero = (float)group.zero, inverse = 1.0f / scale;
    float squares[GB_MAX_GROUP];
    for (uint32_t i = 0; i < count; i++) {
        float code = gb_round_code(values[i] * inverse + zero, highest);
        float error = (code - zero) * scale - values[i];
        squares[i] = error * error;
    }
    for (uint32_t width = count / 2; width > 0; width /= 2)
        for (uint32_t i = 0; i < width; i++)
            squares[i] += squares[i + width];
    return squares[0];
}

typedef struct found_group {
    gb_group_integers integers;
    float error;
} found_group;

/* A group in units of the row's scale. */
typedef struct group_values {
    const float *values;
    uint32_t count, bits;
    float highest; /* code */
    float center;
    float step; /* with which the codes cover the range */
} group_values;

static group_values measure_group(const gb_format *format, const float *values) {
    float low = values[0], high = values[0];
    for (uint32_t i = 1; i < format->group; i++) {
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
    }
    const float highest = (float)((1u << format->bits) - 1u);
    return (group_values){values,  format->group,       format->bits,
                          highest, 0.5f * (low + high), (high - low) / highest};
}

/* The zero, before it is rounded, that puts the middle code at the center of the range. */
static float zero_of(const group_values *group, uint32_t scale) {
    return 0.5f * group->highest - group->center / (float)scale;
}

static uint32_t clamp_scale(float scale, uint32_t bits) {
    const float most = (float)(1u << (8 - bits));
    return (uint32_t)(scale < 1 ? 1 : scale > most ? most : scale);
}

static void try_zero(const group_values *group, uint32_t scale, float zero, found_group *best) {
    gb_group_integers tried = {.zero = (uint32_t)(zero < 0                ? 0
                                                  : zero > group->highest ? group->highest
                                                                          : zero)};
    const uint32_t most = gb_largest_group_scale(group->bits, tried.zero);
    tried.scale = scale < most ? scale : most;
    const float error = squared_error(group->values, group->count, group->highest, tried);
    if (error < best->error)
        *best = (found_group){tried, error};
}

static gb_group_integers search_group(const group_values *group) {
    const uint32_t first = clamp_scale(LEAST_SHRINK * group->step, group->bits);
    const uint32_t last = clamp_scale(group->step + 1, group->bits);
    found_group best = {{0, 1}, INFINITY};
    for (uint32_t scale = first; scale <= last; scale++) {
        const float zero = floorf(zero_of(group, scale));
        try_zero(group, scale, zero, &best);
        try_zero(group, scale, zero + 1, &best);
    }
    return best.integers;
}

/* About the error that a search leaves, for two tries. */
static float usual_error(const group_values *group) {
    const float scale = USUAL_SHRINK * group->step;
    found_group found = {{0, 1}, INFINITY};
    for (int more = 0; more < 2; more++) {
        const uint32_t tried = clamp_scale(scale + (float)more, group->bits);
        try_zero(group, tried, floorf(zero_of(group, tried) + 0.5f), &found);
    }
    return found.error;
}

static void scale_group(const float *values, uint64_t group, uint32_t count, float inverse, float *scaled) {
    for (uint32_t i = 0; i < count; i++)
        scaled[i] = values[group * count + i] * inverse;
}

/* About the error with that row scale; at least `most` where it is no less. */
static double row_error(const gb_format *format, const float *values, uint64_t groups, float scale,
                        double most) {
    float scaled[GB_MAX_GROUP];
    double error = 0;
    const double square = (double)scale * (double)scale;
    for (uint64_t g = 0; g < groups && error < most; g++) {
        scale_group(values, g, format->group, 1.0f / scale, scaled);
        const group_values group = measure_group(format, scaled);
        error += square * (double)usual_error(&group);
    }
    return error;
}

/* A row of zeros, or of numbers too small for float16, has a scale of 0. */
static float search_row_scale(const gb_format *format, const float *values, uint64_t groups, float largest) {
    double least = INFINITY;
    float best = 0;
    for (size_t i = 0; i < ROW_SCALE_COUNT; i++) {
        const float scale = gb_float_from_f16(gb_f16_from_float(largest / REACH * ROW_SCALES[i]));
        if (!(scale > 0) || !isfinite(scale))
            return scale;
        const double error = row_error(format, values, groups, scale, least);
        if (error < least) {
            least = error;
            best = scale;
        }
    }
    return best;
}

bool gb_find_row_scale(const gb_format *format, const float *values, uint64_t columns, float *scale) {
    float largest = 0;
    bool is_finite = true;
    for (uint64_t i = 0; i < columns; i++) {
        is_finite &= isfinite(values[i]) != 0;
        largest = fabsf(values[i]) > largest ? fabsf(values[i]) : largest;
    }
    *scale = is_finite ? search_row_scale(format, values, columns / format->group, largest) : INFINITY;
    return isfinite(*scale) != 0;
}

gb_group_integers gb_find_group_integers(const gb_format *format, const float *values, float row_scale) {
    float scaled[GB_MAX_GROUP] = {0};
    scale_group(values, 0, format->group, row_scale > 0 ? 1.0f / row_scale : 0.0f, scaled);
    const group_values group = measure_group(format, scaled);
    return search_group(&group);
}
