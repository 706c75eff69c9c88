/* SPDX-License-Identifier: Apache-2.0
 *
 * GGUF files by their names: the one in a folder, and the parts NAME-00001-of-00002.gguf of a split one.
 */
#ifndef GUMBEL_CLI_CHECKPOINT_GGUF_H
#define GUMBEL_CLI_CHECKPOINT_GGUF_H

#include "gumbel.h"

/* Whether the regular file at path begins as a GGUF does. */
bool cli_is_gguf(const char *path);

/* Whether both names are parts of one GGUF: they are equal but for the number of the part. */
bool cli_is_part_of_gguf(const char *name, const char *first);

/* Finds the one model among the .gguf files in the folder at path, or where there is none, in the folders
 * within it. *name becomes its path within the folder, of a split one that of the first part, or NULL where
 * there is none; free with free(). shown is how a user can name the folder. Errors: ARGUMENT where there are
 * several models, naming them; IO. */
gumbel_status cli_find_gguf(const char *path, const char *shown, char **name, gumbel_error *error);

#endif
