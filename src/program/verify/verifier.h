/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides whether a program may run. A program is untrusted input: what this accepts cannot make a backend
 * read or write out of bounds, overflow a size, loop, or need more memory than it declares.
 */
#ifndef GUMBEL_PROGRAM_VERIFY_VERIFIER_H
#define GUMBEL_PROGRAM_VERIFY_VERIFIER_H

#include "program/program.h"

/* Checks every rule listed in docs/program-format.md, of its draft head too. The arrays' counts must be those
 * of the arrays. Errors: GUMBEL_ERROR_FORMAT naming the node, value, state or field and the rule;
 * GUMBEL_ERROR_UNSUPPORTED naming an op or role that this version lacks. */
gumbel_status gb_program_verify(const gb_program *program, gumbel_error *error);

/* Rule 43, which reads the scales of progressive constants, a byte a group, and so is checked where a program
 * is about to run rather than when it is opened. Errors: FORMAT naming constant and byte. */
gumbel_status gb_verify_weights(const gb_program *program, gumbel_error *error);

#endif
