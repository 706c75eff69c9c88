/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend that a test of the engine runs on. Tests that hold on every backend are built once for each,
 * with its name as GUMBEL_TEST_BACKEND.
 */
#ifndef GUMBEL_TESTS_BACKEND_H
#define GUMBEL_TESTS_BACKEND_H

#include "gumbel.h"

#if !defined(GUMBEL_TEST_BACKEND)
#define GUMBEL_TEST_BACKEND "cpu"
#endif

#if defined(GUMBEL_TEST_DEVICES)
/* The tests are built a second time for engines on so many devices, with every product cut that can be. */
static inline gumbel_status engine_on_devices(const gumbel_program *program,
                                              const gumbel_engine_options *given, gumbel_engine **engine,
                                              gumbel_error *error) {
    static const int numbers[] = {0, 1, 2, 3};
    gumbel_engine_options options = {.size = sizeof options};
    if (given)
        options = *given;
    options.devices = numbers;
    options.device_count = GUMBEL_TEST_DEVICES;
    options.least_sharded_weights = 1;
    return gumbel_engine_create(program, &options, engine, error);
}
#define gumbel_engine_create engine_on_devices
#endif

#if defined(GUMBEL_TEST_PROCESSES)
/* A second time for engines on so many processes. */
#include "support/processes.h"
static inline gumbel_status engine_on_two_processes(const gumbel_program *program,
                                                    const gumbel_engine_options *given,
                                                    gumbel_engine **engine, gumbel_error *error) {
    return engine_on_processes(program, given, GUMBEL_TEST_PROCESSES, engine, error);
}
#define gumbel_engine_create engine_on_two_processes
#define gumbel_engine_destroy end_engine_on_processes
#endif

/* An engine's defaults on it. */
#define TEST_ENGINE_OPTIONS                                                                                  \
    (&(gumbel_engine_options){.size = sizeof(gumbel_engine_options), .backend = GUMBEL_TEST_BACKEND})

#endif
