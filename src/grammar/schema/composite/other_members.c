/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of objects that no properties name.
 */
#include "base/memory.h"
#include "grammar/schema/arguments.h"
#include "grammar/schema/composite/members.h"
#include "grammar/schema/composite/object_parts.h"
#include "grammar/schema/string/json_string.h"
#include "grammar/schema/string/pattern.h"
#include "grammar/schema/value.h"

#include <string.h>

enum {
    FEW_PATTERNS = 6, /* whose sets are not looked at before the whole is compiled */
    MOST_CLASSES = 256
};

/* Keys that the patterns of `matched` match and those of `excluded` do not; the others cannot match them. */
typedef struct key_class {
    uint64_t matched, excluded;
} key_class;

/* The contents of keys of the class that no member has as its name. */
static gb_expression express_other_keys(gb_object_parts *object, key_class class) {
    gb_schema_reader *reader = object->reader;
    gb_expression keys =
        gb_express_repeat(reader->expressions, reader->strings->plain_character, 0, GB_NO_END);
    const char *name;
    json_t *value;
    size_t i;
    json_array_foreach(object->patterns, i, value) {
        const gb_expression pattern =
            gb_express_pattern_of(reader, object->terms->items[0], "patternProperties", value);
        if (class.matched >> i & 1)
            keys = gb_express_both(reader->expressions, keys, pattern);
        if (class.excluded >> i & 1)
            keys = gb_express_except(reader->expressions, keys, pattern);
    }
    const size_t count = json_object_size(object->names);
    gb_expression *names = gb_allocate(count, sizeof *names);
    if (!names)
        return gb_schema_no_memory(reader);
    i = 0;
    json_object_foreach(object->names, name, value) names[i++] =
        gb_express_plain_text(reader, name, strlen(name));
    if (count)
        keys = gb_express_except(reader->expressions, keys,
                                 gb_express_choice(reader->expressions, names, count));
    gb_free(names);
    return keys;
}

/* Those that are also as propertyNames asks. */
static gb_expression narrow_keys(gb_object_parts *object, gb_expression keys) {
    gb_schema_reader *reader = object->reader;
    if (!object->key_terms.count)
        return keys;
    const gb_expression allowed = gb_express_keys(reader, &object->key_terms);
    return allowed == reader->nothing ? allowed : gb_express_both(reader->expressions, keys, allowed);
}

static gb_expression express_bare_key(gb_object_parts *object, key_class class) {
    gb_schema_reader *reader = object->reader;
    const gb_strings *strings = reader->strings;
    reader->strings = &reader->bare;
    const gb_expression keys =
        gb_express_both(reader->expressions, express_other_keys(object, class), gb_express_bare_keys(reader));
    const gb_expression allowed = narrow_keys(object, keys);
    reader->strings = strings;
    return allowed;
}

/* Keys with their quotes. */
static gb_expression express_other_key(gb_object_parts *object, key_class class) {
    gb_schema_reader *reader = object->reader;
    if (gb_has_bare_keys(object))
        return express_bare_key(object, class);
    if (!json_object_size(object->names) && !json_array_size(object->patterns) && !object->key_terms.count)
        return reader->strings->free_string;
    return narrow_keys(object, gb_quoted(reader, express_other_keys(object, class)));
}

/* A value of keys of the class, which is also as `more` asks (NULL: nothing). */
static gb_expression express_class_value(gb_object_parts *object, key_class class, const json_t *more) {
    gb_schema_reader *reader = object->reader;
    gb_terms terms = {0};
    gb_expression value = 0;
    if (gb_other_member_terms(reader, object->terms, object->patterns, class.matched, &terms)) {
        if (!more || gb_terms_add(&terms, more))
            value = gb_express_member_value(object, NULL, &terms);
        else
            gb_schema_no_memory(reader);
    }
    gb_terms_free(&terms);
    return value;
}

/* A member of the class that meets the demand. */
static gb_expression express_demanded(gb_object_parts *object, key_class class, const json_t *demand) {
    gb_schema_reader *reader = object->reader;
    const json_t *names = json_object_get(demand, "names");
    const gb_terms of_name = {.items = &names, .count = 1};
    const gb_expression value = express_class_value(object, class, json_object_get(demand, "value"));
    const gb_expression keys = value ? gb_express_keys(reader, &of_name) : 0;
    if (!keys || value == reader->nothing || keys == reader->nothing)
        return keys ? reader->nothing : 0;
    return gb_express_member(
        object, gb_express_both(reader->expressions, express_other_key(object, class), keys), value);
}

static bool meet_demands(gb_object_parts *object, key_class class) {
    gb_schema_reader *reader = object->reader;
    for (size_t i = 0; i < object->demands->count; i++) {
        const gb_expression member = express_demanded(object, class, object->demands->items[i]);
        if (!member)
            return false;
        object->met[i] = GB_EITHER(reader, object->met[i], member);
    }
    return true;
}

static bool add_class(gb_object_parts *object, key_class class) {
    gb_schema_reader *reader = object->reader;
    if (object->class_count++ == MOST_CLASSES)
        return gb_schema_fail(reader, object->terms->items[0], "patternProperties", GUMBEL_ERROR_LIMIT,
                              "more than %d sets of patterns match keys", MOST_CLASSES);
    const gb_expression value = express_class_value(object, class, NULL);
    if (value && value != reader->nothing)
        object->rest = GB_EITHER(reader, object->rest,
                                 gb_express_member(object, express_other_key(object, class), value));
    return value && meet_demands(object, class) && !gb_schema_failed(reader);
}

/* Adds the classes of keys that the first `next` patterns have split already, of which some match `keys`. A
 * pattern that none of these match does not split them; of a few patterns compiling finds that as soon. */
static bool split_keys(gb_object_parts *object, gb_expression keys, size_t next, key_class class) {
    gb_schema_reader *reader = object->reader;
    const uint64_t bit = UINT64_C(1) << next % 64;
    if (next == json_array_size(object->patterns))
        return add_class(object, class);
    const json_t *schema = object->terms->items[0];
    const gb_expression pattern =
        gb_express_pattern_of(reader, schema, "patternProperties", json_array_get(object->patterns, next));
    const gb_expression matching = pattern ? gb_express_both(reader->expressions, keys, pattern) : 0;
    const bool splits = matching && (json_array_size(object->patterns) <= FEW_PATTERNS ||
                                     !gb_expression_is_empty(reader, matching));
    if (gb_schema_failed(reader) || !gb_schema_work(reader, schema))
        return false;
    if (!splits)
        return split_keys(object, keys, next + 1, class);
    return split_keys(object, keys, next + 1, (key_class){class.matched, class.excluded | bit}) &&
           split_keys(object, matching, next + 1, (key_class){class.matched | bit, class.excluded});
}

static bool start_demands(gb_object_parts *object) {
    gb_schema_reader *reader = object->reader;
    const size_t count = object->demands->count;
    if (count && gb_has_bare_keys(object))
        return gb_schema_fail(reader, object->terms->items[0], NULL, GUMBEL_ERROR_UNSUPPORTED,
                              "what some member has to be cannot be said of arguments in this form");
    object->met = gb_allocate(count, sizeof *object->met);
    for (size_t i = 0; object->met && i < count; i++)
        object->met[i] = reader->nothing;
    return object->met || gb_schema_no_memory(reader);
}

/* Each demand is an item of its own, which may be any of many members. */
static bool end_demands(gb_object_parts *object) {
    for (size_t i = 0; i < object->demands->count; i++) {
        object->impossible |= object->met[i] == object->reader->nothing;
        object->items[object->count++] = (gb_any_order_item){object->met[i], true};
    }
    return true;
}

/* Members that are not named: a class of keys for each set of patterns that may match. */
bool gb_add_other_members(gb_object_parts *object) {
    gb_schema_reader *reader = object->reader;
    object->rest = reader->nothing;
    return start_demands(object) &&
           split_keys(object,
                      gb_express_repeat(reader->expressions, reader->strings->plain_character, 0, GB_NO_END),
                      0, (key_class){0, 0}) &&
           end_demands(object);
}
