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

/* An engine's defaults on it. */
#define TEST_ENGINE_OPTIONS                                                                                  \
    (&(gumbel_engine_options){.size = sizeof(gumbel_engine_options), .backend = GUMBEL_TEST_BACKEND})

#endif
