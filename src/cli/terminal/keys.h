/* SPDX-License-Identifier: Apache-2.0
 *
 * Characters from a terminal, for the line editor. What is pasted comes as one key, whatever is in it: bytes
 * between ESC [ 2 0 0 ~ and ESC [ 2 0 1 ~, which the terminal puts around it.
 */
#ifndef GUMBEL_CLI_TERMINAL_KEYS_H
#define GUMBEL_CLI_TERMINAL_KEYS_H

#include "cli/base/storage.h"

#include <stdbool.h>
#include <wchar.h>

/* Keys beside characters; C1 characters, which are not taken from the terminal. */
enum {
    CLI_KEY_PASTE = 0x80, /* a paste is complete */
    CLI_KEY_REDRAW = 0x81 /* the window's size changed, or the program was stopped */
};

/* Start from {.file = the terminal}. */
typedef struct cli_terminal_keys {
    int file;
    gb_byte_buffer
        paste;     /* the last one: UTF-8, lines separated by newlines, none at the end, no zero bytes */
    char ahead[8]; /* read, but not taken */
    size_t ahead_count;
    mbstate_t partial; /* of a character whose first bytes were read */
} cli_terminal_keys;

/* Waits for the next character or key. Returns 1; 0 at the end of the input; -1 after Ctrl-C or an error. */
int cli_next_key(cli_terminal_keys *keys, wchar_t *key);

void cli_terminal_keys_free(cli_terminal_keys *keys);

#endif
