/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/choices.h"

#include "base/memory.h"

#include <jansson.h>

static gumbel_status check(const json_t *list, const json_error_t *place, gumbel_error *error) {
    if (!list)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "choices: line %d, column %d: %s", place->line,
                       place->column, place->text);
    if (!json_is_array(list) || json_array_size(list) == 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "choices: expected an array of one string or more");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_string(json_array_get(list, i)))
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "choices: element %zu is no string", i);
    return GUMBEL_OK;
}

static gb_expression express(gb_expressions *expressions, const json_t *list) {
    const size_t count = json_array_size(list);
    gb_expression *items = gb_allocate(count, sizeof *items);
    if (!items)
        return gb_expressions_fail(expressions, GUMBEL_ERROR_MEMORY, "no memory for %zu choices", count);
    for (size_t i = 0; i < count; i++) {
        const json_t *text = json_array_get(list, i);
        items[i] = gb_express_bytes(expressions, json_string_value(text), json_string_length(text));
    }
    const gb_expression choice = gb_express_choice(expressions, items, count);
    gb_free(items);
    return choice;
}

gb_expression gb_read_choices(gb_expressions *expressions, const char *text, gumbel_error *error) {
    json_error_t place;
    json_t *list = json_loads(text, JSON_REJECT_DUPLICATES, &place);
    gb_expression choice = 0;
    if (check(list, &place, error) == GUMBEL_OK) {
        choice = express(expressions, list);
        gb_expressions_error(expressions, error);
    }
    json_decref(list);
    return choice;
}
