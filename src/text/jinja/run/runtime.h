/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluation: execute.c runs statements, evaluate.c computes expressions, access.c looks things up,
 * operators.c does arithmetic and comparisons. Errors everywhere: FORMAT where Python would raise an
 * exception.
 */
#ifndef GUMBEL_TEXT_JINJA_RUN_RUNTIME_H
#define GUMBEL_TEXT_JINJA_RUN_RUNTIME_H

#include "text/jinja/builtins/builtin.h"
#include "text/jinja/parse/ast.h"

typedef struct gb_jinja_variable {
    struct gb_jinja_variable *next;
    gb_jinja_text name;
    gb_jinja_value value;
} gb_jinja_variable;

/* Variables of a template, a loop's pass, a macro call or a block. Names not found are looked for in the
 * parent. */
typedef struct gb_jinja_scope {
    const struct gb_jinja_scope *parent;
    gb_jinja_variable *variables;
} gb_jinja_scope;

struct gb_jinja_macro {
    const gb_jinja_statement *definition;
    const gb_jinja_scope *scope; /* where it was defined */
};

gumbel_status gb_jinja_new_scope(gb_jinja_state *state, const gb_jinja_scope *parent, gb_jinja_scope **scope);

/* Sets a variable of this very scope. */
gumbel_status gb_jinja_assign(gb_jinja_state *state, gb_jinja_scope *scope, gb_jinja_text name,
                              gb_jinja_value value);

/* Runs a statement list, writing to state->output. state->flow says whether break or continue ended it. */
gumbel_status gb_jinja_execute(gb_jinja_state *state, gb_jinja_scope *scope,
                               const gb_jinja_statement *statements);

/* What a macro writes when called. */
gumbel_status gb_jinja_call_macro(gb_jinja_state *state, const gb_jinja_macro *macro,
                                  const gb_jinja_arguments *arguments, gb_jinja_value *result);

gumbel_status gb_jinja_evaluate(gb_jinja_state *state, const gb_jinja_scope *scope,
                                const gb_jinja_expression *expression, gb_jinja_value *value);

/* A variable by name: of the scopes, the caller's context or the globals; undefined if in none. */
gumbel_status gb_jinja_look_up(gb_jinja_state *state, const gb_jinja_scope *scope, gb_jinja_text name,
                               gb_jinja_value *value);

/* value.name, which prefers methods, and value[key], which prefers items. What is not there is undefined;
 * looking into something undefined fails. */
gumbel_status gb_jinja_attribute(gb_jinja_state *state, const gb_jinja_value *value, gb_jinja_text name,
                                 gb_jinja_value *result);
gumbel_status gb_jinja_item(gb_jinja_state *state, const gb_jinja_value *value, const gb_jinja_value *key,
                            gb_jinja_value *result);

/* The item at a path such as "function.name" or "0", or with a number that item, as filters' attribute has
 * it. */
gumbel_status gb_jinja_path(gb_jinja_state *state, const gb_jinja_value *value, const gb_jinja_value *path,
                            gb_jinja_value *result);

/* value[start:stop:step]; none where nothing is written. */
gumbel_status gb_jinja_slice(gb_jinja_state *state, const gb_jinja_value *value,
                             const gb_jinja_value bounds[3], gb_jinja_value *result);

/* left operation right, for the operations up to GB_JINJA_CONCATENATE. */
gumbel_status gb_jinja_arithmetic(gb_jinja_state *state, gb_jinja_operator operation,
                                  const gb_jinja_value *left, const gb_jinja_value *right,
                                  gb_jinja_value *result);

/* left operation right, for the operations from GB_JINJA_EQUAL on. */
gumbel_status gb_jinja_compare(gb_jinja_state *state, gb_jinja_operator operation, const gb_jinja_value *left,
                               const gb_jinja_value *right, bool *result);

/* -value or +value. */
gumbel_status gb_jinja_sign(gb_jinja_state *state, bool negate, const gb_jinja_value *value,
                            gb_jinja_value *result);

/* Fails, naming it, if value is undefined. */
gumbel_status gb_jinja_need_defined(gb_jinja_state *state, const gb_jinja_value *value);

#endif
