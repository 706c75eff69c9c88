/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/regex/alternatives.h"
#include "grammar/regex/reader.h"
#include "text/base/utf8.h"

#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 200
#define MAX_TIMES 1000000

static void read_alternatives(gb_regex_reader *reader, gb_alternative_list *all);

void gb_regex_fail(gb_regex_reader *reader, gumbel_status status, size_t place, const char *format, ...) {
    if (reader->status != GUMBEL_OK)
        return;
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    size_t character = 1;
    for (size_t i = 0; i < place && i < reader->size; i++)
        character += (reader->text[i] & 0xC0) != 0x80;
    reader->status =
        gb_fail(&reader->error, status, "regular expression, character %zu: %s", character, message);
}

static void no_memory(gb_regex_reader *reader) {
    gb_regex_fail(reader, GUMBEL_ERROR_MEMORY, reader->at, "no memory");
}

uint32_t gb_regex_next(gb_regex_reader *reader) {
    size_t length = gb_utf8_size(reader->text[reader->at]);
    uint32_t character = gb_utf8_code_point(reader->text + reader->at, length);
    reader->at += length;
    return character;
}

gb_expression gb_express_ranges(gb_regex_reader *reader, const gb_ranges *ranges) {
    if (ranges->failed)
        no_memory(reader);
    if (reader->status != GUMBEL_OK)
        return 0;
    if (reader->options->characters)
        return reader->options->characters(reader->options->user, reader->expressions, ranges->items,
                                           ranges->count);
    return gb_express_characters(reader->expressions, ranges->items, ranges->count);
}

static gb_expression express_character(gb_regex_reader *reader, uint32_t character) {
    gb_character_range range = {character, character};
    gb_ranges one = {.items = &range, .count = 1};
    return gb_express_ranges(reader, &one);
}

/* ---- Quantifiers -----------------------------------------------------------------------------------------
 */

static bool read_number(gb_regex_reader *reader, uint32_t *number) {
    size_t start = reader->at;
    *number = 0;
    for (; reader->at < reader->size && reader->text[reader->at] >= '0' && reader->text[reader->at] <= '9';
         reader->at++)
        *number = *number > MAX_TIMES ? *number : *number * 10 + (uint32_t)(reader->text[reader->at] - '0');
    return reader->at > start;
}

/* {n}, {n,} or {n,m}; else nothing is read, and the brace is a character. */
static bool read_braces(gb_regex_reader *reader, uint32_t *least, uint32_t *most) {
    size_t start = reader->at;
    if (gb_regex_take(reader, '{') && read_number(reader, least)) {
        *most = *least;
        if (gb_regex_take(reader, ',') && !read_number(reader, most))
            *most = GB_NO_END;
        if (gb_regex_take(reader, '}'))
            return true;
    }
    reader->at = start;
    return false;
}

static bool read_quantifier(gb_regex_reader *reader, uint32_t *least, uint32_t *most) {
    *least = 0;
    *most = GB_NO_END;
    if (gb_regex_take(reader, '*'))
        return true;
    if (gb_regex_take(reader, '+')) {
        *least = 1;
        return true;
    }
    if (gb_regex_take(reader, '?')) {
        *most = 1;
        return true;
    }
    return read_braces(reader, least, most);
}

typedef struct times {
    uint32_t least, most;
    bool is_quantified;
} times;

/* Greedy or not makes no difference to what matches as a whole. */
static times read_times(gb_regex_reader *reader) {
    times read = {1, 1, false};
    uint32_t least, most;
    const size_t place = reader->at;
    if (!read_quantifier(reader, &least, &most))
        return read;
    read = (times){least, most, true};
    if (most < least || least > MAX_TIMES || (most != GB_NO_END && most > MAX_TIMES))
        gb_regex_fail(reader, GUMBEL_ERROR_FORMAT, place, "a quantifier from more to less, or beyond %d",
                      MAX_TIMES);
    gb_regex_take(reader, '?');
    const size_t again = reader->at;
    if (read_quantifier(reader, &least, &most))
        gb_regex_fail(reader, GUMBEL_ERROR_FORMAT, again, "a quantifier of a quantifier");
    return read;
}

static gb_expression repeat(gb_regex_reader *reader, gb_expression item, times read) {
    if (!read.is_quantified || reader->status != GUMBEL_OK)
        return item;
    return gb_express_repeat(reader->expressions, item, read.least, read.most);
}

/* ---- Groups ----------------------------------------------------------------------------------------------
 */

static void refuse_group(gb_regex_reader *reader, size_t place) {
    static const struct {
        const char *start, *name;
    } kinds[] = {{"<=", "lookbehind (?<="}, {"<!", "lookbehind (?<!"}, {">", "an atomic group"},
                 {"(", "a conditional"},    {"R", "recursion"},        {"P=", "a back reference"},
                 {"P>", "recursion"},       {"#", "a comment (?#"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (gb_regex_has(reader, kinds[i].start, strlen(kinds[i].start)))
            gb_regex_fail(reader, GUMBEL_ERROR_UNSUPPORTED, place, "%s is not supported", kinds[i].name);
}

/* Behind "(?": what says of which kind the group is. */
static void read_group_kind(gb_regex_reader *reader, size_t place) {
    if (gb_regex_take(reader, ':'))
        return;
    refuse_group(reader, place);
    gb_regex_take(reader, 'P');
    const char *end = memchr(reader->text + reader->at, '>', reader->size - reader->at);
    if (gb_regex_take(reader, '<') && end)
        reader->at = (size_t)(end - reader->text) + 1;
    else
        gb_regex_fail(reader, GUMBEL_ERROR_UNSUPPORTED, place,
                      "flags and groups of this kind are not supported");
}

/* Up to the closing parenthesis of the group that begins at place. */
static void read_group(gb_regex_reader *reader, gb_alternative_list *all, size_t place) {
    if (++reader->depth > MAX_DEPTH)
        gb_regex_fail(reader, GUMBEL_ERROR_LIMIT, place, "groups are nested deeper than %d", MAX_DEPTH);
    if (reader->status == GUMBEL_OK)
        read_alternatives(reader, all);
    reader->depth--;
    if (!gb_regex_take(reader, ')'))
        gb_regex_fail(reader, GUMBEL_ERROR_FORMAT, place, "this ( has no )");
}

/* ---- Lookahead -------------------------------------------------------------------------------------------
 */

/* Behind "(": whether that was lookahead, which every alternative of `to` then has here. */
static bool take_lookahead(gb_regex_reader *reader, gb_alternative_list *to) {
    const size_t place = reader->at - 1;
    const bool negative = gb_regex_has(reader, "?!", 2);
    gb_alternative_list group = {0};
    if (!negative && !gb_regex_has(reader, "?=", 2))
        return false;
    reader->at += 2;
    read_group(reader, &group, place);
    for (size_t i = 0; i < group.count; i++)
        if (group.items[i].at_start)
            gb_regex_fail(reader, GUMBEL_ERROR_UNSUPPORTED, place,
                          "an anchor ^ in lookahead is not supported");
    if (read_times(reader).is_quantified)
        gb_regex_fail(reader, GUMBEL_ERROR_UNSUPPORTED, place,
                      "lookahead with a quantifier is not supported");
    const gb_expression any = gb_express_any_text(reader);
    const gb_expression rest =
        reader->status == GUMBEL_OK ? gb_express_surrounded(reader, &group, 0, any) : 0;
    gb_alternatives_push(reader, to,
                         (gb_regex_part){rest, negative ? GB_REGEX_NOT_AHEAD : GB_REGEX_AHEAD, false});
    gb_free_alternatives(&group);
    return true;
}

/* ---- Items -----------------------------------------------------------------------------------------------
 */

static void push_item(gb_regex_reader *reader, gb_alternative_list *to, gb_expression item,
                      bool is_character) {
    gb_alternatives_push(reader, to, (gb_regex_part){item, GB_REGEX_ITEM, is_character});
}

/* A group whose alternatives have anchors or lookahead. */
static void cross(gb_regex_reader *reader, gb_alternative_list *to, gb_alternative_list *group, times read,
                  size_t place) {
    gb_alternative_list looped = {0};
    if (read.most == 1 && read.least == 0)
        gb_add_alternative(reader, group, NULL);
    else if (read.most == GB_NO_END &&
             gb_loop_alternatives(reader, group, read.least, gb_regex_has(reader, "$", 1), &looped))
        gb_alternatives_cross(reader, to, &looped, place);
    else if (read.most != 1)
        gb_regex_fail(reader, GUMBEL_ERROR_UNSUPPORTED, place,
                      "anchors and lookahead in a group that is repeated are not supported");
    if (read.most == 1 && reader->status == GUMBEL_OK)
        gb_alternatives_cross(reader, to, group, place);
    gb_free_alternatives(&looped);
}

static void read_group_item(gb_regex_reader *reader, gb_alternative_list *to) {
    const size_t place = reader->at - 1;
    gb_alternative_list group = {0};
    if (take_lookahead(reader, to))
        return;
    if (gb_regex_take(reader, '?'))
        read_group_kind(reader, place);
    read_group(reader, &group, place);
    const times read = read_times(reader);
    if (gb_alternatives_ask(&group))
        cross(reader, to, &group, read, place);
    else if (reader->status == GUMBEL_OK)
        push_item(reader, to, repeat(reader, gb_express_alternatives(reader, &group), read), false);
    gb_free_alternatives(&group);
}

/* Any character that is no group or anchor, or a class. */
static gb_expression read_characters(gb_regex_reader *reader) {
    size_t place = reader->at;
    gb_ranges ranges = {0};
    uint32_t character = gb_regex_next(reader), single = character;
    if (character == '[')
        gb_read_class(reader, &ranges);
    else if (character == '\\')
        gb_read_escape(reader, false, &ranges, &single);
    else if (character == '.')
        gb_add_range(&ranges, '\n', '\n');
    else if (character == '*' || character == '+' || character == '?')
        gb_regex_fail(reader, GUMBEL_ERROR_FORMAT, place, "there is nothing to repeat");
    if (character == '.')
        gb_negate_ranges(&ranges);
    bool is_set = character == '[' || character == '\\' || character == '.';
    gb_expression item = 0;
    if (reader->status == GUMBEL_OK)
        item = is_set ? gb_express_ranges(reader, &ranges) : express_character(reader, character);
    gb_free_ranges(&ranges);
    return item;
}

static bool take_anchor(gb_regex_reader *reader, gb_alternative_list *to) {
    bool start = gb_regex_has(reader, "^", 1) || gb_regex_has(reader, "\\A", 2);
    bool end =
        gb_regex_has(reader, "$", 1) || gb_regex_has(reader, "\\z", 2) || gb_regex_has(reader, "\\Z", 2);
    if (start || end) {
        gb_alternatives_anchor(reader, to, start);
        reader->at += reader->text[reader->at] == '\\' ? 2 : 1;
    }
    return start || end;
}

static void read_item(gb_regex_reader *reader, gb_alternative_list *to) {
    if (take_anchor(reader, to))
        return;
    if (gb_regex_take(reader, '(')) {
        read_group_item(reader, to);
        return;
    }
    const gb_expression item = read_characters(reader);
    const times read = read_times(reader);
    push_item(reader, to, repeat(reader, item, read), !read.is_quantified);
}

/* ---- Alternatives ----------------------------------------------------------------------------------------
 */

/* One, which its groups may make several. */
static void read_alternative(gb_regex_reader *reader, gb_alternative_list *all) {
    gb_alternative_list read = {0};
    gb_add_alternative(reader, &read, NULL);
    while (reader->status == GUMBEL_OK && reader->at < reader->size && reader->text[reader->at] != '|' &&
           reader->text[reader->at] != ')')
        read_item(reader, &read);
    gb_move_alternatives(reader, all, &read);
}

static void read_alternatives(gb_regex_reader *reader, gb_alternative_list *all) {
    do
        read_alternative(reader, all);
    while (reader->status == GUMBEL_OK && gb_regex_take(reader, '|'));
}

static void finish(gb_regex_reader *reader, const gb_alternative_list *all, gb_regex *regex) {
    const gb_expression around = reader->options->around;
    *regex = (gb_regex){.anchored_at_start = true, .anchored_at_end = true};
    for (size_t i = 0; i < all->count; i++) {
        regex->anchored_at_start &= all->items[i].at_start;
        regex->anchored_at_end &= all->items[i].at_end;
    }
    regex->expression = gb_express_surrounded(reader, all, around, around);
}

gumbel_status gb_read_regex(gb_expressions *expressions, const char *text, size_t size,
                            const gb_regex_options *options, gb_regex *regex, gumbel_error *error) {
    const gb_regex_options none = {0};
    gb_regex_reader reader = {
        .expressions = expressions, .options = options ? options : &none, .text = text, .size = size};
    gb_alternative_list all = {0};
    *regex = (gb_regex){0};
    if (!gb_utf8_is_valid(text, size))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "regular expression: it is not UTF-8");
    read_alternatives(&reader, &all);
    if (reader.at < size)
        gb_regex_fail(&reader, GUMBEL_ERROR_FORMAT, reader.at, "this ) has no (");
    if (reader.status == GUMBEL_OK)
        finish(&reader, &all, regex);
    gb_free_alternatives(&all);
    GB_TRY(gb_expressions_error(expressions, error));
    return reader.status == GUMBEL_OK ? GUMBEL_OK : gb_fail(error, reader.status, "%s", reader.error.message);
}
