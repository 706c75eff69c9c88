/* SPDX-License-Identifier: Apache-2.0
 *
 * Breaks the tiny program in one place and looks at what the verifier says.
 */
#ifndef GUMBEL_TESTS_BROKEN_PROGRAM_H
#define GUMBEL_TESTS_BROKEN_PROGRAM_H

#include "program/program.h"

/* A change to the tiny program; argument makes variants. */
typedef void (*breakage)(gb_program *program, int64_t argument);

/* Verifies the program. Fails the test unless that gives the status and a message with that part. */
void refuse_as(gb_program *program, gumbel_status expected, const char *part);

/* The same for a tiny program, with or without sampling, after the change. */
void refuse_of(bool sampling, breakage change, int64_t argument, gumbel_status expected, const char *part);

/* The same with sampling and GUMBEL_ERROR_FORMAT. */
void refuse(breakage change, int64_t argument, const char *part);

/* The same for a tiny recurrent program. */
void refuse_recurrent(breakage change, int64_t argument, const char *part);

/* The nth node of an op in the node array, counting from 0. */
gb_node *node_of(gb_program *program, gb_op op, uint32_t nth);

/* Changes the attribute of that key, which the node has. */
void set_attribute(gb_node *node, gb_attribute attribute);

/* The nth value of a kind, counting from 0; values of one kind stand in the order of what they name. */
gb_ref value_of_kind(const gb_program *program, gb_value_kind kind, uint32_t nth);

#endif
