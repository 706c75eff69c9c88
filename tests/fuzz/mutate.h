/* SPDX-License-Identifier: Apache-2.0
 *
 * Random damage to the bytes of a program file, with its checksums repaired so that it is met by the
 * verifier.
 */
#ifndef GUMBEL_TESTS_MUTATE_H
#define GUMBEL_TESTS_MUTATE_H

#include "cases.h"
#include "support/programs/program_file.h"

/* Changes one to four places: fields of the graph's records, numbers and stretches of any section, the
 * header, the section table, weights. The file keeps its size. */
void mutate_program(program_file *file, random_source *source);

#endif
