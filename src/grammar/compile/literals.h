/* SPDX-License-Identifier: Apache-2.0
 *
 * The texts that the alternatives of a choice begin with.
 */
#ifndef GUMBEL_GRAMMAR_COMPILE_LITERALS_H
#define GUMBEL_GRAMMAR_COMPILE_LITERALS_H

#include "base/byte_buffer.h"
#include "grammar/compile/compiler.h"

typedef struct gb_literal {
    size_t end;    /* in bytes, where the next one begins */
    uint32_t next; /* the state where the alternative goes on */
} gb_literal;

/* Starts zeroed. */
typedef struct gb_literals {
    gb_byte_buffer bytes; /* of all of them */
    gb_literal *items;
    size_t count, capacity;
} gb_literals;

/* Whether the expression is one text; it is appended to bytes, which may be NULL. Otherwise what all of its
 * texts are seen to begin with is. False also after an error, which the compiler has. */
bool gb_append_literal(gb_compiler *compiler, gb_expression expression, gb_byte_buffer *bytes);

/* Makes the bytes that were appended since the last call the text of another alternative. */
void gb_literals_add(gb_literals *literals, gb_compiler *compiler, uint32_t next);

/* The state where any of them begins; GB_NO_STATE without any, and after an error. */
uint32_t gb_emit_literals(const gb_literals *literals, gb_compiler *compiler, gb_automaton *automaton);

void gb_literals_free(gb_literals *literals);

#endif
