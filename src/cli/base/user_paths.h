/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths within the user's home.
 */
#ifndef GUMBEL_CLI_BASE_USER_PATHS_H
#define GUMBEL_CLI_BASE_USER_PATHS_H

#include "cli/base/storage.h"
#include "gumbel.h"

/* Appends the path, with "~" and "~/..." replaced by the user's home as shells do. */
void cli_add_user_path(gb_byte_buffer *text, const char *path);

/* Appends the path of a file of that name in the folder for what programs keep between two runs:
 * $XDG_STATE_HOME/gumbel, or ~/.local/state/gumbel. The folder is made, for the user alone. False: there is
 * no place for it; nothing is appended. */
bool cli_state_path(const char *name, gb_byte_buffer *text);

#endif
