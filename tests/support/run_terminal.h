/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a program on a terminal of its own, types at it, and looks at what it draws and how it leaves the
 * terminal.
 */
#ifndef GUMBEL_TESTS_RUN_TERMINAL_H
#define GUMBEL_TESTS_RUN_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct terminal_run {
    pid_t process;
    int ours, theirs;      /* the two ends of the terminal; theirs is kept open to look at its settings */
    char *output;          /* all that was drawn; ends in a zero */
    size_t length, looked; /* bytes drawn, and how many of them were waited for */
} terminal_run;

/* Starts words[0], a path, with the words up to NULL, in a window of so many columns and 24 rows. Ends the
 * test on an error. */
void start_on_terminal(terminal_run *run, unsigned short columns, const char *const *words);

void resize_terminal(const terminal_run *run, unsigned short columns);

/* Sends text as typed; what type_text sends as a paste has the terminal's brackets around it. */
void type_text(const terminal_run *run, const char *text);
void paste_text(const terminal_run *run, const char *text);

/* Reads until text was drawn after what was waited for last. Ends the test after a minute. */
void await_text(terminal_run *run, const char *text);

/* Reads for so many milliseconds. */
void watch_terminal(terminal_run *run, int milliseconds);

/* Whether keys are echoed and gathered into lines, and pastes have no brackets, as a shell leaves it. */
bool terminal_is_restored(const terminal_run *run);

/* Waits for the end of the process: its exit status, 128 + the signal that ended it, or -1 after a minute. */
int finish_on_terminal(terminal_run *run);

/* Frees what is kept, and ends a process that has not ended. */
void free_terminal_run(terminal_run *run);

#endif
