/* SPDX-License-Identifier: Apache-2.0
 *
 * Schemas that are made of those of a document, each once.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_REWRITE_MADE_H
#define GUMBEL_GRAMMAR_SCHEMA_REWRITE_MADE_H

#include "grammar/schema/reader/reader.h"

/* Keywords of schemas that are made here; a document has none that is not UTF-8. */
#define GB_EXCLUDED                                                                                          \
    "\xff"                                                                                                   \
    "without" /* the schema whose values the expressions of types leave out */
#define GB_SOME_MEMBER                                                                                       \
    "\xff"                                                                                                   \
    "member" /* {"names": schema, "value": schema}: a member is as both ask */
#define GB_NEGATED                                                                                           \
    "\xff"                                                                                                   \
    "not" /* all but what the schema allows, found when it is asked for */
#define GB_EVALUATED                                                                                         \
    "\xff"                                                                                                   \
    "evaluated" /* as anyOf: what may be evaluated, which is chosen before other branches */
#define GB_CONTAINS_FROM                                                                                     \
    "\xff"                                                                                                   \
    "from" /* `contains` looks at the items from this index on */

/* Gives a new schema; NULL where the error is. */
typedef json_t *gb_rewriter(gb_schema_reader *reader, const json_t *schema);

/* What the schema is rewritten to for a keyword, whose address counts; made once, since terms are known by
 * the addresses of their schemas. NULL on an error. */
const json_t *gb_rewritten(gb_schema_reader *reader, const json_t *schema, const char *keyword,
                           gb_rewriter *rewrite);

/* Has the reader own a schema that stands for parts of another one, which errors name. Takes the schema.
 * NULL, with the error, without memory. */
const json_t *gb_keep_schema(gb_schema_reader *reader, json_t *schema, const json_t *source);

#endif
