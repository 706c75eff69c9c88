/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/builtins/builtin.h"

const gb_jinja_builtin *gb_jinja_find_builtin(const gb_jinja_builtin *table, gb_jinja_text name) {
    for (; table->name; table++)
        if (gb_jinja_text_is(name, table->name))
            return table;
    return NULL;
}

const gb_jinja_builtin *gb_jinja_find_filter(gb_jinja_text name) {
    static const gb_jinja_builtin *const tables[] = {gb_jinja_value_filters, gb_jinja_text_filters,
                                                     gb_jinja_item_filters, gb_jinja_select_filters};
    const gb_jinja_builtin *found = NULL;
    for (size_t i = 0; !found && i < sizeof tables / sizeof *tables; i++)
        found = gb_jinja_find_builtin(tables[i], name);
    return found;
}

static size_t parameter_count(const gb_jinja_builtin *builtin) {
    size_t count = 0;
    while (count < GB_JINJA_MAX_PARAMETERS && builtin->parameters[count])
        count++;
    return count;
}

static gumbel_status bind_keyword(gb_jinja_state *state, const char *kind, const gb_jinja_builtin *builtin,
                                  const gb_jinja_entry *keyword, gb_jinja_value *bound) {
    gb_jinja_text name = keyword->key.as.text;
    for (size_t i = 0; i < parameter_count(builtin); i++) {
        if (!gb_jinja_text_is(name, builtin->parameters[i]))
            continue;
        if (bound[i].kind != GB_JINJA_ABSENT)
            return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "the %s \"%s\" gets \"%.*s\" twice", kind,
                                 builtin->name, GB_JINJA_SHOWN(name));
        bound[i] = keyword->value;
        return GUMBEL_OK;
    }
    return gb_jinja_fail(state, GUMBEL_ERROR_UNSUPPORTED, "the %s \"%s\" has no argument \"%.*s\" here", kind,
                         builtin->name, GB_JINJA_SHOWN(name));
}

static gumbel_status bind(gb_jinja_state *state, const char *kind, const gb_jinja_builtin *builtin,
                          const gb_jinja_arguments *arguments, gb_jinja_value *bound) {
    size_t count = parameter_count(builtin);
    if (arguments->positional.count > count)
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "the %s \"%s\" takes %zu arguments, not %zu", kind,
                             builtin->name, count, arguments->positional.count);
    for (size_t i = 0; i < arguments->positional.count; i++)
        bound[i] = arguments->positional.items[i];
    for (size_t i = 0; i < arguments->keywords.count; i++)
        GB_TRY(bind_keyword(state, kind, builtin, &arguments->keywords.entries[i], bound));
    for (size_t i = 0; i < builtin->required; i++)
        if (bound[i].kind == GB_JINJA_ABSENT)
            return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "the %s \"%s\" needs the argument \"%s\"", kind,
                                 builtin->name, builtin->parameters[i]);
    return GUMBEL_OK;
}

gumbel_status gb_jinja_run_builtin(gb_jinja_state *state, const char *kind, const gb_jinja_builtin *builtin,
                                   const gb_jinja_value *subject, const gb_jinja_arguments *arguments,
                                   gb_jinja_value *result) {
    if (builtin->run_variadic)
        return builtin->run_variadic(state, subject, arguments, result);
    gb_jinja_value bound[GB_JINJA_MAX_PARAMETERS] = {0};
    GB_TRY(bind(state, kind, builtin, arguments, bound));
    return builtin->run(state, subject, bound, result);
}

gumbel_status gb_jinja_apply_filter(gb_jinja_state *state, gb_jinja_text name, const gb_jinja_value *subject,
                                    const gb_jinja_arguments *arguments, gb_jinja_value *result) {
    const gb_jinja_builtin *filter = gb_jinja_find_filter(name);
    if (!filter)
        return gb_jinja_fail(state, GUMBEL_ERROR_UNSUPPORTED, "the filter \"%.*s\" is not known here",
                             GB_JINJA_SHOWN(name));
    return gb_jinja_run_builtin(state, "filter", filter, subject, arguments, result);
}

gumbel_status gb_jinja_apply_test(gb_jinja_state *state, gb_jinja_text name, const gb_jinja_value *subject,
                                  const gb_jinja_arguments *arguments, bool *result) {
    const gb_jinja_builtin *test = gb_jinja_find_builtin(gb_jinja_tests, name);
    if (!test)
        return gb_jinja_fail(state, GUMBEL_ERROR_UNSUPPORTED, "the test \"%.*s\" is not known here",
                             GB_JINJA_SHOWN(name));
    gb_jinja_value value;
    GB_TRY(gb_jinja_run_builtin(state, "test", test, subject, arguments, &value));
    *result = gb_jinja_is_true(&value);
    return GUMBEL_OK;
}

gumbel_status gb_jinja_text_argument(gb_jinja_state *state, const gb_jinja_value *argument, const char *name,
                                     gb_jinja_text otherwise, gb_jinja_text *text) {
    *text = otherwise;
    if (argument->kind == GB_JINJA_ABSENT)
        return GUMBEL_OK;
    if (argument->kind != GB_JINJA_STRING)
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "the argument \"%s\" must be a str, not %s", name,
                             gb_jinja_type_name(argument));
    *text = argument->as.text;
    return GUMBEL_OK;
}

gumbel_status gb_jinja_integer_argument(gb_jinja_state *state, const gb_jinja_value *argument,
                                        const char *name, int64_t otherwise, int64_t *integer) {
    *integer = otherwise;
    if (argument->kind == GB_JINJA_ABSENT)
        return GUMBEL_OK;
    if (!gb_jinja_is_integer(argument))
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "the argument \"%s\" must be an int, not %s", name,
                             gb_jinja_type_name(argument));
    *integer = gb_jinja_as_integer(argument);
    return GUMBEL_OK;
}

bool gb_jinja_boolean_argument(const gb_jinja_value *argument, bool otherwise) {
    return argument->kind == GB_JINJA_ABSENT ? otherwise : gb_jinja_is_true(argument);
}
