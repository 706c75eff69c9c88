/* SPDX-License-Identifier: Apache-2.0
 *
 * What mutants are made of: the bundled models' programs, and one with random weights of each configuration
 * that export is compared with other implementations on, so that every family's ops are among them.
 */
#ifndef GUMBEL_TESTS_ORIGINALS_H
#define GUMBEL_TESTS_ORIGINALS_H

#include "support/programs/program_file.h"

/* Exports all of them; they stay mapped until the process ends. Ends the process on an error. */
void read_originals(void);

size_t original_count(void);
const program_file *original_file(size_t i);

#endif
