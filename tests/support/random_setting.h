/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests that draw settings at random: a new one of roles.def takes part in them without further ado.
 */
#ifndef GUMBEL_TESTS_SUPPORT_RANDOM_SETTING_H
#define GUMBEL_TESTS_SUPPORT_RANDOM_SETTING_H

#include "gumbel.h"
#include "program/setting_kinds.h"

/* A value of the setting's range, in half of all cases the neutral one; values near its low end are more
 * frequent. random: 32 random bits. */
static inline double random_setting(const gumbel_setting *setting, uint32_t random) {
    const double share = (random >> 8) * 0x1p-24;
    const double value = setting->low + (setting->high - setting->low) * share * share * share;
    return random % 2 == 0 || (setting->low_excluded && value == setting->low) ? setting->neutral : value;
}

/* The same as an expression of the setting's type, from the columns of its row in roles.def. */
#define RANDOM_SETTING(dtype, neutral_, random, ...)                                                         \
    ((GB_C_TYPE(dtype))random_setting(&(const gumbel_setting){.neutral = neutral_, __VA_ARGS__}, (random)))

#endif
