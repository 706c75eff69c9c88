/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/builtins/strings.h"

#include "text/jinja/value/number.h"
#include "text/jinja/value/print.h"

#include <utf8proc.h>

typedef enum letter_case { LOWER, UPPER, TITLE } letter_case;

static gumbel_status append_cased(gb_jinja_state *state, gb_jinja_buffer *buffer, uint32_t code_point,
                                  letter_case wanted) {
    if (code_point == 0xDF && wanted != LOWER)
        return gb_jinja_append_string(state, buffer, wanted == UPPER ? "SS" : "Ss");
    utf8proc_int32_t from = (utf8proc_int32_t)code_point;
    utf8proc_int32_t cased = wanted == LOWER   ? utf8proc_tolower(from)
                             : wanted == UPPER ? utf8proc_toupper(from)
                                               : utf8proc_totitle(from);
    return gb_jinja_append_code_point(state, buffer, (uint32_t)cased);
}

static bool is_cased(uint32_t code_point) {
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code_point);
    return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
           category == UTF8PROC_CATEGORY_LT;
}

/* The first character in one case, the others in another; with words, each run of letters starts anew. */
static gumbel_status change_case(gb_jinja_state *state, gb_jinja_text text, letter_case first,
                                 letter_case others, bool words, gb_jinja_text *result) {
    gb_jinja_buffer buffer = {0};
    bool at_first = true;
    size_t size;
    for (size_t offset = 0; offset < text.length; offset += size) {
        uint32_t code_point = gb_jinja_text_code_point(text, offset, &size);
        buffer.taints = gb_jinja_is_tainted(text, offset);
        GB_TRY(append_cased(state, &buffer, code_point, at_first ? first : others));
        at_first = words && !is_cased(code_point);
    }
    *result = gb_jinja_buffer_text(&buffer);
    return GUMBEL_OK;
}

gumbel_status gb_jinja_upper(gb_jinja_state *state, gb_jinja_text text, gb_jinja_text *result) {
    return change_case(state, text, UPPER, UPPER, false, result);
}

gumbel_status gb_jinja_lower(gb_jinja_state *state, gb_jinja_text text, gb_jinja_text *result) {
    return change_case(state, text, LOWER, LOWER, false, result);
}

gumbel_status gb_jinja_capitalize(gb_jinja_state *state, gb_jinja_text text, gb_jinja_text *result) {
    return change_case(state, text, TITLE, LOWER, false, result);
}

gumbel_status gb_jinja_title(gb_jinja_state *state, gb_jinja_text text, gb_jinja_text *result) {
    return change_case(state, text, TITLE, LOWER, true, result);
}

/* An empty text is found before every character and at the end. */
static gumbel_status insert_everywhere(gb_jinja_state *state, gb_jinja_text text, gb_jinja_text new,
                                       int64_t count, gb_jinja_buffer *buffer) {
    size_t size = 0;
    for (size_t offset = 0; offset <= text.length; offset += size) {
        if (count != 0)
            GB_TRY(gb_jinja_append(state, buffer, new));
        count -= count > 0;
        if (offset == text.length)
            break;
        gb_jinja_text_code_point(text, offset, &size);
        GB_TRY(gb_jinja_append(state, buffer, gb_jinja_text_part(text, offset, size)));
    }
    return GUMBEL_OK;
}

gumbel_status gb_jinja_replace(gb_jinja_state *state, gb_jinja_text text, gb_jinja_text old,
                               gb_jinja_text new, int64_t count, gb_jinja_text *result) {
    gb_jinja_buffer buffer = {0};
    size_t start = 0, found;
    GB_TRY(gb_jinja_work_search(state, text, old));
    if (old.length == 0) {
        GB_TRY(insert_everywhere(state, text, new, count, &buffer));
        start = text.length;
    }
    while (count != 0 && old.length && (found = gb_jinja_text_find(text, old, start)) != GB_JINJA_NOT_FOUND) {
        GB_TRY(gb_jinja_append(state, &buffer, gb_jinja_text_part(text, start, found - start)));
        GB_TRY(gb_jinja_append(state, &buffer, new));
        start = found + old.length;
        count -= count > 0;
    }
    GB_TRY(gb_jinja_append(state, &buffer, gb_jinja_text_part(text, start, text.length - start)));
    *result = gb_jinja_buffer_text(&buffer);
    return GUMBEL_OK;
}

gumbel_status gb_jinja_join(gb_jinja_state *state, const gb_jinja_array *items, gb_jinja_text separator,
                            bool strict, gb_jinja_value *result) {
    gb_jinja_buffer buffer = {0};
    for (size_t i = 0; i < items->count; i++) {
        if (strict && items->items[i].kind != GB_JINJA_STRING)
            return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "join needs str, found %s",
                                 gb_jinja_type_name(&items->items[i]));
        if (i > 0)
            GB_TRY(gb_jinja_append(state, &buffer, separator));
        GB_TRY(gb_jinja_print(state, &items->items[i], &buffer));
    }
    *result = gb_jinja_string(gb_jinja_buffer_text(&buffer));
    return gb_jinja_work(state, items->count / 16);
}

static gumbel_status append_field(gb_jinja_state *state, gb_jinja_text field,
                                  const gb_jinja_array *positional, const gb_jinja_dict *keywords,
                                  size_t *automatic, gb_jinja_buffer *buffer) {
    int64_t index = -1;
    gb_jinja_value *value = NULL;
    if (field.length == 0)
        index = (int64_t)(*automatic)++;
    else if (!gb_jinja_parse_integer(field, 10, &index))
        GB_TRY(gb_jinja_find(state, keywords, gb_jinja_string(field), &value));
    if (index >= 0 && (uint64_t)index < positional->count)
        value = &positional->items[index];
    if (!value)
        return gb_jinja_fail(state, GUMBEL_ERROR_UNSUPPORTED, "format has no value here for \"{%.*s}\"",
                             GB_JINJA_SHOWN(field));
    return gb_jinja_print(state, value, buffer);
}

gumbel_status gb_jinja_format(gb_jinja_state *state, gb_jinja_text pattern, const gb_jinja_array *positional,
                              const gb_jinja_dict *keywords, gb_jinja_text *result) {
    gb_jinja_buffer buffer = {0};
    size_t automatic = 0;
    for (size_t at = 0; at < pattern.length;) {
        gb_jinja_text one = gb_jinja_text_part(pattern, at, 1);
        bool bracket = one.bytes[0] == '{' || one.bytes[0] == '}';
        bool doubled = bracket && at + 1 < pattern.length && pattern.bytes[at + 1] == one.bytes[0];
        if (!bracket || doubled) {
            GB_TRY(gb_jinja_append(state, &buffer, one));
            at += doubled ? 2 : 1;
            continue;
        }
        size_t end = gb_jinja_text_find(pattern, gb_jinja_text_of("}"), at + 1);
        if (one.bytes[0] == '}' || end == GB_JINJA_NOT_FOUND)
            return gb_jinja_fail(state, GUMBEL_ERROR_FORMAT, "format finds a single '%c'", one.bytes[0]);
        gb_jinja_text field = gb_jinja_text_part(pattern, at + 1, end - at - 1);
        GB_TRY(append_field(state, field, positional, keywords, &automatic, &buffer));
        at = end + 1;
    }
    *result = gb_jinja_buffer_text(&buffer);
    return gb_jinja_work(state, pattern.length / 64);
}
