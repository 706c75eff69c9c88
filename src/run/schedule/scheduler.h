/* SPDX-License-Identifier: Apache-2.0
 *
 * The scheduler's thread over any slots; gumbel_scheduler_create gives it those of an engine.
 */
#ifndef GUMBEL_RUN_SCHEDULE_SCHEDULER_H
#define GUMBEL_RUN_SCHEDULE_SCHEDULER_H

#include "run/schedule/schedule.h"

/* Takes over the slots, also on an error. Errors as those of gumbel_scheduler_create. */
gumbel_status gb_scheduler_create(gb_slots_of_engine *slots, const gumbel_scheduler_options *options,
                                  gb_clock clock, void *clock_user, gumbel_scheduler **scheduler,
                                  gumbel_error *error);

#endif
