/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/rewrite/made.h"

#include "base/memory.h"

const json_t *gb_keep_schema(gb_schema_reader *reader, json_t *schema, const json_t *source) {
    if (schema && gb_grow((void **)&reader->made, &reader->made_capacity, reader->made_count + 1,
                          sizeof *reader->made)) {
        reader->made[reader->made_count++] = (gb_made_schema){schema, source};
        return schema;
    }
    json_decref(schema);
    gb_schema_no_memory(reader);
    return NULL;
}

#define BEING_MADE UINT32_MAX

const json_t *gb_rewritten(gb_schema_reader *reader, const json_t *schema, const char *keyword,
                           gb_rewriter *rewrite) {
    const json_t *const pair[] = {schema, (const json_t *)(uintptr_t)keyword};
    const gb_terms key = {.items = (const json_t **)(uintptr_t)pair, .count = 2};
    uint32_t *known = gb_terms_map_at(&reader->rewritten, &key);
    if (known && *known == BEING_MADE) {
        gb_schema_fail(reader, schema, NULL, GUMBEL_ERROR_FORMAT, "what it allows depends on itself");
        return NULL;
    }
    if (known && *known)
        return reader->made[*known - 1].schema;
    if (known)
        *known = BEING_MADE;
    const json_t *made = known ? gb_keep_schema(reader, rewrite(reader, schema), schema) : NULL;
    const size_t number = reader->made_count;
    uint32_t *added = made ? gb_terms_map_at(&reader->rewritten, &key) : NULL;
    if (!added) {
        gb_schema_no_memory(reader);
        return NULL;
    }
    *added = (uint32_t)number;
    return made;
}
