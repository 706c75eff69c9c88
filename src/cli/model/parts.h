/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a reply as they are printed: thoughts, which a terminal shows dimmed, the answer, and calls of
 * tools on lines of their own. An empty line stands between.
 */
#ifndef GUMBEL_CLI_MODEL_PARTS_H
#define GUMBEL_CLI_MODEL_PARTS_H

#include "cli/model/output.h"

/* Prints what has become certain of the conversation's reply, as far as --reasoning has it. */
void cli_output_parts(cli_output *output);

/* Ends the last part, and notes what was odd about the reply. */
void cli_output_end_parts(cli_output *output);

/* Prints a call as NAME(KEY: VALUE, ...), its arguments being the JSON object of so many bytes. */
void cli_write_call(const char *name, const char *arguments, size_t length, gb_byte_buffer *text);

#endif
