/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters that apply a test or a filter to each item: select and its kin, and map.
 */
#include "text/jinja/builtins/builtin.h"
#include "text/jinja/run/runtime.h"

/* The arguments from start on. */
static gb_jinja_arguments rest_of(const gb_jinja_arguments *arguments, size_t start) {
    gb_jinja_arguments rest = *arguments;
    if (start < rest.positional.count) {
        rest.positional.items += start;
        rest.positional.count -= start;
    } else {
        rest.positional.count = 0;
    }
    return rest;
}

static gumbel_status need_name(gb_jinja_state *state, const gb_jinja_value *name) {
    if (name->kind == GB_JINJA_STRING)
        return GUMBEL_OK;
    GB_TRY(gb_jinja_need_defined(state, name));
    return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "a filter or test to apply is named by a str, not %s",
                         gb_jinja_type_name(name));
}

/* Whether the test that the arguments name holds; with none, whether the value is true. */
static gumbel_status passes(gb_jinja_state *state, const gb_jinja_value *value,
                            const gb_jinja_arguments *arguments, bool *result) {
    if (arguments->positional.count == 0) {
        *result = gb_jinja_is_true(value);
        return GUMBEL_OK;
    }
    const gb_jinja_value *name = &arguments->positional.items[0];
    gb_jinja_arguments rest = rest_of(arguments, 1);
    GB_TRY(need_name(state, name));
    return gb_jinja_apply_test(state, name->as.text, value, &rest, result);
}

/* What the filters here visit: nothing of a value that is false, even where it could not be iterated. */
static gumbel_status visit(gb_jinja_state *state, const gb_jinja_value *subject,
                           const gb_jinja_array **items) {
    gb_jinja_value nothing = gb_jinja_undefined(gb_jinja_text_of(""));
    return gb_jinja_iterate(state, gb_jinja_is_true(subject) ? subject : &nothing, items);
}

/* The items for which the test gives wanted; with by_attribute, the test of their attribute. */
static gumbel_status choose(gb_jinja_state *state, const gb_jinja_value *subject,
                            const gb_jinja_arguments *arguments, bool by_attribute, bool wanted,
                            gb_jinja_value *result) {
    if (by_attribute && arguments->positional.count == 0)
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "selectattr and rejectattr need an attribute");
    const gb_jinja_array *items;
    gb_jinja_array *chosen;
    gb_jinja_arguments test = rest_of(arguments, by_attribute ? 1 : 0);
    GB_TRY(visit(state, subject, &items));
    GB_TRY(gb_jinja_new_array(state, &chosen));
    for (size_t i = 0; i < items->count; i++) {
        gb_jinja_value tested = items->items[i];
        bool passed;
        if (by_attribute)
            GB_TRY(gb_jinja_path(state, &items->items[i], &arguments->positional.items[0], &tested));
        GB_TRY(passes(state, &tested, &test, &passed));
        if (passed == wanted)
            GB_TRY(gb_jinja_push(state, chosen, items->items[i]));
    }
    *result = gb_jinja_array_value(GB_JINJA_ITERATOR, chosen);
    return gb_jinja_work(state, items->count);
}

#define CHOICE(name, by_attribute, wanted)                                                                   \
    static gumbel_status name(gb_jinja_state *state, const gb_jinja_value *subject,                          \
                              const gb_jinja_arguments *arguments, gb_jinja_value *result) {                 \
        return choose(state, subject, arguments, by_attribute, wanted, result);                              \
    }

CHOICE(filter_select, false, true)
CHOICE(filter_reject, false, false)
CHOICE(filter_selectattr, true, true)
CHOICE(filter_rejectattr, true, false)

/* map(attribute="...", default=...) of one item. */
static gumbel_status map_attribute(gb_jinja_state *state, const gb_jinja_value *item,
                                   const gb_jinja_arguments *arguments, gb_jinja_value *result) {
    gb_jinja_value *attribute, *otherwise;
    gb_jinja_value attribute_key = gb_jinja_string(gb_jinja_text_of("attribute"));
    gb_jinja_value default_key = gb_jinja_string(gb_jinja_text_of("default"));
    GB_TRY(gb_jinja_find(state, &arguments->keywords, attribute_key, &attribute));
    GB_TRY(gb_jinja_find(state, &arguments->keywords, default_key, &otherwise));
    if (!attribute)
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "map needs a filter or an attribute");
    GB_TRY(gb_jinja_path(state, item, attribute, result));
    if (result->kind == GB_JINJA_UNDEFINED && otherwise)
        *result = *otherwise;
    return GUMBEL_OK;
}

static gumbel_status filter_map(gb_jinja_state *state, const gb_jinja_value *subject,
                                const gb_jinja_arguments *arguments, gb_jinja_value *result) {
    const gb_jinja_array *items;
    gb_jinja_array *mapped;
    gb_jinja_arguments rest = rest_of(arguments, 1);
    GB_TRY(gb_jinja_enter(state)); /* map may be given map to apply */
    GB_TRY(visit(state, subject, &items));
    GB_TRY(gb_jinja_new_array(state, &mapped));
    for (size_t i = 0; i < items->count; i++) {
        gb_jinja_value value;
        if (arguments->positional.count == 0) {
            GB_TRY(map_attribute(state, &items->items[i], arguments, &value));
        } else {
            const gb_jinja_value *name = &arguments->positional.items[0];
            GB_TRY(need_name(state, name));
            GB_TRY(gb_jinja_apply_filter(state, name->as.text, &items->items[i], &rest, &value));
        }
        GB_TRY(gb_jinja_push(state, mapped, value));
    }
    *result = gb_jinja_array_value(GB_JINJA_ITERATOR, mapped);
    gb_jinja_leave(state);
    return gb_jinja_work(state, items->count);
}

const gb_jinja_builtin gb_jinja_select_filters[] = {
    {.name = "select", .run_variadic = filter_select},
    {.name = "reject", .run_variadic = filter_reject},
    {.name = "selectattr", .run_variadic = filter_selectattr},
    {.name = "rejectattr", .run_variadic = filter_rejectattr},
    {.name = "map", .run_variadic = filter_map},
    {.name = NULL},
};
