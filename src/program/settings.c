/* SPDX-License-Identifier: Apache-2.0 */
#include "program/settings.h"

#include <stdio.h>

#define TYPE_GB_F32 GUMBEL_SETTING_FLOAT
#define TYPE_GB_I32 GUMBEL_SETTING_INT32
#define IS_MINIMAL_MINIMAL true
#define IS_MINIMAL_FULL false
#define MASK_OF_TEMPERATURE(NAME) GB_OP_NONE
#define MASK_OF_MASK(NAME) GB_OP_##NAME##_MASK
#define MASK_OF_PENALTY(NAME) GB_OP_NONE

const gb_setting gb_settings[GB_SETTING_COUNT] = {
#define GB_SETTING(number, NAME, name_, dtype, neutral_, metadata, kind_, sampler, ...)                      \
    [GB_SETTING_INDEX_##NAME] = {.shown = {.size = sizeof(gumbel_setting),                                   \
                                           .name = #name_,                                                   \
                                           .type = TYPE_##dtype,                                             \
                                           .offset = offsetof(gumbel_sampling, name_),                       \
                                           .neutral = neutral_,                                              \
                                           __VA_ARGS__},                                                     \
                                 .role = GB_ROLE_##NAME,                                                     \
                                 .kind = GB_SETTING_##kind_,                                                 \
                                 .mask = MASK_OF_##kind_(NAME),                                              \
                                 .is_minimal = IS_MINIMAL_##sampler,                                         \
                                 .recommended = offsetof(gb_metadata, name_),                                \
                                 .has_recommended = offsetof(gb_metadata, has_##name_)},
#include "program/roles.def"
};

/* gumbel_sampling has the field under the setting's name, of its type. */
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, sampler, ...)                         \
    _Static_assert(_Generic(((gumbel_sampling *)0)->name, GB_C_TYPE(dtype) : 1, default : 0),                \
                   "gumbel_sampling." #name " has another type in roles.def");
#include "program/roles.def"

static bool is_integer(const gb_setting *setting) {
    return setting->shown.type == GUMBEL_SETTING_INT32;
}

/* In the precision of the field, so that the nearest float to a limit is within it. */
bool gb_setting_accepts(const gb_setting *setting, double value) {
    const gumbel_setting *s = &setting->shown;
    double low = s->low, high = s->high;
    if (value == 0 && s->zero_allowed)
        return true;
    if (is_integer(setting)) {
        if (!(value >= INT32_MIN && value <= INT32_MAX) || value != (double)(int32_t)value)
            return false;
    } else {
        value = (double)(float)value, low = (double)(float)low, high = (double)(float)high;
    }
    return (s->low_excluded ? value > low : value >= low) && value <= high; /* false for a NaN */
}

const char *gb_setting_range(const gb_setting *setting, char text[GB_RANGE_TEXT]) {
    const gumbel_setting *s = &setting->shown;
    snprintf(text, GB_RANGE_TEXT, "%s%s in %c%.10g, %.10g]", s->zero_allowed ? "0 or " : "",
             is_integer(setting) ? "an integer" : "a number", s->low_excluded ? '(' : '[', s->low, s->high);
    return text;
}

double gb_setting_get(const gb_setting *setting, const gumbel_sampling *sampling) {
    const void *field = (const char *)sampling + setting->shown.offset;
    return is_integer(setting) ? (double)*(const int32_t *)field : (double)*(const float *)field;
}

void gb_setting_put(const gb_setting *setting, double value, gumbel_sampling *sampling) {
    void *field = (char *)sampling + setting->shown.offset;
    if (is_integer(setting))
        *(int32_t *)field = (int32_t)value;
    else
        *(float *)field = (float)value;
}

bool gb_recommended(const gb_setting *setting, const gb_metadata *metadata, double *value) {
    const char *fields = (const char *)metadata;
    const void *field = fields + setting->recommended;
    *value = is_integer(setting) ? (double)*(const uint64_t *)field : *(const double *)field;
    return *(const bool *)(fields + setting->has_recommended);
}

void gb_recommend(const gb_setting *setting, double value, gb_metadata *metadata) {
    char *fields = (char *)metadata;
    void *field = fields + setting->recommended;
    *(bool *)(fields + setting->has_recommended) = true;
    if (!is_integer(setting))
        *(double *)field = value;
    else
        *(uint64_t *)field = value > 0 ? (uint64_t)value : 0; /* metadata has no negative numbers */
}
