/* SPDX-License-Identifier: Apache-2.0
 *
 * What the process may still ask of the system once its model is loaded (docs/security.md): to compute, to
 * answer and to read files. Neither other programs nor connections, and by default no file is written, so
 * that a fault in what reads requests or a model's text is worth less to who finds it.
 */
#ifndef GUMBEL_CLI_SANDBOX_SANDBOX_H
#define GUMBEL_CLI_SANDBOX_SANDBOX_H

#include "cli/options/options.h"

typedef struct cli_sandbox_options {
    bool is_off;
} cli_sandbox_options;

/* The flag, for a cli_sandbox_options. */
extern const cli_option cli_sandbox_table[];

/* What the process needs besides. */
typedef struct cli_sandbox_needs {
    bool accepts;      /* connections at sockets that listen already */
    bool has_device;   /* whose driver is asked by ioctl and by files that are open for writing */
    bool loads_models; /* later on, which may export them into the cache */
    bool removes_socket;
    bool has_processes; /* with which it is connected */
} cli_sandbox_needs;

/* Whether this build has one. */
extern const bool cli_has_sandbox;

/* From here on the system refuses all else with EPERM, for all threads, until the process ends. Where this
 * build or the kernel has no seccomp nothing changes; a note tells of the kernel. */
void cli_sandbox_enter(const cli_sandbox_options *options, const cli_sandbox_needs *needs);

#endif
