/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods of strings and dicts. Lists have none that a sandbox allows and templates use.
 */
#include "text/jinja/builtins/builtin.h"
#include "text/jinja/builtins/strings.h"

static bool is_none(const gb_jinja_value *argument) {
    return argument->kind == GB_JINJA_ABSENT || argument->kind == GB_JINJA_NONE;
}

static gumbel_status strip(gb_jinja_state *state, const gb_jinja_value *subject,
                           const gb_jinja_value *argument, bool start, bool end, gb_jinja_value *result) {
    gb_jinja_text characters;
    const gb_jinja_text *stripped = NULL;
    if (!is_none(argument)) {
        GB_TRY(gb_jinja_text_argument(state, argument, "chars", subject->as.text, &characters));
        stripped = &characters;
    }
    *result = gb_jinja_string(gb_jinja_text_strip(subject->as.text, stripped, start, end));
    return gb_jinja_work(state, subject->as.text.length / 64);
}

GB_JINJA_DEFINE(method_strip, strip(state, subject, arguments, true, true, result))
GB_JINJA_DEFINE(method_lstrip, strip(state, subject, arguments, true, false, result))
GB_JINJA_DEFINE(method_rstrip, strip(state, subject, arguments, false, true, result))

static gumbel_status push_text(gb_jinja_state *state, gb_jinja_array *array, gb_jinja_text text, size_t start,
                               size_t end) {
    return gb_jinja_push(state, array, gb_jinja_string(gb_jinja_text_part(text, start, end - start)));
}

/* At runs of white space; none stays but that behind the last part of a limited split. */
static gumbel_status split_words(gb_jinja_state *state, gb_jinja_text text, int64_t limit,
                                 gb_jinja_array *parts) {
    for (;;) {
        text = gb_jinja_text_strip(text, NULL, true, false);
        if (text.length == 0)
            return GUMBEL_OK;
        size_t end = 0, size;
        while (end < text.length && !gb_jinja_is_space(gb_jinja_text_code_point(text, end, &size)))
            end += size;
        if (limit-- == 0)
            return push_text(state, parts, text, 0, text.length);
        GB_TRY(push_text(state, parts, text, 0, end));
        text = gb_jinja_text_part(text, end, text.length - end);
    }
}

static gumbel_status split_at(gb_jinja_state *state, gb_jinja_text text, gb_jinja_text separator,
                              int64_t limit, gb_jinja_array *parts) {
    size_t start = 0, found;
    while (limit-- != 0 && (found = gb_jinja_text_find(text, separator, start)) != GB_JINJA_NOT_FOUND) {
        GB_TRY(push_text(state, parts, text, start, found));
        start = found + separator.length;
    }
    return push_text(state, parts, text, start, text.length);
}

static void reverse_items(gb_jinja_array *array) {
    for (size_t i = 0; i < array->count / 2; i++) {
        gb_jinja_value swapped = array->items[i];
        array->items[i] = array->items[array->count - 1 - i];
        array->items[array->count - 1 - i] = swapped;
    }
}

static gumbel_status split_from_end(gb_jinja_state *state, gb_jinja_text text, gb_jinja_text separator,
                                    int64_t limit, gb_jinja_array *parts) {
    size_t end = text.length, found;
    while (limit-- != 0 && (found = gb_jinja_text_find_last(gb_jinja_text_part(text, 0, end), separator)) !=
                               GB_JINJA_NOT_FOUND) {
        GB_TRY(push_text(state, parts, text, found + separator.length, end));
        end = found;
    }
    GB_TRY(push_text(state, parts, text, 0, end));
    reverse_items(parts);
    return GUMBEL_OK;
}

static gumbel_status split(gb_jinja_state *state, const gb_jinja_value *subject,
                           const gb_jinja_value *arguments, bool from_end, gb_jinja_value *result) {
    gb_jinja_text separator = {0};
    gb_jinja_array *parts;
    int64_t limit;
    GB_TRY(gb_jinja_integer_argument(state, &arguments[1], "maxsplit", -1, &limit));
    GB_TRY(gb_jinja_new_array(state, &parts));
    *result = gb_jinja_array_value(GB_JINJA_LIST, parts);
    if (is_none(&arguments[0])) {
        if (from_end && limit >= 0)
            return gb_jinja_fail(state, GUMBEL_ERROR_UNSUPPORTED, "rsplit takes maxsplit only with sep here");
        return split_words(state, subject->as.text, limit, parts);
    }
    GB_TRY(gb_jinja_text_argument(state, &arguments[0], "sep", separator, &separator));
    if (separator.length == 0)
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "a text cannot be split at an empty separator");
    GB_TRY(gb_jinja_work_search(state, subject->as.text, separator));
    return (from_end ? split_from_end : split_at)(state, subject->as.text, separator, limit, parts);
}

GB_JINJA_DEFINE(method_split, split(state, subject, arguments, false, result))
GB_JINJA_DEFINE(method_rsplit, split(state, subject, arguments, true, result))

typedef bool (*edge_function)(gb_jinja_text, gb_jinja_text);

/* The argument may also be a tuple, one of which is enough. */
static gumbel_status has_edge(gb_jinja_state *state, gb_jinja_text text, const gb_jinja_value *argument,
                              edge_function edge, gb_jinja_value *result) {
    gb_jinja_array one = {.items = (gb_jinja_value[]){*argument}, .count = 1};
    const gb_jinja_array *edges = argument->kind == GB_JINJA_TUPLE ? argument->as.array : &one;
    *result = gb_jinja_boolean(false);
    for (size_t i = 0; i < edges->count; i++) {
        gb_jinja_text wanted;
        GB_TRY(gb_jinja_text_argument(state, &edges->items[i], "prefix", text, &wanted));
        if (edge(text, wanted))
            *result = gb_jinja_boolean(true);
        GB_TRY(gb_jinja_work(state, wanted.length / 1024 + 1));
    }
    return GUMBEL_OK;
}

GB_JINJA_DEFINE(method_startswith,
                has_edge(state, subject->as.text, &arguments[0], gb_jinja_text_starts_with, result))
GB_JINJA_DEFINE(method_endswith,
                has_edge(state, subject->as.text, &arguments[0], gb_jinja_text_ends_with, result))

typedef gumbel_status (*text_function)(gb_jinja_state *, gb_jinja_text, gb_jinja_text *);

static gumbel_status apply(gb_jinja_state *state, const gb_jinja_value *subject, text_function function,
                           gb_jinja_value *result) {
    *result = *subject;
    return function(state, subject->as.text, &result->as.text);
}

GB_JINJA_DEFINE(method_upper, apply(state, subject, gb_jinja_upper, result))
GB_JINJA_DEFINE(method_lower, apply(state, subject, gb_jinja_lower, result))
GB_JINJA_DEFINE(method_capitalize, apply(state, subject, gb_jinja_capitalize, result))
GB_JINJA_DEFINE(method_title, apply(state, subject, gb_jinja_title, result))

static gumbel_status method_replace(gb_jinja_state *state, const gb_jinja_value *subject,
                                    const gb_jinja_value *arguments, gb_jinja_value *result) {
    gb_jinja_text none = gb_jinja_text_of(""), old, new, text;
    int64_t count;
    GB_TRY(gb_jinja_text_argument(state, &arguments[0], "old", none, &old));
    GB_TRY(gb_jinja_text_argument(state, &arguments[1], "new", none, &new));
    GB_TRY(gb_jinja_integer_argument(state, &arguments[2], "count", -1, &count));
    GB_TRY(gb_jinja_replace(state, subject->as.text, old, new, count, &text));
    *result = gb_jinja_string(text);
    return GUMBEL_OK;
}

static gumbel_status method_join(gb_jinja_state *state, const gb_jinja_value *subject,
                                 const gb_jinja_value *arguments, gb_jinja_value *result) {
    const gb_jinja_array *items;
    GB_TRY(gb_jinja_iterate(state, &arguments[0], &items));
    return gb_jinja_join(state, items, subject->as.text, true, result);
}

/* Code points before the found text, -1 where there is none. */
static gumbel_status find(gb_jinja_state *state, gb_jinja_text text, const gb_jinja_value *argument,
                          bool last, gb_jinja_value *result) {
    gb_jinja_text needle;
    GB_TRY(gb_jinja_text_argument(state, argument, "sub", text, &needle));
    GB_TRY(gb_jinja_work_search(state, text, needle));
    size_t found = last ? gb_jinja_text_find_last(text, needle) : gb_jinja_text_find(text, needle, 0);
    *result = gb_jinja_integer(-1);
    if (found != GB_JINJA_NOT_FOUND)
        *result = gb_jinja_integer((int64_t)gb_jinja_text_count(gb_jinja_text_part(text, 0, found)));
    return GUMBEL_OK;
}

GB_JINJA_DEFINE(method_find, find(state, subject->as.text, &arguments[0], false, result))
GB_JINJA_DEFINE(method_rfind, find(state, subject->as.text, &arguments[0], true, result))

static gumbel_status method_count(gb_jinja_state *state, const gb_jinja_value *subject,
                                  const gb_jinja_value *arguments, gb_jinja_value *result) {
    gb_jinja_text text = subject->as.text, wanted;
    GB_TRY(gb_jinja_text_argument(state, &arguments[0], "sub", text, &wanted));
    GB_TRY(gb_jinja_work_search(state, text, wanted));
    int64_t count = wanted.length ? 0 : (int64_t)gb_jinja_text_count(text) + 1;
    size_t at = 0;
    while (wanted.length && (at = gb_jinja_text_find(text, wanted, at)) != GB_JINJA_NOT_FOUND) {
        at += wanted.length;
        count++;
    }
    *result = gb_jinja_integer(count);
    return GUMBEL_OK;
}

static gumbel_status method_splitlines(gb_jinja_state *state, const gb_jinja_value *subject,
                                       const gb_jinja_value *arguments, gb_jinja_value *result) {
    bool keep = gb_jinja_boolean_argument(&arguments[0], false);
    gb_jinja_text text = subject->as.text;
    gb_jinja_array *lines;
    GB_TRY(gb_jinja_new_array(state, &lines));
    for (size_t start = 0, next; start < text.length; start = next) {
        size_t end = gb_jinja_text_line_end(text, start, &next);
        GB_TRY(push_text(state, lines, text, start, keep ? next : end));
    }
    *result = gb_jinja_array_value(GB_JINJA_LIST, lines);
    return gb_jinja_work(state, text.length / 64);
}

static gumbel_status method_format(gb_jinja_state *state, const gb_jinja_value *subject,
                                   const gb_jinja_arguments *arguments, gb_jinja_value *result) {
    gb_jinja_text text;
    GB_TRY(gb_jinja_format(state, subject->as.text, &arguments->positional, &arguments->keywords, &text));
    *result = gb_jinja_string(text);
    return GUMBEL_OK;
}

static gumbel_status method_get(gb_jinja_state *state, const gb_jinja_value *subject,
                                const gb_jinja_value *arguments, gb_jinja_value *result) {
    gb_jinja_value *found;
    GB_TRY(gb_jinja_find(state, subject->as.dict, arguments[0], &found));
    *result = found ? *found : arguments[1].kind == GB_JINJA_ABSENT ? gb_jinja_none() : arguments[1];
    return GUMBEL_OK;
}

/* Each entry's key, value or both. */
static gumbel_status view(gb_jinja_state *state, const gb_jinja_dict *dict, bool keys, bool values,
                          gb_jinja_value *result) {
    gb_jinja_array *array;
    GB_TRY(gb_jinja_new_array(state, &array));
    for (size_t i = 0; i < dict->count; i++) {
        gb_jinja_value item = keys ? dict->entries[i].key : dict->entries[i].value;
        if (keys && values)
            GB_TRY(gb_jinja_pair(state, dict->entries[i].key, dict->entries[i].value, &item));
        GB_TRY(gb_jinja_push(state, array, item));
    }
    *result = gb_jinja_array_value(GB_JINJA_VIEW, array);
    return GUMBEL_OK;
}

GB_JINJA_DEFINE(method_keys, view(state, subject->as.dict, true, false, result))
GB_JINJA_DEFINE(method_values, view(state, subject->as.dict, false, true, result))
GB_JINJA_DEFINE(method_items, view(state, subject->as.dict, true, true, result))

/* Dicts cannot be changed, so a copy is the same. */
static gumbel_status method_copy(gb_jinja_state *state, const gb_jinja_value *subject,
                                 const gb_jinja_value *arguments, gb_jinja_value *result) {
    (void)state, (void)arguments;
    *result = *subject;
    return GUMBEL_OK;
}

const gb_jinja_builtin gb_jinja_string_methods[] = {
    {.name = "strip", .run = method_strip, .parameters = {"chars"}},
    {.name = "lstrip", .run = method_lstrip, .parameters = {"chars"}},
    {.name = "rstrip", .run = method_rstrip, .parameters = {"chars"}},
    {.name = "split", .run = method_split, .parameters = {"sep", "maxsplit"}},
    {.name = "rsplit", .run = method_rsplit, .parameters = {"sep", "maxsplit"}},
    {.name = "splitlines", .run = method_splitlines, .parameters = {"keepends"}},
    {.name = "startswith", .run = method_startswith, .parameters = {"prefix"}, .required = 1},
    {.name = "endswith", .run = method_endswith, .parameters = {"suffix"}, .required = 1},
    {.name = "upper", .run = method_upper},
    {.name = "lower", .run = method_lower},
    {.name = "capitalize", .run = method_capitalize},
    {.name = "title", .run = method_title},
    {.name = "replace", .run = method_replace, .parameters = {"old", "new", "count"}, .required = 2},
    {.name = "join", .run = method_join, .parameters = {"iterable"}, .required = 1},
    {.name = "find", .run = method_find, .parameters = {"sub"}, .required = 1},
    {.name = "rfind", .run = method_rfind, .parameters = {"sub"}, .required = 1},
    {.name = "count", .run = method_count, .parameters = {"sub"}, .required = 1},
    {.name = "format", .run_variadic = method_format},
    {.name = NULL},
};

const gb_jinja_builtin gb_jinja_dict_methods[] = {
    {.name = "get", .run = method_get, .parameters = {"key", "default"}, .required = 1},
    {.name = "keys", .run = method_keys},
    {.name = "values", .run = method_values},
    {.name = "items", .run = method_items},
    {.name = "copy", .run = method_copy},
    {.name = "clear"},
    {.name = "pop"},
    {.name = "popitem"},
    {.name = "setdefault"},
    {.name = "update"},
    {.name = NULL},
};
