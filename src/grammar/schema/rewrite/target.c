/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/rewrite/target.h"

#include "grammar/schema/negate/negate.h"
#include "grammar/schema/reader/keywords.h"
#include "grammar/schema/reader/place.h"
#include "grammar/schema/rewrite/honoured.h"
#include "grammar/schema/rewrite/made.h"

#include <string.h>

enum { MOST_HOPS = 100 }; /* of a $ref to a $ref */

/* Whether the keyword is all that the schema asks. */
static bool asks_only(const gb_schema_reader *reader, const json_t *schema, const char *keyword) {
    const char *key;
    json_t *value;
    if (!json_object_get(schema, keyword))
        return false;
    json_object_foreach(gb_mutable(schema), key, value) {
        const gb_keyword_kind kind = gb_keyword_kind_of(reader, key);
        if (kind != GB_KEYWORD_ANNOTATION && kind != GB_KEYWORD_PLACE && strcmp(key, keyword) != 0)
            return false;
    }
    return true;
}

/* The next schema; NULL on an error, itself for no other one. */
static const json_t *next_of(gb_schema_reader *reader, const json_t *schema) {
    if (asks_only(reader, schema, GB_NEGATED))
        return gb_negated(reader, json_object_get(schema, GB_NEGATED));
    const json_t *next = asks_only(reader, schema, "$ref") ? gb_schema_refer(reader, schema, "$ref") : schema;
    return next ? gb_honoured(reader, next) : NULL;
}

const json_t *gb_target(gb_schema_reader *reader, const json_t *schema) {
    const json_t *last = NULL;
    schema = gb_honoured(reader, schema);
    for (int hops = 0; schema && schema != last && hops < MOST_HOPS; hops++) {
        last = schema;
        schema = next_of(reader, schema);
    }
    return schema;
}
