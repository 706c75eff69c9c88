/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that computes NaN after one token, whoever runs it.
 */
#ifndef GUMBEL_TESTS_POISON_H
#define GUMBEL_TESTS_POISON_H

#include "gumbel.h"

/* As open_random_program; a number of the token's embedding is NaN. The config must not tie its head to the
 * embedding. Ends the test on an error. */
gumbel_program *open_poisoned_program(const char *config, int32_t token);

#endif
