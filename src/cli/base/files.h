/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole files: reading them, or standard input, writing them, and what killed writers left of them.
 */
#ifndef GUMBEL_CLI_BASE_FILES_H
#define GUMBEL_CLI_BASE_FILES_H

#include "cli/base/storage.h"
#include "gumbel.h"

/* Appends the content of the file at path to text; "-" is standard input. Errors: IO, naming the file. */
gumbel_status cli_read_file(const char *path, gb_byte_buffer *text, gumbel_error *error);

/* Writes text to the file at path, which is replaced when it is whole. Errors: ARGUMENT, IO, naming the file.
 */
gumbel_status cli_write_file(const char *path, const gb_byte_buffer *text, gumbel_error *error);

/* Removes what killed writers have left (.gumbel-temporary-*) in the folder in which path lies. */
void cli_clear_folder_of(const char *path);

/* Drops one newline from the end: editors and echo put it there, prompts do not mean it. */
void cli_drop_last_newline(gb_byte_buffer *text);

#endif
