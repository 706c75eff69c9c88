/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "grammar/regex/reader.h"
#include "text/base/utf8.h"

#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 200
#define MAX_TIMES 1000000

/* One alternative, and whether it has an anchor at its sides. */
typedef struct alternative {
    gb_expression expression;
    bool at_start, at_end;
} alternative;

/* What stands between two bars, or what a group has. */
typedef struct alternatives {
    alternative *items; /* owned */
    size_t count, capacity;
} alternatives;

/* The items of one alternative. */
typedef struct sequence {
    gb_expression *items; /* owned */
    size_t count, capacity;
    alternative result;
    alternatives group; /* of the only item, where that is a group without quantifier */
} sequence;

static void read_alternatives(gb_regex_reader *reader, alternatives *all);

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

/* Greedy or not makes no difference to what matches as a whole. */
static gb_expression quantify(gb_regex_reader *reader, gb_expression item, bool *quantified) {
    uint32_t least, most;
    size_t place = reader->at;
    *quantified = read_quantifier(reader, &least, &most);
    if (!*quantified)
        return item;
    if (most < least || least > MAX_TIMES || (most != GB_NO_END && most > MAX_TIMES))
        gb_regex_fail(reader, GUMBEL_ERROR_FORMAT, place, "a quantifier from more to less, or beyond %d",
                      MAX_TIMES);
    gb_regex_take(reader, '?');
    size_t again = reader->at;
    if (read_quantifier(reader, &(uint32_t){0}, &(uint32_t){0}))
        gb_regex_fail(reader, GUMBEL_ERROR_FORMAT, again, "a quantifier of a quantifier");
    return reader->status == GUMBEL_OK ? gb_express_repeat(reader->expressions, item, least, most) : 0;
}

/* ---- Groups ----------------------------------------------------------------------------------------------
 */

static void refuse_group(gb_regex_reader *reader, size_t place) {
    static const struct {
        const char *start, *name;
    } kinds[] = {{"=", "lookahead (?="},    {"!", "lookahead (?!"},     {"<=", "lookbehind (?<="},
                 {"<!", "lookbehind (?<!"}, {">", "an atomic group"},   {"(", "a conditional"},
                 {"R", "recursion"},        {"P=", "a back reference"}, {"P>", "recursion"},
                 {"#", "a comment (?#"}};
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

static void read_group(gb_regex_reader *reader, alternatives *all) {
    size_t place = reader->at - 1;
    if (gb_regex_take(reader, '?'))
        read_group_kind(reader, place);
    if (++reader->depth > MAX_DEPTH)
        gb_regex_fail(reader, GUMBEL_ERROR_LIMIT, place, "groups are nested deeper than %d", MAX_DEPTH);
    if (reader->status == GUMBEL_OK)
        read_alternatives(reader, all);
    reader->depth--;
    if (!gb_regex_take(reader, ')'))
        gb_regex_fail(reader, GUMBEL_ERROR_FORMAT, place, "this ( has no )");
}

/* ---- Items -----------------------------------------------------------------------------------------------
 */

static void push_item(gb_regex_reader *reader, sequence *to, gb_expression item) {
    if (!gb_grow((void **)&to->items, &to->capacity, to->count + 1, sizeof item))
        no_memory(reader);
    else
        to->items[to->count++] = item;
}

static gb_expression express_alternatives(gb_regex_reader *reader, const alternatives *all) {
    gb_expression *items = gb_allocate(all->count, sizeof *items);
    gb_expression choice = 0;
    if (!items)
        no_memory(reader);
    for (size_t i = 0; i < all->count && items; i++)
        items[i] = all->items[i].expression;
    if (reader->status == GUMBEL_OK)
        choice = gb_express_choice(reader->expressions, items, all->count);
    gb_free(items);
    return choice;
}

/* Anchors within a group hold for the alternative around it where they stand at its side in all of the group.
 */
static void take_anchors(gb_regex_reader *reader, sequence *to, const alternatives *group, bool quantified,
                         size_t place) {
    bool all_start = true, all_end = true, some = false;
    for (size_t i = 0; i < group->count; i++) {
        all_start &= group->items[i].at_start;
        all_end &= group->items[i].at_end;
        some |= group->items[i].at_start | group->items[i].at_end;
    }
    if (!some)
        return;
    bool misplaced = false;
    for (size_t i = 0; i < group->count; i++)
        misplaced |=
            (group->items[i].at_start && (!all_start || to->count)) || (group->items[i].at_end && !all_end);
    if (misplaced || quantified)
        gb_regex_fail(
            reader, GUMBEL_ERROR_UNSUPPORTED, place,
            "anchors in a group are supported where all its alternatives have them at a side of the whole");
    to->result.at_start |= all_start;
    to->result.at_end |= all_end;
}

static void read_group_item(gb_regex_reader *reader, sequence *to) {
    size_t place = reader->at - 1;
    alternatives group = {0};
    bool quantified = false;
    read_group(reader, &group);
    gb_expression item = reader->status == GUMBEL_OK ? express_alternatives(reader, &group) : 0;
    if (item)
        item = quantify(reader, item, &quantified);
    bool is_last = reader->at == reader->size || memchr("|)$", reader->text[reader->at], 3);
    if (to->count == 0 && !quantified && is_last && reader->status == GUMBEL_OK) {
        to->group = group;
        return;
    }
    take_anchors(reader, to, &group, quantified, place);
    gb_free(group.items);
    push_item(reader, to, item);
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

static bool take_anchor(gb_regex_reader *reader, sequence *to) {
    bool start = gb_regex_has(reader, "^", 1) || gb_regex_has(reader, "\\A", 2);
    bool end =
        gb_regex_has(reader, "$", 1) || gb_regex_has(reader, "\\z", 2) || gb_regex_has(reader, "\\Z", 2);
    if (!start && !end)
        return false;
    if (start && to->count)
        gb_regex_fail(reader, GUMBEL_ERROR_UNSUPPORTED, reader->at, "an anchor ^ behind other characters");
    to->result.at_start |= start;
    to->result.at_end |= end;
    reader->at += reader->text[reader->at] == '\\' ? 2 : 1;
    return true;
}

static void read_item(gb_regex_reader *reader, sequence *to) {
    size_t place = reader->at;
    if (take_anchor(reader, to))
        return;
    if (to->result.at_end) {
        gb_regex_fail(reader, GUMBEL_ERROR_UNSUPPORTED, place, "an anchor $ before other characters");
    } else if (gb_regex_take(reader, '(')) {
        read_group_item(reader, to);
    } else {
        bool quantified;
        gb_expression item = read_characters(reader);
        if (item)
            item = quantify(reader, item, &quantified);
        push_item(reader, to, item);
    }
}

/* ---- Alternatives ----------------------------------------------------------------------------------------
 */

static void push_alternative(gb_regex_reader *reader, alternatives *all, alternative added) {
    if (!gb_grow((void **)&all->items, &all->capacity, all->count + 1, sizeof added))
        no_memory(reader);
    else
        all->items[all->count++] = added;
}

/* The alternatives of a group that is all of one are alternatives of their own. */
static void read_alternative(gb_regex_reader *reader, alternatives *all) {
    sequence read = {0};
    while (reader->status == GUMBEL_OK && reader->at < reader->size && reader->text[reader->at] != '|' &&
           reader->text[reader->at] != ')')
        read_item(reader, &read);
    for (size_t i = 0; i < read.group.count && reader->status == GUMBEL_OK; i++) {
        alternative inner = read.group.items[i];
        inner.at_start |= read.result.at_start;
        inner.at_end |= read.result.at_end;
        push_alternative(reader, all, inner);
    }
    if (!read.group.items && reader->status == GUMBEL_OK) {
        read.result.expression = gb_express_sequence(reader->expressions, read.items, read.count);
        push_alternative(reader, all, read.result);
    }
    gb_free(read.items);
    gb_free(read.group.items);
}

static void read_alternatives(gb_regex_reader *reader, alternatives *all) {
    do
        read_alternative(reader, all);
    while (reader->status == GUMBEL_OK && gb_regex_take(reader, '|'));
}

/* The expression with what may stand around it where there is no anchor. */
static gb_expression surround(gb_regex_reader *reader, const alternative *one) {
    gb_expression around = reader->options->around;
    gb_expression items[] = {around, one->expression, around};
    if (!around || reader->status != GUMBEL_OK)
        return one->expression;
    return gb_express_sequence(reader->expressions, items + one->at_start,
                               3u - (size_t)one->at_start - (size_t)one->at_end);
}

/* Moves the alternatives with these anchors to `taken`. */
static void take_alternatives(gb_regex_reader *reader, alternatives *all, bool at_start, bool at_end,
                              alternatives *taken) {
    size_t kept = 0;
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].at_start == at_start && all->items[i].at_end == at_end)
            push_alternative(reader, taken, all->items[i]);
        else
            all->items[kept++] = all->items[i];
    all->count = kept;
}

/* Alternatives with the same anchors share what stands around them: a place in a text is then not one of
 * those behind each of them. */
static gb_expression surround_all(gb_regex_reader *reader, alternatives *all) {
    alternatives groups = {0};
    while (all->count && reader->status == GUMBEL_OK) {
        alternative group = all->items[0];
        alternatives taken = {0};
        take_alternatives(reader, all, group.at_start, group.at_end, &taken);
        group.expression = express_alternatives(reader, &taken);
        group.expression = surround(reader, &group);
        push_alternative(reader, &groups, group);
        gb_free(taken.items);
    }
    const gb_expression expression = express_alternatives(reader, &groups);
    gb_free(groups.items);
    return expression;
}

static void finish(gb_regex_reader *reader, alternatives *all, gb_regex *regex) {
    *regex = (gb_regex){.anchored_at_start = true, .anchored_at_end = true};
    for (size_t i = 0; i < all->count; i++) {
        regex->anchored_at_start &= all->items[i].at_start;
        regex->anchored_at_end &= all->items[i].at_end;
    }
    regex->expression = surround_all(reader, all);
}

gumbel_status gb_read_regex(gb_expressions *expressions, const char *text, size_t size,
                            const gb_regex_options *options, gb_regex *regex, gumbel_error *error) {
    const gb_regex_options none = {0};
    gb_regex_reader reader = {
        .expressions = expressions, .options = options ? options : &none, .text = text, .size = size};
    alternatives all = {0};
    *regex = (gb_regex){0};
    if (!gb_utf8_is_valid(text, size))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "regular expression: it is not UTF-8");
    read_alternatives(&reader, &all);
    if (reader.at < size)
        gb_regex_fail(&reader, GUMBEL_ERROR_FORMAT, reader.at, "this ) has no (");
    if (reader.status == GUMBEL_OK)
        finish(&reader, &all, regex);
    gb_free(all.items);
    GB_TRY(gb_expressions_error(expressions, error));
    return reader.status == GUMBEL_OK ? GUMBEL_OK : gb_fail(error, reader.status, "%s", reader.error.message);
}
