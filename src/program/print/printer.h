/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints a program for people (summary, graph in SSA form, table of tensors) and for programs (JSON). The
 * program must have passed the verifier.
 */
#ifndef GUMBEL_PROGRAM_PRINT_PRINTER_H
#define GUMBEL_PROGRAM_PRINT_PRINTER_H

#include "base/text_sink.h"
#include "program/program.h"

/* Bytes that the program does not tell; 0: not known, not printed. */
typedef struct gb_summary_sizes {
    uint64_t scratch; /* what a backend needs beside weights and states for one session */
    uint64_t machine; /* of this machine's memory */
} gb_summary_sizes;

/* Metadata, limits, memory, also of conversations of some lengths, ops by count, the promise of same bits. */
void gb_print_summary(const gb_program *program, const gb_summary_sizes *sizes, const gb_text_sink *sink);

/* The nodes in order of execution. Inputs, constants and states are referred to by name, results by numbers
 * that count up in the order of the text. Errors: MEMORY. */
gumbel_status gb_print_graph(const gb_program *program, const gb_text_sink *sink, gumbel_error *error);

/* One line for each constant, in the order of their bytes in the graph, and their total. */
void gb_print_tensors(const gb_program *program, const gb_text_sink *sink);

/* All of the above as one JSON object; docs/program-format.md describes it. scratch_bytes as in
 * gb_summary_sizes. */
void gb_print_json(const gb_program *program, uint64_t scratch_bytes, const gb_text_sink *sink);

#endif
