/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a step's time goes: the times of single ops, added up by op and weight over all layers.
 */
#ifndef GUMBEL_CLI_BENCH_PROFILE_H
#define GUMBEL_CLI_BENCH_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

enum { CLI_PROFILE_NAME = 96, CLI_MOST_PROFILED = 128 };

typedef struct cli_profile_entry {
    char name[CLI_PROFILE_NAME]; /* "linear mlp.down_proj" */
    double seconds, calls;
} cli_profile_entry;

/* Start from {0}. What would be one entry too many is added to the last. */
typedef struct cli_profile {
    bool is_on; /* otherwise times are not taken in */
    size_t count;
    cli_profile_entry entries[CLI_MOST_PROFILED];
} cli_profile;

/* A profile callback for the library; user is the cli_profile. */
void cli_profile_add(void *user, const char *op, const char *weight, double seconds);

/* An op and a weight as the name of an entry: layers do not count, so what stands up to a layer's number and
 * a last "weight" are left out. weight may be NULL. */
void cli_profile_name(const char *op, const char *weight, char name[CLI_PROFILE_NAME]);

/* Puts the entry of most time first. */
void cli_profile_sort(cli_profile *profile);

double cli_profile_seconds(const cli_profile *profile);

#endif
