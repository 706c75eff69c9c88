/* SPDX-License-Identifier: Apache-2.0
 *
 * Expressions that are built alike. A reader makes the same one again for each place where it stands; what
 * takes long is found once for all of them.
 */
#ifndef GUMBEL_GRAMMAR_COMPILE_EQUAL_H
#define GUMBEL_GRAMMAR_COMPILE_EQUAL_H

#include "grammar/compile/compiler.h"

/* The first numbered expression that is built like this one, of equal items and the same rules: itself where
 * there is none, and after an error, which the compiler has. Errors: MEMORY, LIMIT (numbering is work). */
gb_expression gb_first_alike(gb_compiler *compiler, gb_expression expression);

/* Frees what gb_first_alike keeps in the compiler, which is zeroed then. */
void gb_equals_free(gb_equals *equals);

#endif
