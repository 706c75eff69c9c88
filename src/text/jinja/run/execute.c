/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/run/runtime.h"
#include "text/jinja/value/print.h"

gumbel_status gb_jinja_new_scope(gb_jinja_state *state, const gb_jinja_scope *parent,
                                 gb_jinja_scope **scope) {
    gumbel_status status;
    *scope = gb_jinja_allocate(state, 1, sizeof **scope, &status);
    if (*scope)
        (*scope)->parent = parent;
    return status;
}

gumbel_status gb_jinja_assign(gb_jinja_state *state, gb_jinja_scope *scope, gb_jinja_text name,
                              gb_jinja_value value) {
    for (gb_jinja_variable *variable = scope->variables; variable; variable = variable->next)
        if (gb_jinja_text_equal(variable->name, name)) {
            variable->value = value;
            return GUMBEL_OK;
        }
    gumbel_status status;
    gb_jinja_variable *variable = gb_jinja_allocate(state, 1, sizeof *variable, &status);
    if (!variable)
        return status;
    *variable = (gb_jinja_variable){scope->variables, name, value};
    scope->variables = variable;
    return GUMBEL_OK;
}

static gumbel_status assign_attribute(gb_jinja_state *state, const gb_jinja_scope *scope,
                                      const gb_jinja_expression *target, const gb_jinja_value *value) {
    gb_jinja_value space;
    GB_TRY(gb_jinja_look_up(state, scope, target->left->name, &space));
    if (space.kind != GB_JINJA_NAMESPACE)
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "only a namespace has attributes to set, not %s",
                             gb_jinja_type_name(&space));
    return gb_jinja_set(state, space.as.dict, gb_jinja_string(target->name), *value);
}

static gumbel_status assign_target(gb_jinja_state *state, gb_jinja_scope *scope,
                                   const gb_jinja_expression *target, const gb_jinja_value *value);

static gumbel_status unpack(gb_jinja_state *state, gb_jinja_scope *scope, const gb_jinja_expression *targets,
                            const gb_jinja_value *value) {
    const gb_jinja_array *items;
    size_t count = 0;
    GB_TRY(gb_jinja_iterate(state, value, &items));
    for (const gb_jinja_expression *target = targets; target; target = target->next)
        count++;
    if (count != items->count)
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "%zu names cannot be set from %zu values", count,
                             items->count);
    count = 0;
    for (const gb_jinja_expression *target = targets; target; target = target->next)
        GB_TRY(assign_target(state, scope, target, &items->items[count++]));
    return GUMBEL_OK;
}

static gumbel_status assign_target(gb_jinja_state *state, gb_jinja_scope *scope,
                                   const gb_jinja_expression *target, const gb_jinja_value *value) {
    if (target->kind == GB_JINJA_NAME)
        return gb_jinja_assign(state, scope, target->name, *value);
    if (target->kind == GB_JINJA_ATTRIBUTE)
        return assign_attribute(state, scope, target, value);
    return unpack(state, scope, target->items, value);
}

/* Runs statements with their output going into buffer. */
static gumbel_status capture(gb_jinja_state *state, gb_jinja_scope *scope, const gb_jinja_statement *body,
                             gb_jinja_buffer *buffer) {
    gb_jinja_buffer *output = state->output;
    state->output = buffer;
    GB_TRY(gb_jinja_execute(state, scope, body));
    state->output = output;
    return GUMBEL_OK;
}

/* The value of a set or filter block: what its body writes, through its filters. */
static gumbel_status capture_block(gb_jinja_state *state, const gb_jinja_scope *scope,
                                   const gb_jinja_statement *statement, gb_jinja_value *value) {
    gb_jinja_scope *inner;
    gb_jinja_buffer buffer = {0};
    GB_TRY(gb_jinja_new_scope(state, scope, &inner));
    GB_TRY(capture(state, inner, statement->body, &buffer));
    gb_jinja_text text = gb_jinja_buffer_text(&buffer);
    GB_TRY(gb_jinja_assign(state, inner, gb_jinja_text_of(GB_JINJA_BODY), gb_jinja_string(text)));
    return gb_jinja_evaluate(state, inner, statement->value, value);
}

static gumbel_status execute_text(gb_jinja_state *state, gb_jinja_scope *scope,
                                  const gb_jinja_statement *statement) {
    (void)scope;
    return gb_jinja_append(state, state->output, statement->text);
}

static gumbel_status execute_print(gb_jinja_state *state, gb_jinja_scope *scope,
                                   const gb_jinja_statement *statement) {
    gb_jinja_value value;
    GB_TRY(gb_jinja_evaluate(state, scope, statement->value, &value));
    return gb_jinja_print(state, &value, state->output);
}

static gumbel_status execute_if(gb_jinja_state *state, gb_jinja_scope *scope,
                                const gb_jinja_statement *statement) {
    for (;; statement = statement->elif) {
        gb_jinja_value value;
        GB_TRY(gb_jinja_evaluate(state, scope, statement->value, &value));
        if (gb_jinja_is_true(&value))
            return gb_jinja_execute(state, scope, statement->body);
        if (!statement->elif)
            return gb_jinja_execute(state, scope, statement->otherwise);
    }
}

/* The items for which the loop's condition holds. */
static gumbel_status filter_items(gb_jinja_state *state, const gb_jinja_scope *scope,
                                  const gb_jinja_statement *statement, const gb_jinja_array **items) {
    gb_jinja_array *kept;
    GB_TRY(gb_jinja_new_array(state, &kept));
    for (size_t i = 0; i < (*items)->count; i++) {
        gb_jinja_scope *inner;
        gb_jinja_value holds;
        GB_TRY(gb_jinja_new_scope(state, scope, &inner));
        GB_TRY(assign_target(state, inner, statement->target, &(*items)->items[i]));
        GB_TRY(gb_jinja_evaluate(state, inner, statement->condition, &holds));
        if (gb_jinja_is_true(&holds))
            GB_TRY(gb_jinja_push(state, kept, (*items)->items[i]));
    }
    *items = kept;
    return GUMBEL_OK;
}

static gumbel_status new_loop(gb_jinja_state *state, const gb_jinja_array *items, gb_jinja_loop **loop) {
    gumbel_status status;
    *loop = gb_jinja_allocate(state, 1, sizeof **loop, &status);
    if (*loop)
        **loop = (gb_jinja_loop){items, 0};
    return status;
}

static gumbel_status run_loop(gb_jinja_state *state, const gb_jinja_scope *scope,
                              const gb_jinja_statement *statement, const gb_jinja_array *items) {
    gb_jinja_loop *loop;
    GB_TRY(new_loop(state, items, &loop));
    gb_jinja_value value = {.kind = GB_JINJA_LOOP, .as.loop = loop};
    for (; loop->index < items->count; loop->index++) {
        gb_jinja_scope *inner;
        GB_TRY(gb_jinja_new_scope(state, scope, &inner));
        GB_TRY(gb_jinja_assign(state, inner, gb_jinja_text_of("loop"), value));
        GB_TRY(assign_target(state, inner, statement->target, &items->items[loop->index]));
        GB_TRY(gb_jinja_execute(state, inner, statement->body));
        bool stop = state->flow == GB_JINJA_BREAK;
        state->flow = GB_JINJA_NEXT;
        if (stop)
            break;
    }
    return GUMBEL_OK;
}

static gumbel_status execute_for(gb_jinja_state *state, gb_jinja_scope *scope,
                                 const gb_jinja_statement *statement) {
    gb_jinja_value value;
    const gb_jinja_array *items;
    GB_TRY(gb_jinja_evaluate(state, scope, statement->value, &value));
    GB_TRY(gb_jinja_iterate(state, &value, &items));
    if (statement->condition)
        GB_TRY(filter_items(state, scope, statement, &items));
    if (items->count)
        return run_loop(state, scope, statement, items);
    gb_jinja_scope *inner;
    GB_TRY(gb_jinja_new_scope(state, scope, &inner));
    return gb_jinja_execute(state, inner, statement->otherwise);
}

static gumbel_status execute_set(gb_jinja_state *state, gb_jinja_scope *scope,
                                 const gb_jinja_statement *statement) {
    gb_jinja_value value;
    GB_TRY(gb_jinja_evaluate(state, scope, statement->value, &value));
    return assign_target(state, scope, statement->target, &value);
}

static gumbel_status execute_set_block(gb_jinja_state *state, gb_jinja_scope *scope,
                                       const gb_jinja_statement *statement) {
    gb_jinja_value value;
    GB_TRY(capture_block(state, scope, statement, &value));
    return assign_target(state, scope, statement->target, &value);
}

static gumbel_status execute_filter_block(gb_jinja_state *state, gb_jinja_scope *scope,
                                          const gb_jinja_statement *statement) {
    gb_jinja_value value;
    GB_TRY(capture_block(state, scope, statement, &value));
    return gb_jinja_print(state, &value, state->output);
}

static gumbel_status execute_scope(gb_jinja_state *state, gb_jinja_scope *scope,
                                   const gb_jinja_statement *statement) {
    gb_jinja_scope *inner;
    GB_TRY(gb_jinja_new_scope(state, scope, &inner));
    return gb_jinja_execute(state, inner, statement->body);
}

static gumbel_status execute_define(gb_jinja_state *state, gb_jinja_scope *scope,
                                    const gb_jinja_statement *statement) {
    gumbel_status status;
    gb_jinja_macro *macro = gb_jinja_allocate(state, 1, sizeof *macro, &status);
    if (!macro)
        return status;
    *macro = (gb_jinja_macro){statement, scope};
    gb_jinja_value value = {.kind = GB_JINJA_MACRO, .as.macro = macro};
    return gb_jinja_assign(state, scope, statement->text, value);
}

static gumbel_status execute_loop_control(gb_jinja_state *state, gb_jinja_scope *scope,
                                          const gb_jinja_statement *statement) {
    (void)scope;
    state->flow = statement->kind == GB_JINJA_LEAVE_LOOP ? GB_JINJA_BREAK : GB_JINJA_CONTINUE;
    return GUMBEL_OK;
}

gumbel_status gb_jinja_execute(gb_jinja_state *state, gb_jinja_scope *scope,
                               const gb_jinja_statement *statements) {
    typedef gumbel_status (*executor)(gb_jinja_state *, gb_jinja_scope *, const gb_jinja_statement *);
    static const executor executors[] = {
        [GB_JINJA_TEXT] = execute_text,
        [GB_JINJA_PRINT] = execute_print,
        [GB_JINJA_IF] = execute_if,
        [GB_JINJA_FOR] = execute_for,
        [GB_JINJA_SET] = execute_set,
        [GB_JINJA_SET_BLOCK] = execute_set_block,
        [GB_JINJA_FILTER_BLOCK] = execute_filter_block,
        [GB_JINJA_SCOPE] = execute_scope,
        [GB_JINJA_DEFINE] = execute_define,
        [GB_JINJA_LEAVE_LOOP] = execute_loop_control,
        [GB_JINJA_NEXT_ITEM] = execute_loop_control,
    };
    GB_TRY(gb_jinja_enter(state));
    for (; statements && state->flow == GB_JINJA_NEXT; statements = statements->next) {
        state->line = statements->line;
        GB_TRY(gb_jinja_work(state, 1));
        GB_TRY(executors[statements->kind](state, scope, statements));
    }
    gb_jinja_leave(state);
    return GUMBEL_OK;
}

/* Gives each parameter its argument by position, by keyword, or its default. */
static gumbel_status bind_parameters(gb_jinja_state *state, gb_jinja_scope *scope,
                                     const gb_jinja_parameter *parameter, const gb_jinja_arguments *arguments,
                                     size_t *used_keywords) {
    for (size_t i = 0; parameter; parameter = parameter->next, i++) {
        gb_jinja_value value = gb_jinja_undefined(parameter->name), *given = NULL;
        if (i < arguments->positional.count)
            given = &arguments->positional.items[i];
        else
            GB_TRY(gb_jinja_find(state, &arguments->keywords, gb_jinja_string(parameter->name), &given));
        *used_keywords += given && i >= arguments->positional.count;
        if (given)
            value = *given;
        else if (parameter->otherwise)
            GB_TRY(gb_jinja_evaluate(state, scope, parameter->otherwise, &value));
        GB_TRY(gb_jinja_assign(state, scope, parameter->name, value));
    }
    return GUMBEL_OK;
}

gumbel_status gb_jinja_call_macro(gb_jinja_state *state, const gb_jinja_macro *macro,
                                  const gb_jinja_arguments *arguments, gb_jinja_value *result) {
    const gb_jinja_statement *definition = macro->definition;
    size_t used_keywords = 0, count = 0;
    for (const gb_jinja_parameter *p = definition->parameters; p; p = p->next)
        count++;
    gb_jinja_scope *scope;
    GB_TRY(gb_jinja_new_scope(state, macro->scope, &scope));
    GB_TRY(bind_parameters(state, scope, definition->parameters, arguments, &used_keywords));
    if (arguments->positional.count > count || used_keywords != arguments->keywords.count)
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "the macro \"%.*s\" does not take these arguments",
                             GB_JINJA_SHOWN(definition->text));
    gb_jinja_buffer buffer = {0};
    GB_TRY(capture(state, scope, definition->body, &buffer));
    *result = gb_jinja_string(gb_jinja_buffer_text(&buffer));
    return GUMBEL_OK;
}
