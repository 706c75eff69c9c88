/* SPDX-License-Identifier: Apache-2.0
 *
 * The stop strings of `run` and `chat`: their flags, and the texts that the flags stand for.
 */
#ifndef GUMBEL_CLI_MODEL_STOPS_H
#define GUMBEL_CLI_MODEL_STOPS_H

#include "cli/options/options.h"

typedef struct cli_stop_options {
    cli_strings strings; /* with escapes, as they were given */
    bool included;
} cli_stop_options;

extern const cli_option cli_stop_table[];

/* The texts; start from {0}. */
typedef struct cli_stops {
    char *texts[CLI_MOST_STRINGS];
    size_t count;
    bool included;
} cli_stops;

/* Replaces the texts by those of the options: \n, \r, \t and \\ stand for a newline, a carriage return, a tab
 * and a backslash; any other backslash for itself. */
void cli_read_stops(const cli_stop_options *options, cli_stops *stops);
void cli_stops_free(cli_stops *stops);

/* Puts them into the options of a generation, which must not outlive them. They need its tokenizer: where it
 * has none, ARGUMENT. */
gumbel_status cli_apply_stops(const cli_stops *stops, gumbel_generate_options *options, gumbel_error *error);

#endif
