/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/string/pattern.h"

#include "grammar/regex/regex.h"
#include "grammar/schema/string/formats.h"
#include "grammar/schema/string/json_string.h"

#include <string.h>

static gb_expression express_class(void *user, gb_expressions *expressions, const gb_character_range *ranges,
                                   size_t count) {
    (void)expressions;
    return gb_express_plain(user, ranges, count);
}

/* around: may stand at a side that has no anchor. */
static gb_expression read_regex(gb_schema_reader *reader, const json_t *schema, const char *keyword,
                                const char *text, size_t length, gb_expression around) {
    const gb_regex_options options = {.characters = express_class, .user = reader, .around = around};
    gb_regex regex = {0};
    gumbel_error error;
    if (gb_schema_failed(reader))
        return 0;
    const gumbel_status status = gb_read_regex(reader->expressions, text, length, &options, &regex, &error);
    return status == GUMBEL_OK ? regex.expression
                               : gb_schema_fail(reader, schema, keyword, status, "%s", error.message);
}

/* Reads it unless the table has it. is_within: any characters may stand around it. */
static gb_expression read_once(gb_schema_reader *reader, json_t *table, const json_t *schema,
                               const char *keyword, const char *text, size_t length, bool is_within) {
    const json_t *known = json_object_getn(table, text, length);
    if (known)
        return (gb_expression)json_integer_value(known);
    const gb_expression around =
        is_within ? gb_express_repeat(reader->expressions, reader->strings->plain_character, 0, GB_NO_END)
                  : 0;
    const gb_expression found = read_regex(reader, schema, keyword, text, length, around);
    if (found && json_object_setn_new(table, text, length, json_integer(found)) != 0)
        return gb_schema_no_memory(reader);
    return found;
}

gb_expression gb_express_pattern(gb_schema_reader *reader, const json_t *schema, const char *keyword,
                                 const char *pattern, size_t length) {
    return read_once(reader, reader->strings->patterns, schema, keyword, pattern, length, true);
}

gb_expression gb_express_pattern_of(gb_schema_reader *reader, const json_t *schema, const char *keyword,
                                    const json_t *pattern) {
    return pattern ? gb_express_pattern(reader, schema, keyword, json_string_value(pattern),
                                        json_string_length(pattern))
                   : 0;
}

gb_expression gb_express_format(gb_schema_reader *reader, const json_t *schema, const char *name,
                                bool is_outer) {
    const gb_string_format *format = gb_find_format(name);
    const char *regex = !format ? NULL : is_outer ? format->outer : format->regex;
    return regex ? read_once(reader, reader->strings->formats, schema, "format", regex, strlen(regex), false)
                 : 0;
}
