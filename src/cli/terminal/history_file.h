/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of what was typed: an entry a line, with \n for a newline and \\ for a backslash. Any number of
 * processes can use it: each adds its entries, nobody replaces those of another. It is the user's alone.
 */
#ifndef GUMBEL_CLI_TERMINAL_HISTORY_FILE_H
#define GUMBEL_CLI_TERMINAL_HISTORY_FILE_H

enum {
    CLI_HISTORY_ENTRIES = 1000,          /* that are kept when the file is read */
    CLI_HISTORY_ENTRY_BYTES = 16 * 1024, /* a longer one is not written */
    CLI_HISTORY_FILE_BYTES = 1024 * 1024 /* the file is shortened at half of this, or twice the entries */
};

typedef void (*cli_history_callback)(void *user, const char *entry);

/* Calls back with the last entries, oldest first, and shortens a file that has grown too long. What is no
 * regular file, or cannot be read, has no entries. */
void cli_history_read(const char *path, cli_history_callback callback, void *user);

/* Adds an entry. What fails is left undone. */
void cli_history_append(const char *path, const char *entry);

#endif
