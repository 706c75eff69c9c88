/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/run/runtime.h"
#include "text/jinja/value/number.h"

static const gb_jinja_value *find_variable(const gb_jinja_scope *scope, gb_jinja_text name, size_t *visited) {
    for (; scope; scope = scope->parent)
        for (const gb_jinja_variable *variable = scope->variables; variable; variable = variable->next) {
            ++*visited;
            if (gb_jinja_text_equal(variable->name, name))
                return &variable->value;
        }
    return NULL;
}

gumbel_status gb_jinja_look_up(gb_jinja_state *state, const gb_jinja_scope *scope, gb_jinja_text name,
                               gb_jinja_value *value) {
    size_t visited = 0;
    const gb_jinja_value *variable = find_variable(scope, name, &visited);
    GB_TRY(gb_jinja_work(state, visited / 16));
    if (variable) {
        *value = *variable;
        return GUMBEL_OK;
    }
    gb_jinja_value *given;
    GB_TRY(gb_jinja_find(state, state->variables, gb_jinja_string(name), &given));
    if (!given && state->trusted)
        GB_TRY(gb_jinja_find(state, state->trusted, gb_jinja_string(name), &given));
    const gb_jinja_builtin *global = gb_jinja_find_builtin(gb_jinja_globals, name);
    if (given)
        *value = *given;
    else if (global)
        *value = (gb_jinja_value){.kind = GB_JINJA_FUNCTION, .as.function = global};
    else
        *value = gb_jinja_undefined(name);
    return GUMBEL_OK;
}

static gb_jinja_value loop_neighbour(const gb_jinja_loop *loop, bool next) {
    if (next && loop->index + 1 < loop->items->count)
        return loop->items->items[loop->index + 1];
    if (!next && loop->index > 0)
        return loop->items->items[loop->index - 1];
    return gb_jinja_undefined(gb_jinja_text_of(next ? "loop.nextitem" : "loop.previtem"));
}

static gb_jinja_value loop_attribute(const gb_jinja_loop *loop, gb_jinja_text name) {
    int64_t index = (int64_t)loop->index, count = (int64_t)loop->items->count;
    if (gb_jinja_text_is(name, "first"))
        return gb_jinja_boolean(index == 0);
    if (gb_jinja_text_is(name, "last"))
        return gb_jinja_boolean(index + 1 == count);
    if (gb_jinja_text_is(name, "previtem") || gb_jinja_text_is(name, "nextitem"))
        return loop_neighbour(loop, name.bytes[0] == 'n');
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        {"index0", index},
        {"index", index + 1},
        {"revindex", count - index},
        {"revindex0", count - index - 1},
        {"length", count},
        {"depth", 1}, /* of recursive loops, which there are none of */
        {"depth0", 0},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (gb_jinja_text_is(name, numbers[i].name))
            return gb_jinja_integer(numbers[i].value);
    return gb_jinja_undefined(name);
}

/* A method of a string or a dict. *found is false when there is none of that name. */
static gumbel_status find_method(gb_jinja_state *state, const gb_jinja_value *value, gb_jinja_text name,
                                 gb_jinja_value *result, bool *found) {
    const gb_jinja_builtin *builtin = NULL;
    if (value->kind == GB_JINJA_STRING)
        builtin = gb_jinja_find_builtin(gb_jinja_string_methods, name);
    else if (value->kind == GB_JINJA_DICT)
        builtin = gb_jinja_find_builtin(gb_jinja_dict_methods, name);
    *found = builtin != NULL;
    *result = gb_jinja_undefined(name);
    if (!builtin || (!builtin->run && !builtin->run_variadic))
        return GUMBEL_OK;
    gumbel_status status;
    gb_jinja_method *method = gb_jinja_allocate(state, 1, sizeof *method, &status);
    if (!method)
        return status;
    *method = (gb_jinja_method){builtin, *value};
    *result = (gb_jinja_value){.kind = GB_JINJA_METHOD, .as.method = method};
    return GUMBEL_OK;
}

/* An entry of a dict or a namespace; *found is false when there is none. */
static gumbel_status find_entry(gb_jinja_state *state, const gb_jinja_value *value, gb_jinja_value key,
                                gb_jinja_value *result, bool *found) {
    gb_jinja_value *entry = NULL;
    if (value->kind == GB_JINJA_DICT || value->kind == GB_JINJA_NAMESPACE)
        GB_TRY(gb_jinja_find(state, value->as.dict, key, &entry));
    *found = entry != NULL;
    if (entry)
        *result = *entry;
    return GUMBEL_OK;
}

gumbel_status gb_jinja_attribute(gb_jinja_state *state, const gb_jinja_value *value, gb_jinja_text name,
                                 gb_jinja_value *result) {
    GB_TRY(gb_jinja_need_defined(state, value));
    *result = gb_jinja_undefined(name);
    if (value->kind == GB_JINJA_LOOP) {
        *result = loop_attribute(value->as.loop, name);
        return GUMBEL_OK;
    }
    bool found;
    GB_TRY(find_method(state, value, name, result, &found));
    return found ? GUMBEL_OK : find_entry(state, value, gb_jinja_string(name), result, &found);
}

/* Turns an index, which from the end is negative, into one from the start; false when out of range. */
static bool resolve_index(int64_t index, size_t count, size_t *resolved) {
    if (index < 0)
        index += (int64_t)count;
    *resolved = (size_t)index;
    return index >= 0 && (uint64_t)index < count;
}

/* A character or an array's item. *result is unchanged when there is none. */
static gumbel_status item_at(gb_jinja_state *state, const gb_jinja_value *value, int64_t index,
                             gb_jinja_value *result) {
    size_t count, at;
    if (value->kind == GB_JINJA_LIST || value->kind == GB_JINJA_TUPLE) {
        if (resolve_index(index, value->as.array->count, &at))
            *result = value->as.array->items[at];
    } else if (value->kind == GB_JINJA_STRING) {
        GB_TRY(gb_jinja_length(state, value, &count));
        if (resolve_index(index, count, &at)) {
            size_t size, offset = gb_jinja_text_offset(value->as.text, at);
            gb_jinja_text_code_point(value->as.text, offset, &size);
            *result = gb_jinja_string(gb_jinja_text_part(value->as.text, offset, size));
        }
    }
    return GUMBEL_OK;
}

gumbel_status gb_jinja_item(gb_jinja_state *state, const gb_jinja_value *value, const gb_jinja_value *key,
                            gb_jinja_value *result) {
    GB_TRY(gb_jinja_need_defined(state, value));
    bool found;
    *result = gb_jinja_undefined(gb_jinja_text_of("an item"));
    if (key->kind == GB_JINJA_STRING)
        *result = gb_jinja_undefined(key->as.text);
    GB_TRY(find_entry(state, value, *key, result, &found));
    if (found)
        return GUMBEL_OK;
    if (gb_jinja_is_integer(key))
        return item_at(state, value, gb_jinja_as_integer(key), result);
    return key->kind == GB_JINJA_STRING ? gb_jinja_attribute(state, value, key->as.text, result) : GUMBEL_OK;
}

gumbel_status gb_jinja_path(gb_jinja_state *state, const gb_jinja_value *value, const gb_jinja_value *path,
                            gb_jinja_value *result) {
    *result = *value;
    if (path->kind != GB_JINJA_STRING)
        return gb_jinja_item(state, value, path, result);
    gb_jinja_text text = path->as.text;
    for (size_t start = 0, end; start <= text.length; start = end + 1) {
        end = gb_jinja_text_find(text, gb_jinja_text_of("."), start);
        if (end == GB_JINJA_NOT_FOUND)
            end = text.length;
        gb_jinja_value key = gb_jinja_string(gb_jinja_text_part(text, start, end - start)), from = *result;
        int64_t index;
        if (gb_jinja_parse_integer(key.as.text, 10, &index) && index >= 0)
            key = gb_jinja_integer(index);
        GB_TRY(gb_jinja_item(state, &from, &key, result));
    }
    return GUMBEL_OK;
}

typedef struct range {
    int64_t start, stop, step;
} range;

static gumbel_status read_bound(gb_jinja_state *state, const gb_jinja_value *bound, int64_t otherwise,
                                int64_t *value) {
    *value = otherwise;
    if (bound->kind == GB_JINJA_NONE)
        return GUMBEL_OK;
    if (!gb_jinja_is_integer(bound))
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "a slice's bounds must be int or none, not %s",
                             gb_jinja_type_name(bound));
    *value = gb_jinja_as_integer(bound);
    return GUMBEL_OK;
}

static int64_t clamp_bound(int64_t bound, int64_t count, bool backwards) {
    int64_t low = backwards ? -1 : 0, high = backwards ? count - 1 : count;
    if (bound < 0)
        bound = bound < -count ? low : bound + count;
    return bound > high ? high : bound;
}

/* Python's rules (PySlice_AdjustIndices) for count items. */
static gumbel_status read_range(gb_jinja_state *state, const gb_jinja_value bounds[3], size_t items,
                                range *r) {
    int64_t count = (int64_t)items;
    GB_TRY(read_bound(state, &bounds[2], 1, &r->step));
    if (r->step == 0)
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "a slice's step must not be 0");
    bool backwards = r->step < 0;
    GB_TRY(read_bound(state, &bounds[0], backwards ? count : 0, &r->start));
    GB_TRY(read_bound(state, &bounds[1], count, &r->stop));
    r->start = clamp_bound(r->start, count, backwards);
    r->stop = backwards && bounds[1].kind == GB_JINJA_NONE ? -1 : clamp_bound(r->stop, count, backwards);
    /* One step leaves any array or string, and a larger one would overflow. */
    if (r->step > count + 1)
        r->step = count + 1;
    if (r->step < -count - 1)
        r->step = -count - 1;
    return GUMBEL_OK;
}

static gumbel_status slice_text(gb_jinja_state *state, gb_jinja_text text, const range *r,
                                gb_jinja_value *result) {
    *result = gb_jinja_string(gb_jinja_text_of(""));
    if (r->step == 1) {
        if (r->start >= r->stop)
            return GUMBEL_OK;
        size_t start = gb_jinja_text_offset(text, (size_t)r->start);
        gb_jinja_text rest = gb_jinja_text_part(text, start, text.length - start);
        size_t length = gb_jinja_text_offset(rest, (size_t)(r->stop - r->start));
        *result = gb_jinja_string(gb_jinja_text_part(rest, 0, length));
        return GUMBEL_OK;
    }
    const gb_jinja_array *characters;
    gb_jinja_value value = gb_jinja_string(text);
    gb_jinja_buffer buffer = {0};
    GB_TRY(gb_jinja_iterate(state, &value, &characters));
    for (int64_t i = r->start; r->step > 0 ? i < r->stop : i > r->stop; i += r->step)
        GB_TRY(gb_jinja_append(state, &buffer, characters->items[i].as.text));
    *result = gb_jinja_string(gb_jinja_buffer_text(&buffer));
    return GUMBEL_OK;
}

static gumbel_status slice_array(gb_jinja_state *state, const gb_jinja_value *value, const range *r,
                                 gb_jinja_value *result) {
    gb_jinja_array *array;
    GB_TRY(gb_jinja_new_array(state, &array));
    for (int64_t i = r->start; r->step > 0 ? i < r->stop : i > r->stop; i += r->step)
        GB_TRY(gb_jinja_push(state, array, value->as.array->items[i]));
    *result = gb_jinja_array_value(value->kind, array);
    return GUMBEL_OK;
}

gumbel_status gb_jinja_slice(gb_jinja_state *state, const gb_jinja_value *value,
                             const gb_jinja_value bounds[3], gb_jinja_value *result) {
    GB_TRY(gb_jinja_need_defined(state, value));
    bool text = value->kind == GB_JINJA_STRING;
    if (!text && value->kind != GB_JINJA_LIST && value->kind != GB_JINJA_TUPLE)
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "a value of type %s cannot be sliced",
                             gb_jinja_type_name(value));
    size_t count;
    range r = {0};
    GB_TRY(gb_jinja_length(state, value, &count));
    GB_TRY(read_range(state, bounds, count, &r));
    return text ? slice_text(state, value->as.text, &r, result) : slice_array(state, value, &r, result);
}
