/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/run/runtime.h"

gumbel_status gb_jinja_need_defined(gb_jinja_state *state, const gb_jinja_value *value) {
    if (value->kind != GB_JINJA_UNDEFINED)
        return GUMBEL_OK;
    gb_jinja_text name = value->as.text;
    return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "\"%.*s\" is undefined", GB_JINJA_SHOWN(name));
}

static gumbel_status evaluate_items(gb_jinja_state *state, const gb_jinja_scope *scope,
                                    const gb_jinja_expression *expression, gb_jinja_value *value) {
    bool list = expression->kind == GB_JINJA_MAKE_LIST;
    *value = (gb_jinja_value){.kind = list ? GB_JINJA_LIST : GB_JINJA_TUPLE};
    GB_TRY(gb_jinja_new_array(state, &value->as.array));
    for (const gb_jinja_expression *item = expression->items; item; item = item->next) {
        gb_jinja_value evaluated;
        GB_TRY(gb_jinja_evaluate(state, scope, item, &evaluated));
        GB_TRY(gb_jinja_push(state, value->as.array, evaluated));
    }
    return GUMBEL_OK;
}

static gumbel_status evaluate_dict(gb_jinja_state *state, const gb_jinja_scope *scope,
                                   const gb_jinja_expression *expression, gb_jinja_value *value) {
    *value = (gb_jinja_value){.kind = GB_JINJA_DICT};
    GB_TRY(gb_jinja_new_dict(state, &value->as.dict));
    for (const gb_jinja_expression *item = expression->items; item; item = item->next->next) {
        gb_jinja_value key, evaluated;
        GB_TRY(gb_jinja_evaluate(state, scope, item, &key));
        GB_TRY(gb_jinja_evaluate(state, scope, item->next, &evaluated));
        GB_TRY(gb_jinja_need_key(state, &key));
        GB_TRY(gb_jinja_set(state, value->as.dict, key, evaluated));
    }
    return GUMBEL_OK;
}

static gumbel_status evaluate_arguments(gb_jinja_state *state, const gb_jinja_scope *scope,
                                        const gb_jinja_argument *argument, gb_jinja_arguments *arguments) {
    *arguments = (gb_jinja_arguments){0};
    for (; argument; argument = argument->next) {
        gb_jinja_value value;
        GB_TRY(gb_jinja_evaluate(state, scope, argument->value, &value));
        if (argument->keyword.length)
            GB_TRY(gb_jinja_set(state, &arguments->keywords, gb_jinja_string(argument->keyword), value));
        else
            GB_TRY(gb_jinja_push(state, &arguments->positional, value));
    }
    return GUMBEL_OK;
}

static gumbel_status evaluate_call(gb_jinja_state *state, const gb_jinja_scope *scope,
                                   const gb_jinja_expression *expression, gb_jinja_value *value) {
    gb_jinja_value callee;
    gb_jinja_arguments arguments;
    GB_TRY(gb_jinja_evaluate(state, scope, expression->left, &callee));
    GB_TRY(evaluate_arguments(state, scope, expression->arguments, &arguments));
    state->line = expression->line;
    GB_TRY(gb_jinja_need_defined(state, &callee));
    switch (callee.kind) {
    case GB_JINJA_MACRO:
        return gb_jinja_call_macro(state, callee.as.macro, &arguments, value);
    case GB_JINJA_FUNCTION:
        return gb_jinja_run_builtin(state, "function", callee.as.function, NULL, &arguments, value);
    case GB_JINJA_METHOD:
        return gb_jinja_run_builtin(state, "method", callee.as.method->builtin, &callee.as.method->subject,
                                    &arguments, value);
    default:
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "a value of type %s cannot be called",
                             gb_jinja_type_name(&callee));
    }
}

static gumbel_status evaluate_filter(gb_jinja_state *state, const gb_jinja_scope *scope,
                                     const gb_jinja_expression *expression, gb_jinja_value *value) {
    gb_jinja_value subject;
    gb_jinja_arguments arguments;
    GB_TRY(gb_jinja_evaluate(state, scope, expression->left, &subject));
    GB_TRY(evaluate_arguments(state, scope, expression->arguments, &arguments));
    state->line = expression->line;
    return gb_jinja_apply_filter(state, expression->name, &subject, &arguments, value);
}

static gumbel_status evaluate_test(gb_jinja_state *state, const gb_jinja_scope *scope,
                                   const gb_jinja_expression *expression, gb_jinja_value *value) {
    gb_jinja_value subject;
    gb_jinja_arguments arguments;
    bool result;
    GB_TRY(gb_jinja_evaluate(state, scope, expression->left, &subject));
    GB_TRY(evaluate_arguments(state, scope, expression->arguments, &arguments));
    state->line = expression->line;
    GB_TRY(gb_jinja_apply_test(state, expression->name, &subject, &arguments, &result));
    *value = gb_jinja_boolean(result);
    return GUMBEL_OK;
}

static gumbel_status evaluate_slice(gb_jinja_state *state, const gb_jinja_scope *scope,
                                    const gb_jinja_expression *expression, gb_jinja_value *value) {
    const gb_jinja_expression *const written[3] = {expression->right, expression->third, expression->fourth};
    gb_jinja_value subject, bounds[3];
    GB_TRY(gb_jinja_evaluate(state, scope, expression->left, &subject));
    for (int i = 0; i < 3; i++) {
        bounds[i] = gb_jinja_none();
        if (written[i])
            GB_TRY(gb_jinja_evaluate(state, scope, written[i], &bounds[i]));
    }
    return gb_jinja_slice(state, &subject, bounds, value);
}

/* A chain stops at the first comparison that does not hold. */
static gumbel_status evaluate_comparison(gb_jinja_state *state, const gb_jinja_scope *scope,
                                         const gb_jinja_expression *expression, gb_jinja_value *value) {
    gb_jinja_value left;
    GB_TRY(gb_jinja_evaluate(state, scope, expression->left, &left));
    bool holds = true;
    const gb_jinja_expression *link = expression;
    while (holds && link) {
        gb_jinja_value right;
        GB_TRY(gb_jinja_evaluate(state, scope, link->right, &right));
        GB_TRY(gb_jinja_compare(state, link->operation, &left, &right, &holds));
        left = right;
        link = link == expression ? expression->items : link->next;
    }
    *value = gb_jinja_boolean(holds);
    return GUMBEL_OK;
}

static gumbel_status evaluate_arithmetic(gb_jinja_state *state, const gb_jinja_scope *scope,
                                         const gb_jinja_expression *expression, gb_jinja_value *value) {
    gb_jinja_value left, right;
    GB_TRY(gb_jinja_evaluate(state, scope, expression->left, &left));
    GB_TRY(gb_jinja_evaluate(state, scope, expression->right, &right));
    state->line = expression->line;
    return gb_jinja_arithmetic(state, expression->operation, &left, &right, value);
}

/* and, or, not, conditional: those that need not evaluate everything. */
static gumbel_status evaluate_logic(gb_jinja_state *state, const gb_jinja_scope *scope,
                                    const gb_jinja_expression *expression, gb_jinja_value *value) {
    bool conditional = expression->kind == GB_JINJA_CONDITIONAL;
    GB_TRY(gb_jinja_evaluate(state, scope, conditional ? expression->right : expression->left, value));
    bool holds = gb_jinja_is_true(value);
    if (expression->kind == GB_JINJA_NOT) {
        *value = gb_jinja_boolean(!holds);
        return GUMBEL_OK;
    }
    if (conditional) {
        const gb_jinja_expression *chosen = holds ? expression->left : expression->third;
        if (chosen)
            return gb_jinja_evaluate(state, scope, chosen, value);
        *value = gb_jinja_undefined(gb_jinja_text_of("the missing else"));
        return GUMBEL_OK;
    }
    if (holds == (expression->kind == GB_JINJA_OR))
        return GUMBEL_OK;
    return gb_jinja_evaluate(state, scope, expression->right, value);
}

static gumbel_status evaluate_access(gb_jinja_state *state, const gb_jinja_scope *scope,
                                     const gb_jinja_expression *expression, gb_jinja_value *value) {
    gb_jinja_value subject, key;
    GB_TRY(gb_jinja_evaluate(state, scope, expression->left, &subject));
    if (expression->kind == GB_JINJA_ATTRIBUTE)
        return gb_jinja_attribute(state, &subject, expression->name, value);
    GB_TRY(gb_jinja_evaluate(state, scope, expression->right, &key));
    return gb_jinja_item(state, &subject, &key, value);
}

static gumbel_status evaluate_sign(gb_jinja_state *state, const gb_jinja_scope *scope,
                                   const gb_jinja_expression *expression, gb_jinja_value *value) {
    gb_jinja_value subject;
    GB_TRY(gb_jinja_evaluate(state, scope, expression->left, &subject));
    return gb_jinja_sign(state, expression->kind == GB_JINJA_NEGATE, &subject, value);
}

static gumbel_status evaluate_constant(gb_jinja_state *state, const gb_jinja_scope *scope,
                                       const gb_jinja_expression *expression, gb_jinja_value *value) {
    (void)state, (void)scope;
    *value = expression->constant;
    return GUMBEL_OK;
}

static gumbel_status evaluate_name(gb_jinja_state *state, const gb_jinja_scope *scope,
                                   const gb_jinja_expression *expression, gb_jinja_value *value) {
    return gb_jinja_look_up(state, scope, expression->name, value);
}

gumbel_status gb_jinja_evaluate(gb_jinja_state *state, const gb_jinja_scope *scope,
                                const gb_jinja_expression *expression, gb_jinja_value *value) {
    typedef gumbel_status (*evaluator)(gb_jinja_state *, const gb_jinja_scope *, const gb_jinja_expression *,
                                       gb_jinja_value *);
    static const evaluator evaluators[] = {
        [GB_JINJA_CONSTANT] = evaluate_constant,
        [GB_JINJA_NAME] = evaluate_name,
        [GB_JINJA_MAKE_LIST] = evaluate_items,
        [GB_JINJA_MAKE_TUPLE] = evaluate_items,
        [GB_JINJA_MAKE_DICT] = evaluate_dict,
        [GB_JINJA_ATTRIBUTE] = evaluate_access,
        [GB_JINJA_ITEM] = evaluate_access,
        [GB_JINJA_SLICE] = evaluate_slice,
        [GB_JINJA_CALL] = evaluate_call,
        [GB_JINJA_FILTER] = evaluate_filter,
        [GB_JINJA_TEST] = evaluate_test,
        [GB_JINJA_NOT] = evaluate_logic,
        [GB_JINJA_NEGATE] = evaluate_sign,
        [GB_JINJA_PLUS] = evaluate_sign,
        [GB_JINJA_AND] = evaluate_logic,
        [GB_JINJA_OR] = evaluate_logic,
        [GB_JINJA_ARITHMETIC] = evaluate_arithmetic,
        [GB_JINJA_COMPARISON] = evaluate_comparison,
        [GB_JINJA_CONDITIONAL] = evaluate_logic,
    };
    state->line = expression->line;
    GB_TRY(gb_jinja_enter(state));
    GB_TRY(evaluators[expression->kind](state, scope, expression, value));
    gb_jinja_leave(state);
    return GUMBEL_OK;
}
