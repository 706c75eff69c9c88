/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What follows the last component that is a number. */
static const char *after_layer(const char *weight) {
    const char *rest = weight;
    for (const char *dot = strchr(weight, '.'); dot; dot = strchr(dot + 1, '.')) {
        size_t digits = strspn(dot + 1, "0123456789");
        if (digits > 0 && dot[1 + digits] == '.')
            rest = dot + 2 + digits;
    }
    return rest;
}

void cli_profile_name(const char *op, const char *weight, char name[CLI_PROFILE_NAME]) {
    static const char last[] = ".weight";
    const char *rest = weight ? after_layer(weight) : "";
    size_t length = strlen(rest);
    if (length >= sizeof last && strcmp(rest + length - (sizeof last - 1), last) == 0)
        length -= sizeof last - 1;
    snprintf(name, CLI_PROFILE_NAME, "%s%s%.*s", op, length ? " " : "", (int)length, rest);
}

void cli_profile_add(void *user, const char *op, const char *weight, double seconds) {
    cli_profile *profile = user;
    if (!profile->is_on)
        return;
    char name[CLI_PROFILE_NAME];
    cli_profile_name(op, weight, name);
    size_t i = 0;
    while (i < profile->count && strcmp(profile->entries[i].name, name) != 0)
        i++;
    if (i == CLI_MOST_PROFILED)
        i--;
    if (i == profile->count) {
        profile->entries[i] = (cli_profile_entry){0};
        memcpy(profile->entries[i].name, name, sizeof name);
        profile->count++;
    }
    profile->entries[i].seconds += seconds;
    profile->entries[i].calls++;
}

static int compare(const void *a, const void *b) {
    const cli_profile_entry *first = a, *second = b;
    return (first->seconds < second->seconds) - (first->seconds > second->seconds);
}

void cli_profile_sort(cli_profile *profile) {
    qsort(profile->entries, profile->count, sizeof *profile->entries, compare);
}

double cli_profile_seconds(const cli_profile *profile) {
    double sum = 0;
    for (size_t i = 0; i < profile->count; i++)
        sum += profile->entries[i].seconds;
    return sum;
}
