/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters of strings. As in Jinja all but indent take any value, as its text.
 */
#include "text/jinja/builtins/builtin.h"
#include "text/jinja/builtins/strings.h"
#include "text/jinja/value/print.h"

static gumbel_status filter_trim(gb_jinja_state *state, const gb_jinja_value *subject,
                                 const gb_jinja_value *arguments, gb_jinja_value *result) {
    gb_jinja_text text, characters;
    bool given = arguments[0].kind != GB_JINJA_ABSENT && arguments[0].kind != GB_JINJA_NONE;
    GB_TRY(gb_jinja_to_text(state, subject, &text));
    GB_TRY(gb_jinja_work(state, text.length / 64));
    if (given)
        GB_TRY(gb_jinja_text_argument(state, &arguments[0], "chars", text, &characters));
    *result = gb_jinja_string(gb_jinja_text_strip(text, given ? &characters : NULL, true, true));
    return GUMBEL_OK;
}

typedef gumbel_status (*text_function)(gb_jinja_state *, gb_jinja_text, gb_jinja_text *);

static gumbel_status apply(gb_jinja_state *state, const gb_jinja_value *subject, text_function function,
                           gb_jinja_value *result) {
    gb_jinja_text text;
    GB_TRY(gb_jinja_to_text(state, subject, &text));
    GB_TRY(function(state, text, &text));
    *result = gb_jinja_string(text);
    return GUMBEL_OK;
}

GB_JINJA_DEFINE(filter_upper, apply(state, subject, gb_jinja_upper, result))
GB_JINJA_DEFINE(filter_lower, apply(state, subject, gb_jinja_lower, result))
GB_JINJA_DEFINE(filter_capitalize, apply(state, subject, gb_jinja_capitalize, result))

/* Unlike str.title, the filter's words start only behind white space, hyphens and opening brackets. */
static gumbel_status title_words(gb_jinja_state *state, gb_jinja_text text, gb_jinja_text *result) {
    gb_jinja_buffer buffer = {0};
    bool first = true;
    size_t size;
    for (size_t offset = 0; offset < text.length; offset += size) {
        uint32_t code_point = gb_jinja_text_code_point(text, offset, &size);
        gb_jinja_text character = gb_jinja_text_part(text, offset, size);
        GB_TRY((first ? gb_jinja_upper : gb_jinja_lower)(state, character, &character));
        GB_TRY(gb_jinja_append(state, &buffer, character));
        first = gb_jinja_is_space(code_point) || code_point == '-' || code_point == '(' ||
                code_point == '{' || code_point == '[' || code_point == '<';
    }
    *result = gb_jinja_buffer_text(&buffer);
    return GUMBEL_OK;
}

GB_JINJA_DEFINE(filter_title, apply(state, subject, title_words, result))

static gumbel_status filter_replace(gb_jinja_state *state, const gb_jinja_value *subject,
                                    const gb_jinja_value *arguments, gb_jinja_value *result) {
    gb_jinja_text text, old, new;
    int64_t count;
    GB_TRY(gb_jinja_to_text(state, subject, &text));
    GB_TRY(gb_jinja_to_text(state, &arguments[0], &old));
    GB_TRY(gb_jinja_to_text(state, &arguments[1], &new));
    GB_TRY(gb_jinja_integer_argument(state, &arguments[2], "count", -1, &count));
    GB_TRY(gb_jinja_replace(state, text, old, new, count, &text));
    *result = gb_jinja_string(text);
    return GUMBEL_OK;
}

/* What stands before each indented line: the text itself, or that many spaces. */
static gumbel_status read_width(gb_jinja_state *state, const gb_jinja_value *argument,
                                gb_jinja_text *indent) {
    if (argument->kind == GB_JINJA_STRING)
        return gb_jinja_text_argument(state, argument, "width", *indent, indent);
    int64_t width;
    gb_jinja_buffer spaces = {0};
    GB_TRY(gb_jinja_integer_argument(state, argument, "width", 4, &width));
    for (int64_t i = 0; i < width; i++)
        GB_TRY(gb_jinja_append_string(state, &spaces, " "));
    *indent = gb_jinja_buffer_text(&spaces);
    return GUMBEL_OK;
}

static gumbel_status filter_indent(gb_jinja_state *state, const gb_jinja_value *subject,
                                   const gb_jinja_value *arguments, gb_jinja_value *result) {
    bool first = gb_jinja_boolean_argument(&arguments[1], false);
    bool blank = gb_jinja_boolean_argument(&arguments[2], false);
    gb_jinja_text text, indent = {0};
    gb_jinja_buffer buffer = {0};
    GB_TRY(gb_jinja_text_argument(state, subject, "s", indent, &text));
    GB_TRY(read_width(state, &arguments[0], &indent));
    bool more = true;
    for (size_t start = 0, next; more; start = next) {
        size_t end = gb_jinja_text_line_end(text, start, &next);
        more = next > end;
        if (start > 0)
            GB_TRY(gb_jinja_append_string(state, &buffer, "\n"));
        if (start > 0 ? blank || end > start : first)
            GB_TRY(gb_jinja_append(state, &buffer, indent));
        GB_TRY(gb_jinja_append(state, &buffer, gb_jinja_text_part(text, start, end - start)));
    }
    *result = gb_jinja_string(gb_jinja_buffer_text(&buffer));
    return GUMBEL_OK;
}

const gb_jinja_builtin gb_jinja_text_filters[] = {
    {.name = "trim", .run = filter_trim, .parameters = {"chars"}},
    {.name = "upper", .run = filter_upper},
    {.name = "lower", .run = filter_lower},
    {.name = "capitalize", .run = filter_capitalize},
    {.name = "title", .run = filter_title},
    {.name = "replace", .run = filter_replace, .parameters = {"old", "new", "count"}, .required = 2},
    {.name = "indent", .run = filter_indent, .parameters = {"width", "first", "blank"}},
    {.name = NULL},
};
