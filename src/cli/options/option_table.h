/* SPDX-License-Identifier: Apache-2.0
 *
 * One option of a table: finding it by name, naming it in messages, storing its value. For whatever reads
 * options: command lines, the environment, the commands inside `chat`.
 */
#ifndef GUMBEL_CLI_OPTIONS_OPTION_TABLE_H
#define GUMBEL_CLI_OPTIONS_OPTION_TABLE_H

#include "cli/options/options.h"

enum { CLI_OPTION_NAME = 64 };

/* An option and the structure that its value goes to. */
typedef struct cli_target {
    const cli_option_group *group;
    const cli_option *option;
    char *base;
} cli_target;

/* Whether the first length bytes of given are one of the names, which are separated by blanks. Underscores
 * count as dashes after the two that begin a long name. */
bool cli_has_name(const char *names, const char *given, size_t length);

/* The option with that name. */
bool cli_find_option(const cli_option_group *groups, void *arguments, const char *given, size_t length,
                     cli_target *found);

bool cli_takes_value(const cli_option *option);

/* The name that messages use: the first long one, else the first. Returns name. */
const char *cli_option_name(const cli_option *option, char name[CLI_OPTION_NAME]);

/* The field that the value goes to. Options of one field stand for each other. */
void *cli_option_field(const cli_target *found);

/* Stores a value; NULL where the option takes none. prefix begins the message that refuses it: "--top-p ",
 * "GUMBEL_TOP_P=". */
bool cli_store_value(const cli_target *found, const char *prefix, const char *value, gumbel_error *error);

/* The name that a mistyped flag was most likely meant to be, or NULL. */
const char *cli_suggest_option(const cli_option_group *groups, const char *given, char *found,
                               size_t capacity);

#endif
