/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "grammar/gbnf/reader.h"
#include "text/base/utf8.h"

#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 200
#define MAX_TIMES 1000000

/* Items of a sequence, or alternatives. */
typedef struct item_list {
    gb_expression *items; /* owned */
    size_t count, capacity;
} item_list;

static gb_expression read_alternatives(gb_gbnf_reader *reader, bool nested);

void gb_gbnf_fail(gb_gbnf_reader *reader, gumbel_status status, size_t place, const char *format, ...) {
    if (reader->status != GUMBEL_OK)
        return;
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    size_t line = 1, column = 1;
    for (size_t i = 0; i < place; i++) {
        column += (reader->text[i] & 0xC0) != 0x80;
        if (reader->text[i] == '\n') {
            line++;
            column = 1;
        }
    }
    reader->status =
        gb_fail(&reader->error, status, "grammar, line %zu, column %zu: %s", line, column, message);
}

/* ---- Words and spaces ------------------------------------------------------------------------------------
 */

/* Spaces and comments; new lines too where they mean nothing. */
static void skip_space(gb_gbnf_reader *reader, bool lines) {
    for (; reader->at < reader->size; reader->at++) {
        char c = reader->text[reader->at];
        if (c == '#')
            while (reader->at + 1 < reader->size && reader->text[reader->at + 1] != '\n')
                reader->at++;
        else if (c != ' ' && c != '\t' && c != '\r' && !(lines && c == '\n'))
            return;
    }
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* The rule whose name stands here. */
static gb_expression read_name(gb_gbnf_reader *reader) {
    size_t start = reader->at;
    while (reader->at < reader->size && is_word(reader->text[reader->at]))
        reader->at++;
    char *name = gb_copy_string(reader->text + start, reader->at - start);
    if (!name)
        gb_gbnf_fail(reader, GUMBEL_ERROR_MEMORY, start, "no memory");
    gb_expression rule = name ? gb_express_rule(reader->expressions, name) : 0;
    gb_free(name);
    return rule;
}

static gb_expression read_use(gb_gbnf_reader *reader) {
    gb_gbnf_use use = {.place = reader->at};
    use.rule = read_name(reader);
    if (!gb_grow((void **)&reader->uses, &reader->use_capacity, reader->use_count + 1, sizeof use))
        gb_gbnf_fail(reader, GUMBEL_ERROR_MEMORY, use.place, "no memory");
    else
        reader->uses[reader->use_count++] = use;
    return use.rule;
}

/* ---- Repeats ---------------------------------------------------------------------------------------------
 */

static bool read_number(gb_gbnf_reader *reader, uint32_t *number) {
    size_t start = reader->at;
    *number = 0;
    for (; reader->at < reader->size && reader->text[reader->at] >= '0' && reader->text[reader->at] <= '9';
         reader->at++)
        *number = *number > MAX_TIMES ? *number : *number * 10 + (uint32_t)(reader->text[reader->at] - '0');
    return reader->at > start;
}

/* {m}, {m,}, {m,n} or {,n}, with spaces in it. */
static void read_braces(gb_gbnf_reader *reader, bool nested, uint32_t *least, uint32_t *most) {
    size_t place = reader->at++;
    skip_space(reader, nested);
    bool has_least = read_number(reader, least), has_most = has_least;
    *most = *least;
    skip_space(reader, nested);
    if (gb_gbnf_take(reader, ',')) {
        skip_space(reader, nested);
        has_most = read_number(reader, most);
        if (!has_most)
            *most = GB_NO_END;
        skip_space(reader, nested);
    }
    if (!gb_gbnf_take(reader, '}') || (!has_least && !has_most))
        gb_gbnf_fail(reader, GUMBEL_ERROR_FORMAT, place, "a repeat in braces is {m}, {m,} or {m,n}");
    else if (*most < *least || *least > MAX_TIMES || (*most != GB_NO_END && *most > MAX_TIMES))
        gb_gbnf_fail(reader, GUMBEL_ERROR_FORMAT, place, "a repeat from more to less, or beyond %d",
                     MAX_TIMES);
}

/* Whether a repeat stands here; reads it. */
static bool read_repeat(gb_gbnf_reader *reader, bool nested, uint32_t *least, uint32_t *most) {
    *least = 0;
    *most = GB_NO_END;
    if (gb_gbnf_is_at(reader, '{'))
        read_braces(reader, nested, least, most);
    else if (gb_gbnf_take(reader, '+'))
        *least = 1;
    else if (gb_gbnf_take(reader, '?'))
        *most = 1;
    else
        return gb_gbnf_take(reader, '*');
    return true;
}

/* ---- Symbols ---------------------------------------------------------------------------------------------
 */

static gb_expression read_group(gb_gbnf_reader *reader) {
    size_t place = reader->at++;
    if (++reader->depth > MAX_DEPTH) {
        gb_gbnf_fail(reader, GUMBEL_ERROR_LIMIT, place, "groups are nested deeper than %d", MAX_DEPTH);
        return 0;
    }
    gb_expression group = read_alternatives(reader, true);
    reader->depth--;
    if (!gb_gbnf_take(reader, ')'))
        gb_gbnf_fail(reader, GUMBEL_ERROR_FORMAT, place, "this ( has no )");
    return group;
}

static gb_expression read_symbol(gb_gbnf_reader *reader) {
    static const gb_character_range all = {0, 0x10FFFF};
    char c = reader->text[reader->at];
    if (c == '"')
        return gb_read_literal(reader);
    if (c == '[')
        return gb_read_gbnf_class(reader);
    if (c == '<' || c == '!')
        return gb_read_gbnf_token(reader);
    if (c == '(')
        return read_group(reader);
    if (is_word(c))
        return read_use(reader);
    if (gb_gbnf_take(reader, '.'))
        return gb_express_characters(reader->expressions, &all, 1);
    if (memchr("*+?{", c, 4))
        gb_gbnf_fail(reader, GUMBEL_ERROR_FORMAT, reader->at, "there is nothing to repeat");
    else
        gb_gbnf_fail(reader, GUMBEL_ERROR_FORMAT, reader->at, "a literal, class, rule or group was expected");
    return 0;
}

/* ---- Sequences, alternatives, rules ----------------------------------------------------------------------
 */

static void push(gb_gbnf_reader *reader, item_list *list, gb_expression item) {
    if (!gb_grow((void **)&list->items, &list->capacity, list->count + 1, sizeof item))
        gb_gbnf_fail(reader, GUMBEL_ERROR_MEMORY, reader->at, "no memory");
    else
        list->items[list->count++] = item;
}

static bool is_end_of_sequence(const gb_gbnf_reader *reader) {
    return reader->at == reader->size || memchr("|)\n", reader->text[reader->at], 3);
}

static gb_expression read_sequence(gb_gbnf_reader *reader, bool nested) {
    item_list list = {0};
    uint32_t least, most;
    skip_space(reader, nested);
    while (reader->status == GUMBEL_OK && !is_end_of_sequence(reader)) {
        gb_expression item = read_symbol(reader);
        skip_space(reader, nested);
        while (reader->status == GUMBEL_OK && item && read_repeat(reader, nested, &least, &most)) {
            if (reader->status == GUMBEL_OK)
                item = gb_express_repeat(reader->expressions, item, least, most);
            skip_space(reader, nested);
        }
        push(reader, &list, item);
    }
    gb_expression sequence =
        reader->status == GUMBEL_OK ? gb_express_sequence(reader->expressions, list.items, list.count) : 0;
    gb_free(list.items);
    return sequence;
}

static gb_expression read_alternatives(gb_gbnf_reader *reader, bool nested) {
    item_list list = {0};
    do {
        skip_space(reader, nested || list.count); /* behind a bar a new line means nothing */
        push(reader, &list, read_sequence(reader, nested));
        if (nested)
            skip_space(reader, true);
    } while (reader->status == GUMBEL_OK && gb_gbnf_take(reader, '|'));
    gb_expression choice =
        reader->status == GUMBEL_OK ? gb_express_choice(reader->expressions, list.items, list.count) : 0;
    gb_free(list.items);
    return choice;
}

static void read_rule(gb_gbnf_reader *reader) {
    size_t place = reader->at;
    gb_expression rule = is_word(reader->text[reader->at]) ? read_name(reader) : 0;
    skip_space(reader, false);
    bool defines = rule && reader->size - reader->at >= 3 && memcmp(reader->text + reader->at, "::=", 3) == 0;
    if (!defines) {
        gb_gbnf_fail(reader, GUMBEL_ERROR_FORMAT, place, "a rule was expected: a name, ::= and what it is");
        return;
    }
    if (gb_rule_is_defined(reader->expressions, rule))
        gb_gbnf_fail(reader, GUMBEL_ERROR_FORMAT, place, "this rule is defined twice");
    reader->at += 3;
    skip_space(reader, true);
    gb_expression item = read_alternatives(reader, false);
    if (reader->status == GUMBEL_OK && gb_gbnf_is_at(reader, ')'))
        gb_gbnf_fail(reader, GUMBEL_ERROR_FORMAT, reader->at, "this ) has no (");
    if (reader->status == GUMBEL_OK)
        gb_define_rule(reader->expressions, rule, item);
}

static bool is_good(const gb_gbnf_reader *reader) {
    return reader->status == GUMBEL_OK && gb_expressions_error(reader->expressions, NULL) == GUMBEL_OK;
}

static void check_uses(gb_gbnf_reader *reader) {
    for (size_t i = 0; i < reader->use_count; i++)
        if (!gb_rule_is_defined(reader->expressions, reader->uses[i].rule))
            gb_gbnf_fail(reader, GUMBEL_ERROR_FORMAT, reader->uses[i].place, "this rule is not defined");
}

static void read_all(gb_gbnf_reader *reader, gb_expression *root) {
    skip_space(reader, true);
    while (is_good(reader) && reader->at < reader->size) {
        read_rule(reader);
        skip_space(reader, true);
    }
    if (!is_good(reader))
        return;
    check_uses(reader);
    const char *name = reader->options->root ? reader->options->root : "root";
    *root = gb_express_rule(reader->expressions, name);
    if (!gb_rule_is_defined(reader->expressions, *root))
        gb_gbnf_fail(reader, GUMBEL_ERROR_FORMAT, reader->size, "no rule is named %s", name);
}

gumbel_status gb_read_gbnf(gb_expressions *expressions, const char *text, size_t size,
                           const gb_gbnf_options *options, gb_expression *root, gumbel_error *error) {
    const gb_gbnf_options none = {0};
    gb_gbnf_reader reader = {
        .expressions = expressions, .options = options ? options : &none, .text = text, .size = size};
    *root = 0;
    if (!gb_utf8_is_valid(text, size))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "grammar: it is not UTF-8");
    read_all(&reader, root);
    gb_free(reader.uses);
    GB_TRY(gb_expressions_error(expressions, error));
    return reader.status == GUMBEL_OK ? GUMBEL_OK : gb_fail(error, reader.status, "%s", reader.error.message);
}
