/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of JSON that anything can be made into.
 */
#ifndef GUMBEL_CLI_BASE_JSON_H
#define GUMBEL_CLI_BASE_JSON_H

#include <jansson.h>
#include <stdio.h>

/* A string. Bytes that are not UTF-8 become U+FFFD each. */
json_t *cli_json_text(const char *text, size_t length);

/* A number, or null for one that is not finite. */
json_t *cli_json_number(double value);

/* The same of cli_decimal(value). */
json_t *cli_json_float(float value);

/* Prints a value with jansson's flags; on a terminal in ASCII, so that no character can command it. */
void cli_json_print(const json_t *value, size_t flags, FILE *file);

#endif
