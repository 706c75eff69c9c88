/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/choices.h"

#include "base/memory.h"
#include "grammar/common/common.h"
#include "text/base/load_json.h"

#include <jansson.h>
#include <string.h>

/* status: of reading the list. */
static gumbel_status check(const json_t *list, gumbel_status status, const json_error_t *place,
                           gumbel_error *error) {
    if (status == GUMBEL_ERROR_MEMORY)
        return gb_fail(error, status, "choices: no memory to read them");
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
    const char **texts = gb_allocate(count, sizeof *texts);
    size_t *sizes = gb_allocate(count, sizeof *sizes);
    gb_expression choice = 0;
    if (!texts || !sizes)
        gb_expressions_fail(expressions, GUMBEL_ERROR_MEMORY, "no memory for %zu choices", count);
    for (size_t i = 0; i < count && texts && sizes; i++) {
        texts[i] = json_string_value(json_array_get(list, i));
        sizes[i] = json_string_length(json_array_get(list, i));
    }
    if (texts && sizes)
        choice = gb_express_choices(expressions, texts, sizes, count);
    gb_free(texts);
    gb_free(sizes);
    return choice;
}

gb_expression gb_read_choices(gb_expressions *expressions, const char *text, gumbel_error *error) {
    json_error_t place;
    gumbel_status status;
    json_t *list = gb_decode_json(text, strlen(text), JSON_REJECT_DUPLICATES, &place, &status);
    gb_expression choice = 0;
    if (check(list, status, &place, error) == GUMBEL_OK) {
        choice = express(expressions, list);
        gb_expressions_error(expressions, error);
    }
    json_decref(list);
    return choice;
}
