/* SPDX-License-Identifier: Apache-2.0 */
#include "export/random_weights.h"

#include "tensor/convert.h"

#include <math.h>
#include <string.h>

gb_uniform gb_random_matrix(int64_t inputs) {
    float half_width = (float)sqrt(3.0 / (double)inputs); /* a uniform's variance is half_width^2 / 3 */
    return (gb_uniform){-half_width, half_width};
}

gb_uniform gb_random_gain(void) {
    return (gb_uniform){0.75f, 1.25f};
}

gb_uniform gb_random_difference(void) {
    return (gb_uniform){-0.25f, 0.25f};
}

gb_uniform gb_random_bias(void) {
    return (gb_uniform){-1.0f, 1.0f};
}

/* The output function of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators",
 * 2014), a bijection that turns a counter into random bits. */
static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static const uint64_t GOLDEN = UINT64_C(0x9e3779b97f4a7c15); /* its increment: 2^64 / golden ratio */

uint64_t gb_random_stream(uint64_t seed, const char *name) {
    uint64_t stream = mix(seed + GOLDEN);
    for (; *name; name++)
        stream = mix(stream + GOLDEN * (uint64_t)(unsigned char)*name);
    return stream;
}

static float element(uint64_t stream, gb_uniform uniform, uint64_t index) {
    uint64_t bits = mix(stream + GOLDEN * (index + 1));
    float unit = (float)(uint32_t)(bits >> 40) * 0x1p-24f; /* exact: [0, 1) in steps of 2^-24 */
    return uniform.low + (uniform.high - uniform.low) * unit;
}

void gb_random_fill(uint64_t stream, gb_uniform uniform, gb_dtype dtype, uint64_t first, uint64_t count,
                    void *output) {
    uint8_t *bytes = output;
    for (uint64_t i = 0; i < count; i++) {
        float value = element(stream, uniform, first + i);
        if (dtype == GB_F32) {
            memcpy(bytes + 4 * i, &value, sizeof value);
        } else {
            uint16_t half = dtype == GB_BF16 ? gb_bf16_from_float(value) : gb_f16_from_float(value);
            memcpy(bytes + 2 * i, &half, sizeof half);
        }
    }
}

/* A word gives eight bytes, the lowest first. */
void gb_random_bytes(uint64_t stream, uint64_t first, uint64_t count, uint8_t *output) {
    uint64_t i = 0;
    while (i < count) {
        uint64_t at = first + i, word = mix(stream + GOLDEN * (at / 8 + 1));
        if (at % 8 == 0 && count - i >= 8) {
            for (int b = 0; b < 8; b++)
                output[i++] = (uint8_t)(word >> (8 * b));
        } else {
            output[i++] = (uint8_t)(word >> (8 * (at % 8)));
        }
    }
}
