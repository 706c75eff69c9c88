/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the compiler: facts about expressions, then automata of them.
 */
#ifndef GUMBEL_GRAMMAR_COMPILE_COMPILER_H
#define GUMBEL_GRAMMAR_COMPILE_COMPILER_H

#include "grammar/compile/automaton.h"
#include "grammar/compile/dfa.h"
#include "grammar/grammar.h"
#include "grammar/match/intern.h"

/* Of an expression. */
enum {
    GB_FACT_REACHABLE = 1,
    GB_FACT_NULLABLE = 2,   /* allows the empty text */
    GB_FACT_PRODUCTIVE = 4, /* allows some text */
    GB_FACT_NONEMPTY = 8,   /* allows some text that is not empty */
    GB_FACT_REGULAR = 16    /* no token, no items in any order or that differ, no rule that uses itself */
};

typedef struct gb_facts {
    uint8_t flags;
    uint16_t regular_depth; /* of a regular one, through its rules */
    uint32_t size;          /* states, about, where a rule is one; saturates */
    uint32_t dfa;           /* of an intersection or difference: its number + 1 */
    uint32_t flat_dfa;      /* the same where dfa counts units and an operand cannot; 0: not made */
    gb_expression repeat;   /* the operand whose units dfa counts; 0: none */
} gb_facts;

/* What equal.h has found; starts zeroed. */
typedef struct gb_equals {
    uint32_t *numbers;     /* of expressions, + 1; 0: not found yet */
    gb_intern_table table; /* of what they are made of */
    gb_expression *firsts; /* by number */
    size_t first_capacity;
    uint32_t *words; /* of one expression */
    size_t word_count, word_capacity;
} gb_equals;

typedef struct gb_compiler {
    const gb_expressions *expressions;
    gb_grammar_limits limits;
    gb_facts *facts; /* of each expression */
    gb_dfa *dfas;
    size_t dfa_count, dfa_capacity;
    gb_equals equals;
    uint64_t work;
    gumbel_error error; /* status GUMBEL_OK: none */
} gb_compiler;

#define GB_MAX_REGULAR_DEPTH 2000

/* Makes this the error unless there is one. */
void gb_compiler_fail(gb_compiler *compiler, gumbel_status status, const char *format, ...) GB_PRINTF(3, 4);
void gb_compiler_no_memory(gb_compiler *compiler);

/* Counts work; false after an error, also that of too much work. */
bool gb_compiler_works(gb_compiler *compiler, uint64_t steps);

/* What the expression is made of, by index, or 0 after the last; that of a rule is its item, those of items
 * in any order are followed by the separator and the rest, those that differ by the separator. */
gb_expression gb_item_at(const gb_expressions *expressions, gb_expression expression, uint32_t index);

/* Marks what root reaches. Errors: ARGUMENT (a rule without definition). */
void gb_find_reachable(gb_compiler *compiler, gb_expression root);

/* Finds the other facts, and with them the automata of intersections and differences. */
void gb_find_facts(gb_compiler *compiler);

/* Makes the automaton of an intersection or difference, which is regular, and its facts but for `flags`,
 * unless an equal one has them. */
void gb_make_product(gb_compiler *compiler, gb_expression expression);

/* Its automaton without counts, or that of the items of GB_NODE_DISTINCT; made if need be, NULL after an
 * error. */
const gb_dfa *gb_flat_product(gb_compiler *compiler, gb_expression expression);

/* The repeat whose items its automaton counts, or NULL. */
const gb_expression_node *gb_units_of(const gb_compiler *compiler, gb_expression expression);

/* Errors: ARGUMENT (a rule that begins with itself). */
void gb_refuse_left_recursion(gb_compiler *compiler);

static inline bool gb_has_fact(const gb_compiler *compiler, gb_expression expression, unsigned fact) {
    return compiler->facts[expression].flags & fact;
}

/* Rules of up to so many states stand where they are used instead of being called. */
#define GB_MAX_INLINED 16

static inline bool gb_is_inlined(const gb_compiler *compiler, gb_expression item) {
    return gb_has_fact(compiler, item, GB_FACT_REGULAR) && compiler->facts[item].size <= GB_MAX_INLINED;
}

/* Adds the expression to an automaton that gb_automaton_begin made, and finishes that. Where `flat` is set
 * the expression is regular, and no frame is used. */
void gb_emit_automaton(gb_compiler *compiler, gb_automaton *automaton, gb_expression root, bool flat);

#endif
