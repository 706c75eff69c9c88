/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/arguments.h"

#include "base/memory.h"
#include "grammar/common/build_json.h"
#include "grammar/schema/alternatives/alternatives.h"
#include "grammar/schema/alternatives/candidates.h"
#include "grammar/schema/composite/composite.h"
#include "grammar/schema/reader/types.h"
#include "grammar/schema/rewrite/made.h"
#include "grammar/schema/string/json_string.h"
#include "grammar/schema/string/pattern.h"
#include "text/reply/tool_types.h"

#include <string.h>

/* ---- Names --------------------------------------------------------------------------------------------- */

bool gb_is_bare_key(const char *text) {
    return *text && text[strcspn(text, " \t\r\n\f\v:,{}[]\"<>|")] == 0;
}

bool gb_is_tag_name(const char *text) {
    return *text && text[strcspn(text, ">\n")] == 0;
}

gb_expression gb_express_bare_keys(gb_schema_reader *reader) {
    static const char pattern[] = "^[A-Za-z_][A-Za-z0-9_.-]*$";
    return gb_express_pattern(reader, reader->root, "propertyNames", pattern, sizeof pattern - 1);
}

/* ---- Values -------------------------------------------------------------------------------------------- */

#define BLANKS "[\\s\\u0085]*"

/* Texts that a reader takes for a value of the type rather than for a string. */
static const struct {
    const char *type, *pattern;
} read_otherwise[] = {
    {"null", "^" BLANKS "(null|None)" BLANKS "$"},
    {"boolean", "^" BLANKS "([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]|0|1)" BLANKS "$"},
    {"integer", "^" BLANKS "-?[0-9]+(\\.[0-9]+)?([eE][-+]?[0-9]+)?" BLANKS "$"},
    {"number", "^" BLANKS "-?[0-9]+(\\.[0-9]+)?([eE][-+]?[0-9]+)?" BLANKS "$"},
    {"array", "^" BLANKS "\\["},
    {"object", "^" BLANKS "\\{"},
};

static gb_expression leave_out(gb_schema_reader *reader, const gb_type_list *types, gb_expression strings) {
    for (size_t i = 0; i < sizeof read_otherwise / sizeof read_otherwise[0]; i++)
        if (gb_has_type(types, read_otherwise[i].type) && strings != reader->nothing)
            strings =
                gb_express_except(reader->expressions, strings,
                                  gb_express_pattern(reader, reader->root, "type", read_otherwise[i].pattern,
                                                     strlen(read_otherwise[i].pattern)));
    return strings;
}

/* Strings under assertions alone. */
static gb_expression express_strings(gb_schema_reader *reader, const gb_terms *terms) {
    const size_t count = gb_candidate_count(reader, terms);
    if (count == SIZE_MAX)
        return gb_types_of(reader, terms) & GB_TYPE_STRING ? gb_express_string(reader, terms, false)
                                                           : reader->nothing;
    gb_value_parts strings = {0};
    for (size_t i = 0; i < count && !gb_schema_failed(reader); i++)
        if (json_is_string(gb_candidate(terms, i)))
            gb_parts_add(reader, &strings, gb_express_candidate(reader, terms, gb_candidate(terms, i)));
    return gb_parts_either(reader, &strings);
}

/* One of the alternatives of the terms, by a function for one. */
static gb_expression express_any(gb_schema_reader *reader, const gb_terms *terms,
                                 gb_expression express(gb_schema_reader *, const gb_terms *)) {
    gb_alternatives alternatives = {0};
    gb_value_parts any = {0};
    if (gb_find_alternatives(reader, terms, &alternatives))
        for (size_t i = 0; i < alternatives.count && !gb_schema_failed(reader); i++)
            gb_parts_add(reader, &any, express(reader, &alternatives.items[i]));
    gb_alternatives_free(&alternatives);
    return gb_parts_either(reader, &any);
}

/* The terms, with one of these types. Takes the list of their names. */
static bool narrow_types(gb_schema_reader *reader, const gb_terms *terms, json_t *names, gb_terms *narrowed) {
    const json_t *schema =
        gb_keep_schema(reader, json_pack("{s:o}", "type", names), terms->count ? terms->items[0] : NULL);
    return schema && ((gb_terms_add_all(narrowed, terms) && gb_terms_add(narrowed, schema)) ||
                      gb_schema_no_memory(reader));
}

/* Values that are no strings, as JSON. */
static gb_expression express_others(gb_schema_reader *reader, const gb_type_list *types,
                                    const gb_terms *terms) {
    gb_terms narrowed = {0};
    json_t *names = json_array();
    for (size_t i = 0; names && i < types->count; i++)
        if (strcmp(types->names[i], "string") != 0)
            names = gb_append_value(names, json_string(types->names[i]));
    if (!names)
        return gb_schema_no_memory(reader);
    if (json_array_size(names) == 0) {
        json_decref(names);
        return reader->nothing;
    }
    const gb_expression others =
        narrow_types(reader, terms, names, &narrowed) ? gb_express_value(reader, &narrowed) : 0;
    gb_terms_free(&narrowed);
    return others;
}

/* Strings as they are. */
static gb_expression express_bare_strings(gb_schema_reader *reader, const gb_type_list *types,
                                          const gb_terms *terms) {
    const gb_strings *before = reader->strings;
    gb_terms narrowed = {0};
    gb_expression strings = reader->nothing;
    if (types->count > 0 && !gb_has_type(types, "string"))
        return strings;
    reader->strings = &reader->bare;
    strings = narrow_types(reader, terms, json_pack("[s]", "string"), &narrowed)
                  ? express_any(reader, &narrowed, express_strings)
                  : 0;
    gb_terms_free(&narrowed);
    strings = strings ? leave_out(reader, types, strings) : 0;
    reader->strings = before;
    return strings;
}

gb_expression gb_express_tagged_value(gb_schema_reader *reader, const char *name, const gb_terms *terms) {
    gb_type_list types = {.count = 0};
    if (name)
        gb_argument_types(reader->root, name, &types);
    const gb_expression others = express_others(reader, &types, terms);
    const gb_expression strings = others ? express_bare_strings(reader, &types, terms) : 0;
    return strings ? GB_EITHER(reader, others, strings) : 0;
}

/* ---- All ----------------------------------------------------------------------------------------------- */

static gb_expression express_alternative(gb_schema_reader *reader, const gb_terms *terms) {
    if (gb_candidate_count(reader, terms) != SIZE_MAX)
        return gb_schema_fail(reader, terms->items[0], NULL, GUMBEL_ERROR_UNSUPPORTED,
                              "arguments that are listed as a whole, by enum or const");
    return gb_types_of(reader, terms) & GB_TYPE_OBJECT ? gb_express_tagged_members(reader, terms)
                                                       : reader->nothing;
}

gb_expression gb_express_tagged(gb_schema_reader *reader, const gb_terms *terms) {
    return express_any(reader, terms, express_alternative);
}
