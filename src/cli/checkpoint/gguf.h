/* SPDX-License-Identifier: Apache-2.0
 *
 * GGUF files in folders; what their names say is hub/gguf_names.h's.
 */
#ifndef GUMBEL_CLI_CHECKPOINT_GGUF_H
#define GUMBEL_CLI_CHECKPOINT_GGUF_H

#include "gumbel.h"

/* Whether the regular file at path begins as a GGUF does. */
bool cli_is_gguf(const char *path);

/* Finds the one model among the .gguf files in the folder at path, or where there is none, in the folders
 * within it. Of several, quant (NULL: no choice) chooses as hub_choose_gguf does. *gguf becomes its path, of
 * a split one that of the first part, or NULL where there is none; free with free(). shown is how a user can
 * name the folder. Errors: ARGUMENT where there are several models, naming them; IO. */
gumbel_status cli_find_gguf(const char *path, const char *shown, const char *quant, char **gguf,
                            gumbel_error *error);

#endif
