/* SPDX-License-Identifier: Apache-2.0
 *
 * A program and its draft head in one file: which constants both have, and what the head has from its
 * program.
 */
#ifndef GUMBEL_PROGRAM_DRAFT_HEAD_H
#define GUMBEL_PROGRAM_DRAFT_HEAD_H

#include "program/program.h"

/* Sets `same` of every constant of the head: the program's of equal name, type, format and packing, or NULL.
 * Nothing is done where there is no head. Errors: MEMORY. */
gumbel_status gb_share_constants(gb_program *program, gumbel_error *error);

/* The program's state whose rows a head's state has: that of its hidden states, and where the head attends to
 * the program's keys and values, one of equal name, kind, window and type. UINT32_MAX: there is none. */
uint32_t gb_state_of_program(const gb_program *program, const gb_program *head, uint32_t state);

/* The constants of a program's file: its own, then all of its head's, numbered on. Those with `same` have no
 * bytes of their own. */
uint32_t gb_file_constant_count(const gb_program *program);
gb_constant *gb_file_constant(const gb_program *program, uint32_t index);

/* Bytes of the head's own constants; 0: there is no head, or it has none. */
uint64_t gb_head_own_bytes(const gb_program *program);

/* Gives a head its program's text sections and an id made from its program's. */
void gb_head_inherit(gb_program *program);

#endif
