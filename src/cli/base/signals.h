/* SPDX-License-Identifier: Apache-2.0
 *
 * Ctrl-C ends what is running, not the program: the first one is noted and cancels the session at work, a
 * second one while that is still under way ends the program at once with status 130.
 */
#ifndef GUMBEL_CLI_BASE_SIGNALS_H
#define GUMBEL_CLI_BASE_SIGNALS_H

#include "gumbel.h"

/* Takes SIGINT over from here on. Interrupted reads return with EINTR. */
void cli_catch_interrupt(void);

/* Lets SIGTERM, SIGHUP and SIGPIPE end the work as Ctrl-C does, for a command that can be cancelled. */
void cli_catch_termination(void);

/* Gives the signals that were taken over back to what they did before. */
void cli_release_signals(void);

/* The session that Ctrl-C cancels; NULL: Ctrl-C is only noted. */
void cli_cancel_on_interrupt(gumbel_session *session);

/* Whether there was a Ctrl-C since the last call of cli_clear_interrupt. */
bool cli_interrupted(void);
void cli_clear_interrupt(void);

#endif
