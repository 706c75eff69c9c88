/* SPDX-License-Identifier: Apache-2.0
 *
 * What an engine over several processes has in this one.
 */
#ifndef GUMBEL_RUN_PROCESS_GROUP_H
#define GUMBEL_RUN_PROCESS_GROUP_H

#include "backends/backends.h"

/* Fills in what the options leave open: a device, that of the process's number on its host, where the backend
 * has several, and threads, a share of the host's cores. Errors: ARGUMENT (several devices), UNSUPPORTED (the
 * backend has no ranks), the backend's. */
gumbel_status gb_settle_process(const gumbel_process_group *group, const gb_backend_entry *entry,
                                gumbel_engine_options *options, int *device, gumbel_error *error);

#endif
