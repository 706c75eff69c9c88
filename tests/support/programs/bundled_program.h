/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs of the bundled models.
 */
#ifndef GUMBEL_TESTS_SUPPORT_PROGRAMS_BUNDLED_PROGRAM_H
#define GUMBEL_TESTS_SUPPORT_PROGRAMS_BUNDLED_PROGRAM_H

#include "gumbel.h"

/* Exports a bundled model by a recipe, NULL for its own numbers, and opens the program. The test fails where
 * that does. */
gumbel_program *open_bundled_program(const char *model, const char *quantize);

#endif
