/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that nobody would write and the verifier may well accept: a valid program's graph with other
 * operands, ops, attributes, sizes, dtypes and formats, its types inferred again.
 */
#ifndef GUMBEL_TESTS_MUTATE_GRAPH_H
#define GUMBEL_TESTS_MUTATE_GRAPH_H

#include "cases.h"
#include "support/programs/program_file.h"

/* A copy of a valid program's file with one to three such changes; its checksums are right. Free its bytes
 * with gb_free. */
program_file mutate_graph(const program_file *original, random_source *source);

#endif
