/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of objects, as they are found and expressed.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_COMPOSITE_OBJECT_PARTS_H
#define GUMBEL_GRAMMAR_SCHEMA_COMPOSITE_OBJECT_PARTS_H

#include "grammar/schema/reader/keywords.h"

/* What is found of an object before it is expressed. */
typedef struct gb_object_parts {
    gb_schema_reader *reader;
    const gb_terms *terms;
    const gb_terms *demands; /* each is met by a member that is not named (some_member.h) */
    gb_expression *met;      /* [demands->count]: the members that meet it */
    bool is_tagged;          /* members are arguments that stand by themselves */
    json_t *names;    /* {"a": true}: members that are named, whether they are required; in their order */
    json_t *patterns; /* of patternProperties, each once */
    gb_terms key_terms;
    gb_any_order_item *items;
    size_t count, required_count;
    json_t *needs; /* {"a": ["b"]}: names that stand beside others; NULL in order, where they are rewritten */
    gb_implication *implications;
    size_t implication_count, implication_capacity;
    size_t class_count; /* of keys that are not named */
    bool impossible;    /* a required member cannot be */
    gb_expression rest;
} gb_object_parts;

/* Finds the names, patterns and needs of the terms. False on an error. */
bool gb_list_members(gb_object_parts *object);

/* Makes implications of the needs, when all members that are named are items. False on an error. */
bool gb_add_implications(gb_object_parts *object);

/* Makes `rest` of the members that are not named, and an item of each demand. False on an error. */
bool gb_add_other_members(gb_object_parts *object);

/* Whether keys have no quotes, where they can do without. */
bool gb_has_bare_keys(const gb_object_parts *object);

gb_expression gb_express_member(gb_object_parts *object, gb_expression key, gb_expression value);

/* What the member's value is; name is NULL for one that no properties name. */
gb_expression gb_express_member_value(gb_object_parts *object, const char *name, const gb_terms *terms);

#endif
