/* SPDX-License-Identifier: Apache-2.0
 *
 * On how many devices a program runs best, told from its graph and from what the devices are.
 */
#ifndef GUMBEL_RUN_ADVISE_DEVICES_H
#define GUMBEL_RUN_ADVISE_DEVICES_H

#include "backends/backends.h"

/* What gumbel_advise_devices does, on these devices of the backend. options: with slots and max_context
 * filled in. advice is written whole, without its size. Errors: MEMORY, FORMAT, and of the first device alone
 * UNSUPPORTED. */
gumbel_status gb_advise_devices(const gb_program *program, const gb_backend_entry *entry,
                                const gumbel_engine_options *options, const gb_device_info *devices,
                                uint32_t count, gumbel_device_advice *advice, gumbel_error *error);

#endif
