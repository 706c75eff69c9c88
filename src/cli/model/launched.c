/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model/launched.h"

#include <signal.h>
#include <stddef.h>

static gumbel_process_group *processes;

gumbel_status cli_join_processes(gumbel_process_group **group, gumbel_error *error) {
    const gumbel_status status = processes ? GUMBEL_OK : gumbel_process_group_join(0, &processes, error);
    *group = processes;
    return status;
}

gumbel_status cli_follow(gumbel_process_group *group, const gumbel_program *program,
                         const gumbel_engine_options *options, gumbel_error *error) {
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    return gumbel_process_group_follow(group, program, options, error);
}

void cli_leave_processes(void) {
    gumbel_process_group_leave(processes);
    processes = NULL;
}
