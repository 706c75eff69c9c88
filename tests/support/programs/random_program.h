/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs with random weights for tests of the engine, made through the public exporter.
 */
#ifndef GUMBEL_TESTS_RANDOM_PROGRAM_H
#define GUMBEL_TESTS_RANDOM_PROGRAM_H

#include "gumbel.h"
#include "support/assertions.h"

/* Exports the config (a name in tests/data/run) with random weights to a new temporary file and opens it.
 * Ends the test on an error. */
gumbel_program *open_random_program(const char *config, bool logits);

/* The same with other options; those of the weights are filled in. */
gumbel_program *export_random_program(const char *config, gumbel_export_options options);

/* The file of the program opened last; it is removed at the end of the process. Valid for a few calls. */
const char *random_program_path(void);

/* count token ids below vocab_size that depend on seed alone. */
void random_tokens(uint32_t seed, uint32_t vocab_size, int32_t *tokens, size_t count);

#endif
