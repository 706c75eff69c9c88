/* SPDX-License-Identifier: Apache-2.0
 *
 * --launched: this process is one of those that a launcher has started for one model. Rank 0 does what the
 * command says; the others follow it.
 */
#ifndef GUMBEL_CLI_MODEL_LAUNCHED_H
#define GUMBEL_CLI_MODEL_LAUNCHED_H

#include "gumbel.h"

/* Joins the others, once in a process; *group is the same every time, and stays until the process ends. */
gumbel_status cli_join_processes(gumbel_process_group **group, gumbel_error *error);

/* Of a rank other than 0: follows that, deaf to what a terminal or a launcher sends all of them to end them:
 * rank 0 lets the others end. */
gumbel_status cli_follow(gumbel_process_group *group, const gumbel_program *program,
                         const gumbel_engine_options *options, gumbel_error *error);

/* Once all engines are gone. Nothing where cli_join_processes was not called. */
void cli_leave_processes(void);

#endif
