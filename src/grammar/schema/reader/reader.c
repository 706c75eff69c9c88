/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/reader/reader.h"

#include "base/memory.h"
#include "grammar/schema/reader/place.h"

#include <stdio.h>
#include <string.h>

bool gb_schema_failed(const gb_schema_reader *reader) {
    return gb_expressions_error(reader->expressions, NULL) != GUMBEL_OK;
}

gb_expression gb_schema_no_memory(gb_schema_reader *reader) {
    return gb_expressions_fail(reader->expressions, GUMBEL_ERROR_MEMORY, "schema: no memory to read it");
}

const json_t *gb_schema_source(const gb_schema_reader *reader, const json_t *schema) {
    for (size_t i = reader->made_count; i-- > 0;)
        if (reader->made[i].schema == schema)
            schema = reader->made[i].source;
    return schema;
}

gb_expression gb_schema_fail(gb_schema_reader *reader, const json_t *schema, const char *keyword,
                             gumbel_status status, const char *format, ...) {
    char reason[300], place[160];
    va_list arguments;
    if (gb_schema_failed(reader))
        return 0;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    gb_schema_place(reader, gb_schema_source(reader, schema), keyword, place, sizeof place);
    return keyword ? gb_expressions_fail(reader->expressions, status, "schema: \"%s\" at %s: %s", keyword,
                                         place, reason)
                   : gb_expressions_fail(reader->expressions, status, "schema: at %s: %s", place, reason);
}

bool gb_schema_is_given(gb_schema_reader *reader, const json_t *schema) {
    const bool is_given = gb_is_of_document(&reader->places, reader->root, schema);
    if (reader->places.failed)
        gb_schema_no_memory(reader);
    else if (reader->places.is_full)
        gb_schema_fail(reader, reader->root, NULL, GUMBEL_ERROR_LIMIT, "it has too many values");
    return is_given && !gb_schema_failed(reader);
}

bool gb_schema_work(gb_schema_reader *reader, const json_t *schema) {
    if (++reader->work > GB_MAX_SCHEMA_WORK)
        gb_schema_fail(reader, schema, NULL, GUMBEL_ERROR_LIMIT,
                       "its alternatives combine in too many ways (%d steps)", GB_MAX_SCHEMA_WORK);
    return gb_expressions_go_on(reader->expressions, GB_WATCH_STEPS);
}

gb_expression gb_join(gb_schema_reader *reader, const gb_expression *items, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (items[i] == reader->nothing)
            return reader->nothing;
    return gb_express_sequence(reader->expressions, items, count);
}

gb_expression gb_either(gb_schema_reader *reader, const gb_expression *items, size_t count) {
    gb_expression *kept = gb_allocate(count, sizeof *kept);
    size_t kept_count = 0;
    if (!kept)
        return gb_schema_no_memory(reader);
    for (size_t i = 0; i < count; i++)
        if (items[i] != reader->nothing)
            kept[kept_count++] = items[i];
    const gb_expression either =
        kept_count ? gb_express_choice(reader->expressions, kept, kept_count) : reader->nothing;
    gb_free(kept);
    return either;
}

bool gb_parts_add(gb_schema_reader *reader, gb_value_parts *parts, gb_expression part) {
    if (!part || !gb_grow((void **)&parts->items, &parts->capacity, parts->count + 1, sizeof part))
        return gb_schema_no_memory(reader);
    parts->items[parts->count++] = part;
    return true;
}

static gb_expression end_parts(gb_schema_reader *reader, gb_value_parts *parts,
                               gb_expression end(gb_schema_reader *, const gb_expression *, size_t)) {
    const gb_expression whole = gb_schema_failed(reader) ? 0 : end(reader, parts->items, parts->count);
    gb_free(parts->items);
    *parts = (gb_value_parts){0};
    return whole;
}

gb_expression gb_parts_join(gb_schema_reader *reader, gb_value_parts *parts) {
    return end_parts(reader, parts, gb_join);
}

gb_expression gb_parts_either(gb_schema_reader *reader, gb_value_parts *parts) {
    return end_parts(reader, parts, gb_either);
}

gb_expression gb_literal(gb_schema_reader *reader, const char *text) {
    return gb_express_bytes(reader->expressions, text, strlen(text));
}

gb_expression gb_between(gb_schema_reader *reader, char first, char last) {
    const gb_character_range range = {(uint32_t)first, (uint32_t)last};
    return gb_express_characters(reader->expressions, &range, 1);
}
