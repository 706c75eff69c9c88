/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/convert.h"

uint16_t gb_f16_from_float(float value) {
    uint32_t bits = gb_bits_from_float(value);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) /* rounds to 65536 or more */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* below 2^-14: adding 0.5 aligns the last bit with 2^-24 and rounds */
        float aligned = gb_float_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (gb_bits_from_float(aligned) - 0x3f000000u));
    }
    uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return (uint16_t)(sign | ((rounded - 0x38000000u) >> 13));
}
