/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/schema.h"

#include "base/memory.h"
#include "grammar/schema/alternatives/alternatives.h"
#include "grammar/schema/alternatives/listed.h"
#include "grammar/schema/arguments.h"
#include "grammar/schema/reader/big_integers.h"
#include "grammar/schema/reader/place.h"
#include "grammar/schema/string/json_string.h"
#include "grammar/schema/string/pattern.h"
#include "grammar/schema/value.h"
#include "text/base/load_json.h"

#include <stdio.h>
#include <string.h>

/* A rule for what stands in many places, so that it is compiled once. */
static gb_expression shared(gb_schema_reader *reader, const char *what, gb_expression item) {
    char name[80];
    snprintf(name, sizeof name, "%s %s", reader->rule_prefix, what);
    const gb_expression rule = gb_express_rule(reader->expressions, name);
    gb_define_rule(reader->expressions, rule, item);
    return rule;
}

/* What may stand between two tokens. */
static gb_expression between_tokens(gb_schema_reader *reader) {
    static const gb_character_range blanks[] = {{' ', ' '}, {'\t', '\t'}, {'\n', '\n'}, {'\r', '\r'}};
    gb_expressions *expressions = reader->expressions;
    const uint32_t longest = reader->options.longest_space ? reader->options.longest_space : GB_DEFAULT_SPACE;
    if (reader->options.space == GB_SPACE_FLEXIBLE)
        return gb_express_repeat(expressions, gb_express_characters(expressions, blanks, 4), 0, longest);
    if (reader->options.space != GB_SPACE_LINES)
        return reader->empty;
    const gb_expression indent =
        gb_express_repeat(expressions, gb_express_characters(expressions, blanks, 2), 0, longest);
    const gb_expression line = GB_JOIN(reader, gb_literal(reader, "\n"), indent);
    return GB_EITHER(reader, reader->empty, gb_literal(reader, " "), line);
}

static void express_space(gb_schema_reader *reader) {
    const gb_schema_space space = reader->options.space;
    reader->space = shared(reader, "space", between_tokens(reader));
    reader->comma = GB_JOIN(reader, gb_literal(reader, space == GB_SPACE_SINGLE ? ", " : ","), reader->space);
    if (space == GB_SPACE_LINES)
        reader->colon = GB_EITHER(reader, gb_literal(reader, ":"), gb_literal(reader, ": "));
    else
        reader->colon = GB_JOIN(reader, reader->space,
                                gb_literal(reader, space == GB_SPACE_SINGLE ? ": " : ":"), reader->space);
}

static void express_numbers(gb_schema_reader *reader) {
    gb_expressions *expressions = reader->expressions;
    const gb_character_range marks[] = {{'e', 'e'}, {'E', 'E'}}, signs[] = {{'+', '+'}, {'-', '-'}};
    const gb_expression digit = gb_between(reader, '0', '9');
    const bool is_limited = reader->options.form != NULL;
    reader->most_digits = is_limited ? GB_ARGUMENT_DIGITS : GB_NO_END;
    const gb_expression digits = gb_express_repeat(expressions, digit, 1, reader->most_digits);
    reader->digits =
        gb_express_repeat(expressions, digit, 0, is_limited ? GB_ARGUMENT_DIGITS - 1 : GB_NO_END);
    reader->integer = GB_JOIN(reader, gb_express_repeat(expressions, gb_literal(reader, "-"), 0, 1),
                              GB_EITHER(reader, gb_literal(reader, "0"),
                                        GB_JOIN(reader, gb_between(reader, '1', '9'), reader->digits)));
    const gb_expression fraction = GB_JOIN(reader, gb_literal(reader, "."), digits);
    const gb_expression exponent =
        GB_JOIN(reader, gb_express_characters(expressions, marks, 2),
                gb_express_repeat(expressions, gb_express_characters(expressions, signs, 2), 0, 1),
                is_limited ? gb_express_repeat(expressions, digit, 1, 2) : digits);
    reader->number = GB_JOIN(reader, reader->integer, gb_express_repeat(expressions, fraction, 0, 1),
                             gb_express_repeat(expressions, exponent, 0, 1));
}

static void express_parts(gb_schema_reader *reader) {
    reader->empty = gb_express_empty(reader->expressions);
    express_space(reader);
    express_numbers(reader);
    if (reader->options.form)
        reader->reserved = gb_express_reserved(reader, reader->options.form->reserved);
    gb_express_strings(reader, &reader->quoted);
    reader->quoted.free_string = shared(reader, "string", reader->quoted.free_string);
    if (reader->options.form)
        gb_express_strings(reader, &reader->bare);
    reader->strings = &reader->quoted;
}

static bool begin_tables(gb_strings *strings) {
    strings->patterns = json_object();
    strings->formats = json_object();
    return strings->patterns && strings->formats;
}

static void free_tables(gb_strings *strings) {
    json_decref(strings->patterns);
    json_decref(strings->formats);
}

/* Which quotes strings have, and the empty tables of patterns. */
static bool choose_strings(gb_schema_reader *reader) {
    const gb_argument_form *form = reader->options.form;
    reader->quoted.open = reader->quoted.close = gb_literal(reader, "\"");
    if (form && form->open_mark)
        reader->quoted = (gb_strings){.is_raw = true, .open = form->open_mark, .close = form->close_mark};
    reader->bare.is_raw = true;
    reader->bare.open = reader->bare.close = gb_express_empty(reader->expressions);
    return begin_tables(&reader->quoted) && begin_tables(&reader->bare);
}

/* Takes a name for the rules of this schema that no other one has in these expressions. */
static void choose_prefix(gb_schema_reader *reader) {
    for (size_t number = gb_rule_count(reader->expressions) + 1; !gb_schema_failed(reader); number++) {
        snprintf(reader->rule_prefix, sizeof reader->rule_prefix, "schema %zu", number);
        const gb_expression rule = gb_express_rule(reader->expressions, reader->rule_prefix);
        if (!gb_rule_is_defined(reader->expressions, rule)) {
            gb_define_rule(reader->expressions, rule, reader->nothing);
            return;
        }
    }
}

static void free_reader(gb_schema_reader *reader) {
    gb_terms_map_free(&reader->values);
    for (size_t i = 0; i <= GB_LOOK_DEPTH; i++)
        gb_terms_map_free(&reader->possible[i]);
    gb_terms_map_free(&reader->rewritten);
    for (size_t i = 0; i < reader->made_count; i++)
        json_decref(reader->made[i].schema);
    for (size_t i = 0; i < reader->waiting_count; i++)
        gb_alternatives_free(&reader->waiting[i].alternatives);
    gb_places_free(&reader->places);
    gb_value_sets_free(reader);
    gb_free_tried(reader);
    gb_terms_map_free(&reader->matching[0]);
    gb_terms_map_free(&reader->matching[1]);
    free_tables(&reader->quoted);
    free_tables(&reader->bare);
    gb_free(reader->made);
    gb_free(reader->waiting);
}

/* That $schema names; without one the last, whose readers take the keywords of all. */
static unsigned draft_of(const json_t *root) {
    static const struct {
        const char *part;
        unsigned draft;
    } drafts[] = {{"draft-03", 3}, {"draft-04", 4}, {"draft-06", 6}, {"draft-07", 7}, {"2019-09", 2019}};
    const char *name = json_string_value(json_object_get(root, "$schema"));
    for (size_t i = 0; name && i < sizeof drafts / sizeof drafts[0]; i++)
        if (strstr(name, drafts[i].part))
            return drafts[i].draft;
    return 2020;
}

static gb_expression express_root(gb_schema_reader *reader) {
    gb_terms terms = {0};
    if (gb_schema_is_deep(reader->root))
        return gb_expressions_fail(reader->expressions, GUMBEL_ERROR_LIMIT, "schema: nested deeper than %d",
                                   GB_MAX_SCHEMA_DEPTH);
    reader->draft = draft_of(reader->root);
    reader->nothing = gb_express_nothing(reader->expressions);
    choose_prefix(reader);
    express_parts(reader);
    if (!gb_terms_add(&terms, reader->root))
        return gb_schema_no_memory(reader);
    const bool is_tagged = reader->options.form && reader->options.form->is_tagged;
    const gb_expression value =
        is_tagged ? gb_express_tagged(reader, &terms) : gb_express_value(reader, &terms);
    gb_terms_free(&terms);
    gb_express_waiting(reader);
    if (value == reader->nothing && !gb_schema_failed(reader))
        return gb_schema_fail(reader, reader->root, NULL, GUMBEL_ERROR_FORMAT, "no value satisfies it");
    return value;
}

static gb_expression express(gb_expressions *expressions, const json_t *schema, json_t *big_integers,
                             const gb_schema_options *options, gumbel_error *error) {
    gb_schema_reader reader = {.expressions = expressions, .root = schema, .big_integers = big_integers};
    if (options)
        reader.options = *options;
    if (!choose_strings(&reader))
        gb_schema_no_memory(&reader);
    const gb_expression value = gb_schema_failed(&reader) ? 0 : express_root(&reader);
    free_reader(&reader);
    return gb_expressions_error(expressions, error) == GUMBEL_OK ? value : 0;
}

gb_expression gb_schema_express(gb_expressions *expressions, const json_t *schema,
                                const gb_schema_options *options, gumbel_error *error) {
    return express(expressions, schema, NULL, options, error);
}

/* Integers are widened only where there are such that 64 bits do not hold. */
static gumbel_status load(const char *text, size_t length, json_t **schema, json_t *big_integers,
                          gumbel_error *error) {
    enum { FLAGS = JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES };
    gb_byte_buffer widened = {0};
    gumbel_status status = gb_load_json("schema", text, length, FLAGS, schema, error);
    if (status != GUMBEL_OK && big_integers && gb_widen_integers(text, length, &widened, big_integers) &&
        json_object_size(big_integers) > 0)
        status = gb_load_json("schema", (const char *)widened.data, widened.size, FLAGS, schema, error);
    gb_buffer_free(&widened);
    return status;
}

gb_expression gb_schema_express_text(gb_expressions *expressions, const char *text, size_t length,
                                     const gb_schema_options *options, gumbel_error *error) {
    gumbel_error reason;
    json_t *schema = NULL;
    if (length > GB_MAX_SCHEMA_BYTES) {
        gb_expressions_fail(expressions, GUMBEL_ERROR_LIMIT, "schema: %zu bytes, at most %d are read", length,
                            GB_MAX_SCHEMA_BYTES);
        gb_expressions_error(expressions, error);
        return 0;
    }
    json_t *big_integers = json_object();
    const gumbel_status status = load(text, length, &schema, big_integers, &reason);
    gb_expression value = 0;
    if (status == GUMBEL_OK) {
        value = express(expressions, schema, big_integers, options, error);
    } else {
        gb_expressions_fail(expressions, status, "%s", reason.message);
        gb_expressions_error(expressions, error);
    }
    json_decref(schema);
    json_decref(big_integers);
    return value;
}
