/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder in which programs are kept that commands have made from checkpoints: $XDG_CACHE_HOME/gumbel, or
 * ~/.cache/gumbel (XDG Base Directory Specification 0.8). A program is code that runs on the user's data, so
 * the folder and all in it must belong to the user, and nobody else may be able to write there.
 */
#ifndef GUMBEL_CLI_CACHE_FOLDER_H
#define GUMBEL_CLI_CACHE_FOLDER_H

#include "gumbel.h"

#include <sys/types.h>

/* The folder's path, whether it is there or not; free with free(). Errors: UNSUPPORTED where the environment
 * tells of no place. */
gumbel_status cli_cache_folder(char **path, gumbel_error *error);

/* Refuses what is not of that kind, S_IFDIR or S_IFREG, is another user's, or can be written by others, and
 * says what to do. *is_there: there is something at path; nothing is no error. Errors: IO. */
gumbel_status cli_cache_check(const char *path, mode_t kind, bool *is_there, gumbel_error *error);

#endif
