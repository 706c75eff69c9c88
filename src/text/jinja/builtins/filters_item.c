/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters of lists and dicts: joining, taking, ordering.
 */
#include "text/jinja/builtins/builtin.h"
#include "text/jinja/builtins/strings.h"
#include "text/jinja/run/runtime.h"
#include "text/jinja/value/print.h"
#include "text/jinja/value/sort.h"

/* What an item is ordered by: itself or what stands at its attribute, strings in lower case unless case
 * counts. */
static gumbel_status key_of(gb_jinja_state *state, const gb_jinja_value *item,
                            const gb_jinja_value *attribute, bool case_sensitive, gb_jinja_value *key) {
    *key = *item;
    if (attribute && attribute->kind != GB_JINJA_ABSENT && attribute->kind != GB_JINJA_NONE)
        GB_TRY(gb_jinja_path(state, item, attribute, key));
    if (key->kind == GB_JINJA_STRING && !case_sensitive)
        GB_TRY(gb_jinja_lower(state, key->as.text, &key->as.text));
    return GUMBEL_OK;
}

static gumbel_status filter_join(gb_jinja_state *state, const gb_jinja_value *subject,
                                 const gb_jinja_value *arguments, gb_jinja_value *result) {
    const gb_jinja_array *items;
    gb_jinja_array *texts;
    gb_jinja_text separator = gb_jinja_text_of("");
    GB_TRY(gb_jinja_iterate(state, subject, &items));
    if (arguments[0].kind != GB_JINJA_ABSENT)
        GB_TRY(gb_jinja_to_text(state, &arguments[0], &separator));
    GB_TRY(gb_jinja_new_array(state, &texts));
    for (size_t i = 0; i < items->count; i++) {
        gb_jinja_value item;
        GB_TRY(key_of(state, &items->items[i], &arguments[1], true, &item));
        GB_TRY(gb_jinja_push(state, texts, item));
    }
    return gb_jinja_join(state, texts, separator, false, result);
}

static gumbel_status filter_first(gb_jinja_state *state, const gb_jinja_value *subject,
                                  const gb_jinja_value *arguments, gb_jinja_value *result) {
    (void)arguments;
    const gb_jinja_array *items;
    GB_TRY(gb_jinja_iterate(state, subject, &items));
    *result = items->count ? items->items[0] : gb_jinja_undefined(gb_jinja_text_of("the first item"));
    return GUMBEL_OK;
}

static gumbel_status filter_last(gb_jinja_state *state, const gb_jinja_value *subject,
                                 const gb_jinja_value *arguments, gb_jinja_value *result) {
    (void)arguments;
    const gb_jinja_array *items;
    GB_TRY(gb_jinja_iterate(state, subject, &items));
    *result =
        items->count ? items->items[items->count - 1] : gb_jinja_undefined(gb_jinja_text_of("the last item"));
    return GUMBEL_OK;
}

static gumbel_status filter_list(gb_jinja_state *state, const gb_jinja_value *subject,
                                 const gb_jinja_value *arguments, gb_jinja_value *result) {
    (void)arguments;
    const gb_jinja_array *items;
    gb_jinja_array *copy;
    GB_TRY(gb_jinja_iterate(state, subject, &items));
    GB_TRY(gb_jinja_new_array(state, &copy));
    *copy = *items;
    *result = gb_jinja_array_value(GB_JINJA_LIST, copy);
    return GUMBEL_OK;
}

static gumbel_status filter_reverse(gb_jinja_state *state, const gb_jinja_value *subject,
                                    const gb_jinja_value *arguments, gb_jinja_value *result) {
    (void)arguments;
    const gb_jinja_array *items;
    gb_jinja_array *reversed;
    GB_TRY(gb_jinja_iterate(state, subject, &items));
    GB_TRY(gb_jinja_new_array(state, &reversed));
    for (size_t i = items->count; i-- > 0;)
        GB_TRY(gb_jinja_push(state, reversed, items->items[i]));
    *result = gb_jinja_array_value(GB_JINJA_ITERATOR, reversed);
    if (subject->kind == GB_JINJA_STRING)
        GB_TRY(gb_jinja_join(state, reversed, gb_jinja_text_of(""), false, result));
    return gb_jinja_work(state, items->count / 16);
}

static gumbel_status need_dict(gb_jinja_state *state, const char *filter, const gb_jinja_value *value) {
    if (value->kind == GB_JINJA_DICT)
        return GUMBEL_OK;
    GB_TRY(gb_jinja_need_defined(state, value));
    return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "the filter \"%s\" needs a dict, found %s", filter,
                         gb_jinja_type_name(value));
}

static gumbel_status filter_items(gb_jinja_state *state, const gb_jinja_value *subject,
                                  const gb_jinja_value *arguments, gb_jinja_value *result) {
    (void)arguments;
    gb_jinja_array *pairs;
    GB_TRY(gb_jinja_new_array(state, &pairs));
    *result = gb_jinja_array_value(GB_JINJA_ITERATOR, pairs);
    if (subject->kind == GB_JINJA_UNDEFINED)
        return GUMBEL_OK;
    GB_TRY(need_dict(state, "items", subject));
    for (size_t i = 0; i < subject->as.dict->count; i++) {
        const gb_jinja_entry *entry = &subject->as.dict->entries[i];
        gb_jinja_value pair;
        GB_TRY(gb_jinja_pair(state, entry->key, entry->value, &pair));
        GB_TRY(gb_jinja_push(state, pairs, pair));
    }
    return GUMBEL_OK;
}

/* A list of the entries' values, in the order of their keys. */
static gumbel_status sorted_list(gb_jinja_state *state, gb_jinja_entry *entries, size_t count, bool reverse,
                                 gb_jinja_value *result) {
    gb_jinja_array *array;
    GB_TRY(gb_jinja_sort(state, entries, count, reverse));
    GB_TRY(gb_jinja_new_array(state, &array));
    for (size_t i = 0; i < count; i++)
        GB_TRY(gb_jinja_push(state, array, entries[i].value));
    *result = gb_jinja_array_value(GB_JINJA_LIST, array);
    return GUMBEL_OK;
}

static gumbel_status filter_dictsort(gb_jinja_state *state, const gb_jinja_value *subject,
                                     const gb_jinja_value *arguments, gb_jinja_value *result) {
    bool case_sensitive = gb_jinja_boolean_argument(&arguments[0], false);
    gb_jinja_text by;
    GB_TRY(need_dict(state, "dictsort", subject));
    GB_TRY(gb_jinja_text_argument(state, &arguments[1], "by", gb_jinja_text_of("key"), &by));
    if (!gb_jinja_text_is(by, "key") && !gb_jinja_text_is(by, "value"))
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "dictsort sorts by key or by value");
    const gb_jinja_dict *dict = subject->as.dict;
    gumbel_status status;
    gb_jinja_entry *entries = gb_jinja_allocate(state, dict->count, sizeof *entries, &status);
    if (!entries)
        return status;
    for (size_t i = 0; i < dict->count; i++) {
        const gb_jinja_entry *entry = &dict->entries[i];
        const gb_jinja_value *sorted = gb_jinja_text_is(by, "key") ? &entry->key : &entry->value;
        GB_TRY(key_of(state, sorted, NULL, case_sensitive, &entries[i].key));
        GB_TRY(gb_jinja_pair(state, entry->key, entry->value, &entries[i].value));
    }
    return sorted_list(state, entries, dict->count, gb_jinja_boolean_argument(&arguments[2], false), result);
}

static gumbel_status filter_sort(gb_jinja_state *state, const gb_jinja_value *subject,
                                 const gb_jinja_value *arguments, gb_jinja_value *result) {
    const gb_jinja_array *items;
    GB_TRY(gb_jinja_iterate(state, subject, &items));
    gumbel_status status;
    gb_jinja_entry *entries = gb_jinja_allocate(state, items->count, sizeof *entries, &status);
    if (!entries)
        return status;
    bool case_sensitive = gb_jinja_boolean_argument(&arguments[1], false);
    for (size_t i = 0; i < items->count; i++) {
        GB_TRY(key_of(state, &items->items[i], &arguments[2], case_sensitive, &entries[i].key));
        entries[i].value = items->items[i];
    }
    return sorted_list(state, entries, items->count, gb_jinja_boolean_argument(&arguments[0], false), result);
}

static gumbel_status filter_unique(gb_jinja_state *state, const gb_jinja_value *subject,
                                   const gb_jinja_value *arguments, gb_jinja_value *result) {
    const gb_jinja_array *items;
    gb_jinja_array *kept;
    gb_jinja_dict *seen;
    GB_TRY(gb_jinja_iterate(state, subject, &items));
    GB_TRY(gb_jinja_new_array(state, &kept));
    GB_TRY(gb_jinja_new_dict(state, &seen));
    bool case_sensitive = gb_jinja_boolean_argument(&arguments[0], false);
    for (size_t i = 0; i < items->count; i++) {
        gb_jinja_value key, *found;
        GB_TRY(key_of(state, &items->items[i], &arguments[1], case_sensitive, &key));
        GB_TRY(gb_jinja_need_key(state, &key));
        GB_TRY(gb_jinja_find(state, seen, key, &found));
        if (found)
            continue;
        GB_TRY(gb_jinja_set(state, seen, key, gb_jinja_none()));
        GB_TRY(gb_jinja_push(state, kept, items->items[i]));
    }
    *result = gb_jinja_array_value(GB_JINJA_ITERATOR, kept);
    return GUMBEL_OK;
}

/* The first of the items that no other is below, or above with largest. */
static gumbel_status extreme(gb_jinja_state *state, const gb_jinja_value *subject,
                             const gb_jinja_value *arguments, bool largest, gb_jinja_value *result) {
    const gb_jinja_array *items;
    gb_jinja_value best, key;
    bool case_sensitive = gb_jinja_boolean_argument(&arguments[0], false);
    GB_TRY(gb_jinja_iterate(state, subject, &items));
    *result = gb_jinja_undefined(gb_jinja_text_of("an item of an empty sequence"));
    for (size_t i = 0; i < items->count; i++) {
        int order = largest ? 1 : -1;
        GB_TRY(key_of(state, &items->items[i], &arguments[1], case_sensitive, &key));
        if (i > 0)
            GB_TRY(gb_jinja_order(state, &key, &best, &order));
        if (largest ? order <= 0 : order >= 0)
            continue;
        best = key;
        *result = items->items[i];
    }
    return gb_jinja_work(state, items->count / 16);
}

GB_JINJA_DEFINE(filter_min, extreme(state, subject, arguments, false, result))
GB_JINJA_DEFINE(filter_max, extreme(state, subject, arguments, true, result))

static gumbel_status filter_sum(gb_jinja_state *state, const gb_jinja_value *subject,
                                const gb_jinja_value *arguments, gb_jinja_value *result) {
    const gb_jinja_array *items;
    GB_TRY(gb_jinja_iterate(state, subject, &items));
    *result = arguments[1].kind == GB_JINJA_ABSENT ? gb_jinja_integer(0) : arguments[1];
    for (size_t i = 0; i < items->count; i++) {
        gb_jinja_value item, total = *result;
        GB_TRY(key_of(state, &items->items[i], &arguments[0], true, &item));
        GB_TRY(gb_jinja_arithmetic(state, GB_JINJA_ADD, &total, &item, result));
    }
    return gb_jinja_work(state, items->count / 16);
}

const gb_jinja_builtin gb_jinja_item_filters[] = {
    {.name = "join", .run = filter_join, .parameters = {"d", "attribute"}},
    {.name = "first", .run = filter_first},
    {.name = "last", .run = filter_last},
    {.name = "list", .run = filter_list},
    {.name = "reverse", .run = filter_reverse},
    {.name = "items", .run = filter_items},
    {.name = "dictsort", .run = filter_dictsort, .parameters = {"case_sensitive", "by", "reverse"}},
    {.name = "sort", .run = filter_sort, .parameters = {"reverse", "case_sensitive", "attribute"}},
    {.name = "unique", .run = filter_unique, .parameters = {"case_sensitive", "attribute"}},
    {.name = "min", .run = filter_min, .parameters = {"case_sensitive", "attribute"}},
    {.name = "max", .run = filter_max, .parameters = {"case_sensitive", "attribute"}},
    {.name = "sum", .run = filter_sum, .parameters = {"attribute", "start"}},
    {.name = NULL},
};
