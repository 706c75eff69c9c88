/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of the files in a folder.
 */
#ifndef GUMBEL_CLI_CHECKPOINT_NAMES_H
#define GUMBEL_CLI_CHECKPOINT_NAMES_H

#include "cli/base/storage.h"
#include "gumbel.h"

/* Names that grow. Start from {0}. */
typedef struct cli_names {
    char **items;
    size_t count, capacity;
} cli_names;

/* Adds a copy of name unless it is there. */
void cli_names_add(cli_names *names, const char *name);
void cli_names_free(cli_names *names);

/* Adds the names in the folder at path, sorted, but for those that begin with a dot. False where it cannot be
 * read; errno says why. */
bool cli_names_read(cli_names *names, const char *path);

/* "FOLDER/NAME" in new memory. */
char *cli_join(const char *folder, const char *name);

#endif
