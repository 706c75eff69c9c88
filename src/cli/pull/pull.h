/* SPDX-License-Identifier: Apache-2.0
 *
 * One download as the command line does it: what is downloaded is said first, with its size; then progress on
 * a terminal, or a line for each file; Ctrl-C, SIGTERM, SIGHUP and SIGPIPE end it, and keep what is there.
 */
#ifndef GUMBEL_CLI_PULL_PULL_H
#define GUMBEL_CLI_PULL_PULL_H

#include "hub/pull.h"

/* Plans and downloads. plan is left for the caller to look at; free with hub_plan_free in any case. Errors as
 * hub_plan_pull's and hub_pull's. */
gumbel_status cli_pull(const hub_name *name, unsigned connections, hub_plan *plan, gumbel_error *error);

/* The plan alone, without a download. */
gumbel_status cli_pull_plan(const hub_name *name, hub_plan *plan, gumbel_error *error);

#endif
