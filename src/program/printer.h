/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints a program for people (summary, graph in SSA form, table of tensors) and for programs (JSON).
 */
#ifndef GUMBEL_PROGRAM_PRINTER_H
#define GUMBEL_PROGRAM_PRINTER_H

#include "base/text_sink.h"
#include "program/program.h"

void gb_print_summary(const gb_program *program, const gb_text_sink *sink);
void gb_print_graph(const gb_program *program, const gb_text_sink *sink);
void gb_print_tensors(const gb_program *program, const gb_text_sink *sink);
void gb_print_json(const gb_program *program, const gb_text_sink *sink);

#endif
