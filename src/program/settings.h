/* SPDX-License-Identifier: Apache-2.0
 *
 * The sampling settings as a table, made from roles.def: what gumbel.h tells of each, and where a program has
 * its input and its recommended value.
 */
#ifndef GUMBEL_PROGRAM_SETTINGS_H
#define GUMBEL_PROGRAM_SETTINGS_H

#include "base/status.h"
#include "program/program.h"

typedef enum gb_setting_kind {
    GB_SETTING_TEMPERATURE = 1,
    GB_SETTING_MASK = 2,
    GB_SETTING_PENALTY = 3
} gb_setting_kind;

typedef struct gb_setting {
    gumbel_setting shown; /* first: gumbel.h's functions are given its address */
    gb_role role;
    gb_setting_kind kind;
    gb_op mask;                          /* of a MASK: its op */
    bool is_minimal;                     /* the minimal sampler takes it too */
    size_t recommended, has_recommended; /* offsets in gb_metadata */
} gb_setting;

enum {
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, sampler, ...) GB_SETTING_INDEX_##NAME,
#include "program/roles.def"
    GB_SETTING_COUNT
};

extern const gb_setting gb_settings[GB_SETTING_COUNT];

/* Whether a value lies in the setting's range. */
bool gb_setting_accepts(const gb_setting *setting, double value);

/* "0 or a number in [0.0001, 10000]", "an integer in [-1, 2147483647]"; returns text. */
enum { GB_RANGE_TEXT = 80 };
const char *gb_setting_range(const gb_setting *setting, char text[GB_RANGE_TEXT]);

/* The field of a whole gumbel_sampling. */
double gb_setting_get(const gb_setting *setting, const gumbel_sampling *sampling);
void gb_setting_put(const gb_setting *setting, double value, gumbel_sampling *sampling);

/* The recommended value; false where there is none. */
bool gb_recommended(const gb_setting *setting, const gb_metadata *metadata, double *value);
void gb_recommend(const gb_setting *setting, double value, gb_metadata *metadata);

#endif
