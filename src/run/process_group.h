/* SPDX-License-Identifier: Apache-2.0
 *
 * What an engine over several processes has in this one.
 */
#ifndef GUMBEL_RUN_PROCESS_GROUP_H
#define GUMBEL_RUN_PROCESS_GROUP_H

#include "backends/backends.h"

/* Its device: the one of the options, or that of the process's number on its host, where the backend has
 * several. Errors: ARGUMENT (several devices), UNSUPPORTED (the backend has no ranks), the backend's. */
gumbel_status gb_settle_process(const gumbel_process_group *group, const gb_backend_entry *entry,
                                const gumbel_engine_options *options, int *device, gumbel_error *error);

#endif
