/* SPDX-License-Identifier: Apache-2.0
 *
 * The terminal of a conversation. While it is taken, it puts brackets around what is pasted, and keeps what
 * is typed during a reply for the next prompt. However the program ends, and while it is stopped, the
 * terminal is as it was before.
 */
#ifndef GUMBEL_CLI_TERMINAL_TERMINAL_H
#define GUMBEL_CLI_TERMINAL_TERMINAL_H

#include <stdbool.h>

/* The columns of the terminal that standard output is; 0 where they are not known or too few for a word. */
unsigned cli_terminal_columns(void);

/* Takes the terminal that standard input and output are, and hushes it. False: they are none. */
bool cli_terminal_take(void);

/* The signal that a key sends on the terminal as it was: of Ctrl-C, Ctrl-\, Ctrl-Z; 0: none. */
int cli_terminal_signal_of(char key);

/* Lets no key be echoed or act, but for those that send signals, until lines are read again. */
void cli_terminal_hush(void);

/* Whether the window changed its size, or the program was stopped and goes on, since the last call. */
bool cli_terminal_changed(void);

/* Gives the terminal back as it was. */
void cli_terminal_release(void);

/* The same for a signal handler that ends the program. Does nothing when the terminal is not taken. */
void cli_terminal_restore(void);

#endif
