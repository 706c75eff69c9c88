/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that every template can call.
 */
#include "text/base/utf8.h"
#include "text/jinja/builtins/builtin.h"
#include "text/jinja/value/print.h"

#include <string.h>
#include <time.h>

static gumbel_status read_range(gb_jinja_state *state, const gb_jinja_value *arguments, int64_t *start,
                                int64_t *stop, int64_t *step) {
    int64_t first;
    GB_TRY(gb_jinja_integer_argument(state, &arguments[0], "start", 0, &first));
    GB_TRY(gb_jinja_integer_argument(state, &arguments[1], "stop", first, stop));
    GB_TRY(gb_jinja_integer_argument(state, &arguments[2], "step", 1, step));
    *start = arguments[1].kind == GB_JINJA_ABSENT ? 0 : first;
    return *step != 0 ? GUMBEL_OK : gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "range's step must not be 0");
}

static gumbel_status global_range(gb_jinja_state *state, const gb_jinja_value *subject,
                                  const gb_jinja_value *arguments, gb_jinja_value *result) {
    (void)subject;
    int64_t start, stop, step;
    gb_jinja_array *array;
    GB_TRY(read_range(state, arguments, &start, &stop, &step));
    GB_TRY(gb_jinja_new_array(state, &array));
    while (step > 0 ? start < stop : start > stop) {
        if (array->count == GB_JINJA_MAX_RANGE)
            return gb_jinja_fail(state, GUMBEL_ERROR_LIMIT, "a range has more than %d items",
                                 GB_JINJA_MAX_RANGE);
        GB_TRY(gb_jinja_push(state, array, gb_jinja_integer(start)));
        if (__builtin_add_overflow(start, step, &start))
            break;
    }
    *result = gb_jinja_array_value(GB_JINJA_LIST, array);
    return GUMBEL_OK;
}

/* dict(other, key=value, ...), which namespace takes too. */
static gumbel_status make_dict(gb_jinja_state *state, const gb_jinja_arguments *arguments, gb_jinja_kind kind,
                               gb_jinja_value *result) {
    const gb_jinja_array *positional = &arguments->positional;
    *result = (gb_jinja_value){.kind = kind};
    GB_TRY(gb_jinja_new_dict(state, &result->as.dict));
    if (positional->count > 1 || (positional->count && positional->items[0].kind != GB_JINJA_DICT))
        return gb_jinja_fail(state, GUMBEL_ERROR_UNSUPPORTED,
                             "dict and namespace take one dict and keywords here");
    const gb_jinja_dict *sources[] = {positional->count ? positional->items[0].as.dict : NULL,
                                      &arguments->keywords};
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; sources[s] && i < sources[s]->count; i++)
            GB_TRY(gb_jinja_set(state, result->as.dict, sources[s]->entries[i].key,
                                sources[s]->entries[i].value));
    return GUMBEL_OK;
}

static gumbel_status global_dict(gb_jinja_state *state, const gb_jinja_value *subject,
                                 const gb_jinja_arguments *arguments, gb_jinja_value *result) {
    (void)subject;
    return make_dict(state, arguments, GB_JINJA_DICT, result);
}

static gumbel_status global_namespace(gb_jinja_state *state, const gb_jinja_value *subject,
                                      const gb_jinja_arguments *arguments, gb_jinja_value *result) {
    (void)subject;
    return make_dict(state, arguments, GB_JINJA_NAMESPACE, result);
}

static gumbel_status global_raise_exception(gb_jinja_state *state, const gb_jinja_value *subject,
                                            const gb_jinja_value *arguments, gb_jinja_value *result) {
    (void)subject, (void)result;
    gb_jinja_text message;
    GB_TRY(gb_jinja_to_text(state, &arguments[0], &message));
    size_t shown = message.length < 400 ? message.length : 400;
    while (shown > 0 && shown < message.length && ((unsigned char)message.bytes[shown] & 0xC0) == 0x80)
        shown--;
    return gb_jinja_fail(state, GUMBEL_ERROR_ARGUMENT, "%.*s", (int)shown, message.bytes);
}

static gumbel_status global_strftime_now(gb_jinja_state *state, const gb_jinja_value *subject,
                                         const gb_jinja_value *arguments, gb_jinja_value *result) {
    (void)subject;
    char format[128], text[1024];
    gb_jinja_text given;
    GB_TRY(gb_jinja_text_argument(state, &arguments[0], "format", gb_jinja_text_of(""), &given));
    if (given.length >= sizeof format)
        return gb_jinja_fail(state, GUMBEL_ERROR_LIMIT, "strftime_now's format is longer than %zu bytes",
                             sizeof format - 1);
    memcpy(format, given.bytes, given.length);
    format[given.length] = 0;
    time_t now = state->has_time ? (time_t)state->time : time(NULL);
    struct tm local;
    size_t length = localtime_r(&now, &local) ? strftime(text, sizeof text, format, &local) : 0;
    if (!gb_utf8_is_valid(text, length))
        return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "the date is not UTF-8 in this locale");
    gb_jinja_buffer buffer = {.taints = given.taint != NULL};
    GB_TRY(gb_jinja_append(state, &buffer, (gb_jinja_text){.bytes = text, .length = length}));
    *result = gb_jinja_string(gb_jinja_buffer_text(&buffer));
    return GUMBEL_OK;
}

const gb_jinja_builtin gb_jinja_globals[] = {
    {.name = "range", .run = global_range, .parameters = {"start", "stop", "step"}, .required = 1},
    {.name = "dict", .run_variadic = global_dict},
    {.name = "namespace", .run_variadic = global_namespace},
    {.name = "raise_exception", .run = global_raise_exception, .parameters = {"message"}, .required = 1},
    {.name = "strftime_now", .run = global_strftime_now, .parameters = {"format"}, .required = 1},
    {.name = NULL},
};
