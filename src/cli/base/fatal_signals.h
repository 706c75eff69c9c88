/* SPDX-License-Identifier: Apache-2.0
 *
 * How a signal ends the command: temporary files are removed first, and where a mapped file has become
 * shorter (SIGBUS), that is said and the exit status is 1.
 */
#ifndef GUMBEL_CLI_BASE_FATAL_SIGNALS_H
#define GUMBEL_CLI_BASE_FATAL_SIGNALS_H

/* Takes over those signals that end the process. cli_catch_interrupt and cli_catch_termination take some of
 * them over in turn. A limit on the size of files (SIGXFSZ) becomes an error of writing. */
void cli_handle_fatal_signals(void);

#endif
