/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a value from text: the whole text must be the value, and it must lie in its range. Used for flags
 * and for the commands inside `chat`. None of them prints.
 */
#ifndef GUMBEL_CLI_VALUES_H
#define GUMBEL_CLI_VALUES_H

#include "cli/storage.h"

#include <stdbool.h>

/* The interval [low, high], or (low, high]; also_value may lie outside it. low == high == 0: anything. */
typedef struct cli_range {
    double low, high;
    bool low_excluded;
    bool has_also;
    double also_value;
} cli_range;

/* "an integer in [1, 1024]", "0 or a number in [0.0001, 10000]". */
void cli_describe_range(const cli_range *range, bool integer, char *text, size_t capacity);

/* Decimal numbers; false when text is something else or outside the range. */
bool cli_parse_integer(const char *text, const cli_range *range, int64_t *value);
bool cli_parse_number(const char *text, const cli_range *range, double *value);

/* 0 .. 2^64-1, or -1, which gives *draw = true. */
bool cli_parse_seed(const char *text, bool *draw, uint64_t *value);

/* Ids separated by commas, blanks or both: "2,17,99". At least one; none above 2^31-1. tokens must be empty
 * and stays so on failure. */
bool cli_parse_tokens(const char *text, cli_tokens *tokens);

/* Whether value is one of the words in choices, which are separated by single blanks. */
bool cli_is_choice(const char *value, const char *choices);

#endif
