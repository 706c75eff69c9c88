/* SPDX-License-Identifier: Apache-2.0
 *
 * Intersections and differences. Where one operand repeats an item many times, its items are counted: a copy
 * of the other operand for each count would be too large.
 */
#include "base/memory.h"
#include "grammar/compile/compiler.h"
#include "grammar/compile/equal.h"
#include "grammar/compile/except_words.h"
#include "grammar/compile/lengths.h"

#include <string.h>

/* Steps to find how many units may follow each state; where it takes more, repeats are written out. */
#define MOST_STEPS 10000000

static gb_dfa_limits limits_of(const gb_compiler *compiler) {
    return (gb_dfa_limits){compiler->limits.dfa_states, compiler->limits.work - compiler->work,
                           compiler->expressions->watch};
}

/* The automaton of two operands, each of which is flat. */
static gumbel_status multiply(gb_compiler *compiler, gb_expression left, gb_expression right, gb_product kind,
                              gb_dfa *dfa) {
    gb_automaton a, b;
    gumbel_status status = GUMBEL_ERROR_ARGUMENT;
    gb_automaton_begin(&a, compiler->limits.states);
    gb_automaton_begin(&b, compiler->limits.states);
    gb_emit_automaton(compiler, &a, left, true);
    gb_emit_automaton(compiler, &b, right, true);
    const gb_dfa_limits limits = limits_of(compiler);
    if (compiler->error.status == GUMBEL_OK)
        status = gb_dfa_of_product(&a, &b, kind, &limits, dfa);
    gb_automaton_free(&a);
    gb_automaton_free(&b);
    return status;
}

static void report(gb_compiler *compiler, const gb_expression_node *node, gumbel_status status) {
    gb_watch *watch = compiler->expressions->watch;
    if (!gb_watch_goes_on(watch, 0))
        gb_compiler_fail(compiler, watch->error.status, "%s", watch->error.message);
    else if (status == GUMBEL_ERROR_LIMIT)
        gb_compiler_fail(compiler, status, "grammar: %s more than %zu states or too much work",
                         node->kind == GB_NODE_DISTINCT ? "items that differ need"
                                                        : "an intersection or difference needs",
                         compiler->limits.dfa_states);
    else if (status != GUMBEL_OK)
        gb_compiler_no_memory(compiler);
}

/* ---- Counted units ------------------------------------------------------------------------------------- */

static uint64_t times_of(const gb_expression_node *repeat) {
    return repeat->count == GB_NO_END ? repeat->first : repeat->count;
}

static bool is_counted(const gb_compiler *compiler, gb_expression operand) {
    const gb_expression_node *node = &compiler->expressions->nodes[operand];
    if (node->kind != GB_NODE_REPEAT || gb_has_fact(compiler, node->item, GB_FACT_NULLABLE))
        return false;
    return times_of(node) > 1;
}

/* Makes the automaton of `other` in units of the repeat's item. False: it is to be written out. */
static bool count_units(gb_compiler *compiler, gb_expression other, gb_expression repeat, gb_dfa *dfa) {
    const gb_expression_node *node = &compiler->expressions->nodes[repeat];
    gb_dfa_limits limits = limits_of(compiler);
    limits.work = limits.work < MOST_STEPS ? limits.work : MOST_STEPS;
    gumbel_status status = multiply(compiler, other, node->item, GB_PRODUCT_UNITS, dfa);
    if (status == GUMBEL_OK && times_of(node) * dfa->count <= compiler->limits.product_states)
        status = GUMBEL_ERROR_UNSUPPORTED;
    if (status == GUMBEL_OK)
        status = gb_find_lengths(dfa, node->count, &limits);
    gb_compiler_works(compiler, dfa->lengths.steps);
    if (status != GUMBEL_OK)
        gb_dfa_free(dfa);
    if (status == GUMBEL_ERROR_MEMORY)
        gb_compiler_no_memory(compiler);
    return status == GUMBEL_OK;
}

/* Counts the items of one of the operands; 0: of none. */
static gb_expression count_operand(gb_compiler *compiler, const gb_expression_node *node, gb_dfa *dfa) {
    const gb_expression operands[] = {node->item, node->first};
    for (int i = 1; i >= 0 && node->kind == GB_NODE_BOTH; i--)
        if (is_counted(compiler, operands[i]) && count_units(compiler, operands[1 - i], operands[i], dfa))
            return operands[i];
    return 0;
}

/* ---- All ----------------------------------------------------------------------------------------------- */

const gb_expression_node *gb_units_of(const gb_compiler *compiler, gb_expression expression) {
    const gb_expression repeat = compiler->facts[expression].repeat;
    return repeat ? &compiler->expressions->nodes[repeat] : NULL;
}

/* Makes room for an automaton, which may move those that are there; its number + 1, or 0. */
static uint32_t add_dfa(gb_compiler *compiler, const gb_dfa *dfa) {
    if (!gb_grow((void **)&compiler->dfas, &compiler->dfa_capacity, compiler->dfa_count + 1, sizeof *dfa)) {
        gb_compiler_no_memory(compiler);
        return 0;
    }
    compiler->dfas[compiler->dfa_count] = *dfa;
    return (uint32_t)++compiler->dfa_count;
}

/* Keeps an automaton; its number + 1, or 0 after an error. */
static uint32_t keep(gb_compiler *compiler, gb_dfa *dfa) {
    const uint32_t number = add_dfa(compiler, dfa);
    if (!number)
        gb_dfa_free(dfa);
    else
        gb_compiler_works(compiler, dfa->count * dfa->class_count);
    return number;
}

static bool is_product(const gb_expression_node *node) {
    return node->kind == GB_NODE_BOTH || node->kind == GB_NODE_EXCEPT;
}

/* Makes the automaton of a flat expression that is no product, unless it is there. The number + 1 that it
 * has, or 0 after an error. */
static uint32_t make_flat(gb_compiler *compiler, gb_expression expression) {
    const gb_expression first = gb_first_alike(compiler, expression);
    gb_facts *facts = &compiler->facts[first];
    gb_dfa dfa = {0};
    if (facts->flat_dfa || compiler->error.status != GUMBEL_OK)
        return facts->flat_dfa;
    const gumbel_status status = multiply(compiler, first, first, GB_PRODUCT_BOTH, &dfa);
    if (compiler->error.status == GUMBEL_OK)
        report(compiler, &compiler->expressions->nodes[expression], status);
    return facts->flat_dfa = keep(compiler, &dfa);
}

static gumbel_status leave_out_words(gb_compiler *compiler, const gb_expression_node *node, gb_dfa *dfa) {
    const uint32_t number = make_flat(compiler, node->item);
    const gb_dfa_limits limits = limits_of(compiler);
    return number && compiler->error.status == GUMBEL_OK
               ? gb_dfa_except_words(&compiler->dfas[number - 1], compiler->expressions, node->first, &limits,
                                     dfa)
               : GUMBEL_ERROR_MEMORY;
}

static gumbel_status find_product(gb_compiler *compiler, const gb_expression_node *node, gb_dfa *dfa) {
    if (node->kind == GB_NODE_EXCEPT && gb_are_words(compiler->expressions, node->first) &&
        !is_product(&compiler->expressions->nodes[node->item]))
        return leave_out_words(compiler, node, dfa);
    const gb_product kind = node->kind == GB_NODE_EXCEPT ? GB_PRODUCT_EXCEPT : GB_PRODUCT_BOTH;
    const gb_expression right = node->kind == GB_NODE_DISTINCT ? node->item : node->first;
    return multiply(compiler, node->item, right, kind, dfa);
}

static uint32_t write_out(gb_compiler *compiler, const gb_expression_node *node) {
    gb_dfa dfa = {0};
    const gumbel_status status = find_product(compiler, node, &dfa);
    if (compiler->error.status == GUMBEL_OK)
        report(compiler, node, status);
    return keep(compiler, &dfa);
}

static void make(gb_compiler *compiler, gb_expression expression) {
    const gb_expression_node *node = &compiler->expressions->nodes[expression];
    gb_facts *facts = &compiler->facts[expression];
    gb_dfa dfa = {0};
    const gb_expression repeat = count_operand(compiler, node, &dfa);
    const uint32_t number = repeat ? keep(compiler, &dfa) : write_out(compiler, node);
    facts->repeat = number ? repeat : 0;
    facts->dfa = number;
    facts->flat_dfa = repeat ? 0 : number;
}

void gb_make_product(gb_compiler *compiler, gb_expression expression) {
    const gb_expression first = gb_first_alike(compiler, expression);
    const gb_facts *found = &compiler->facts[first];
    if (!found->dfa && compiler->error.status == GUMBEL_OK)
        make(compiler, first);
    compiler->facts[expression].repeat = found->repeat;
    compiler->facts[expression].dfa = found->dfa;
}

const gb_dfa *gb_flat_product(gb_compiler *compiler, gb_expression expression) {
    gb_facts *facts = &compiler->facts[gb_first_alike(compiler, expression)];
    if (!facts->flat_dfa && compiler->error.status == GUMBEL_OK)
        facts->flat_dfa = write_out(compiler, &compiler->expressions->nodes[expression]);
    return compiler->error.status == GUMBEL_OK ? &compiler->dfas[facts->flat_dfa - 1] : NULL;
}
