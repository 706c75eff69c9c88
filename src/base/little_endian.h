/* SPDX-License-Identifier: Apache-2.0
 *
 * Little-endian numbers at a place that the caller has checked; it need not be aligned.
 */
#ifndef GUMBEL_BASE_LITTLE_ENDIAN_H
#define GUMBEL_BASE_LITTLE_ENDIAN_H

#include <stdint.h>

static inline void gb_put_u32(uint8_t *bytes, uint32_t value) {
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}
static inline void gb_put_u64(uint8_t *bytes, uint64_t value) {
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}
static inline uint32_t gb_get_u32(const uint8_t *bytes) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value |= (uint32_t)bytes[i] << (8 * i);
    return value;
}
static inline uint64_t gb_get_u64(const uint8_t *bytes) {
    return gb_get_u32(bytes) | (uint64_t)gb_get_u32(bytes + 4) << 32;
}

#endif
