/* SPDX-License-Identifier: Apache-2.0
 *
 * Engines over several processes: this one is rank 0, and the others are its forks, as a launcher would have
 * started them.
 */
#ifndef GUMBEL_TESTS_PROCESSES_H
#define GUMBEL_TESTS_PROCESSES_H

#include "gumbel.h"

#include <sys/types.h>

/* Says by torchrun's variables that this process is rank `rank` of `count`, of launch `launch`. */
void set_launch(uint32_t rank, uint32_t count, unsigned launch);

/* Forks the processes of ranks 1 .. count - 1, which follow rank 0 with the program and end with what that
 * returned. Fails the test where one cannot. */
void fork_followers(const gumbel_program *program, const gumbel_engine_options *options, uint32_t count,
                    unsigned launch, pid_t *processes);

/* Waits for those; the status of each must be that. */
void await_followers(const pid_t *processes, uint32_t count, gumbel_status status);

/* gumbel_engine_create with a group of that many processes, all of whose products are cut that can be. */
gumbel_status engine_on_processes(const gumbel_program *program, const gumbel_engine_options *given,
                                  uint32_t count, gumbel_engine **engine, gumbel_error *error);

/* gumbel_engine_destroy for these and others. The processes must have ended well. */
void end_engine_on_processes(gumbel_engine *engine);

#endif
