/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/compile/compiler.h"

#include "base/memory.h"
#include "grammar/compile/equal.h"
#include "grammar/compile/grammar.h"
#include "grammar/match/match_cache.h"

#include <stdio.h>

void gb_compiler_fail(gb_compiler *compiler, gumbel_status status, const char *format, ...) {
    if (compiler->error.status != GUMBEL_OK)
        return;
    char message[sizeof compiler->error.message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    gb_fail(&compiler->error, status, "%s", message);
}

void gb_compiler_no_memory(gb_compiler *compiler) {
    gb_compiler_fail(compiler, GUMBEL_ERROR_MEMORY, "grammar: no memory to compile it");
}

bool gb_compiler_works(gb_compiler *compiler, uint64_t steps) {
    gb_watch *watch = compiler->expressions->watch;
    compiler->work += steps;
    if (!gb_watch_goes_on(watch, steps + 1))
        gb_compiler_fail(compiler, watch->error.status, "%s", watch->error.message);
    if (compiler->work > compiler->limits.work)
        gb_compiler_fail(compiler, GUMBEL_ERROR_LIMIT,
                         "grammar: compiling takes more than %llu steps; make it smaller",
                         (unsigned long long)compiler->limits.work);
    return compiler->error.status == GUMBEL_OK;
}

static void set_limits(gb_compiler *compiler, const gb_grammar_limits *limits) {
    compiler->limits = limits ? *limits : (gb_grammar_limits){0};
    if (!compiler->limits.states)
        compiler->limits.states = 1000000;
    if (!compiler->limits.dfa_states)
        compiler->limits.dfa_states = 100000;
    if (!compiler->limits.repeat_states)
        compiler->limits.repeat_states = 64;
    if (!compiler->limits.product_states)
        compiler->limits.product_states = 4096;
    if (!compiler->limits.work)
        compiler->limits.work = 50000000;
}

static void compile(gb_compiler *compiler, gb_expression root, gb_grammar *grammar) {
    gb_find_reachable(compiler, root);
    gb_find_facts(compiler);
    gb_refuse_left_recursion(compiler);
    if (compiler->error.status == GUMBEL_OK && !gb_has_fact(compiler, root, GB_FACT_PRODUCTIVE))
        gb_compiler_fail(compiler, GUMBEL_ERROR_ARGUMENT, "grammar: it allows no text at all");
    gb_automaton_begin(&grammar->automaton, compiler->limits.states);
    gb_emit_automaton(compiler, &grammar->automaton, root, false);
}

gumbel_status gb_grammar_compile(const gb_expressions *expressions, gb_expression root,
                                 const gb_grammar_limits *limits, gb_grammar **grammar, gumbel_error *error) {
    *grammar = NULL;
    GB_TRY(gb_expressions_error(expressions, error));
    if (!root || root >= expressions->node_count)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "grammar: expression %u is none of its expressions",
                       root);
    gb_compiler compiler = {.expressions = expressions};
    set_limits(&compiler, limits);
    compiler.facts = gb_allocate(expressions->node_count, sizeof *compiler.facts);
    gb_grammar *made = gb_allocate(1, sizeof *made);
    if (made)
        made->caches = gb_match_caches_create();
    if (compiler.facts && made && made->caches)
        compile(&compiler, root, made);
    else
        gb_compiler_no_memory(&compiler);
    for (size_t i = 0; i < compiler.dfa_count; i++)
        gb_dfa_free(&compiler.dfas[i]);
    gb_free(compiler.dfas);
    gb_equals_free(&compiler.equals);
    gb_free(compiler.facts);
    if (compiler.error.status == GUMBEL_OK) {
        *grammar = made;
        return GUMBEL_OK;
    }
    gb_grammar_destroy(made);
    return gb_fail(error, compiler.error.status, "%s", compiler.error.message);
}

void gb_grammar_destroy(gb_grammar *grammar) {
    if (!grammar)
        return;
    gb_match_caches_destroy(grammar->caches);
    gb_automaton_free(&grammar->automaton);
    gb_free(grammar);
}
