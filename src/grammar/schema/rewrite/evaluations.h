/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of what may be evaluated (evaluated.h), and how two of them combine. The functions take the lists
 * that they are given, of which each may be NULL; then, and without memory, the result is NULL.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_REWRITE_EVALUATIONS_H
#define GUMBEL_GRAMMAR_SCHEMA_REWRITE_EVALUATIONS_H

#include "grammar/schema/reader/reader.h"

/* For which schema and keyword they are made, which errors name. */
typedef struct gb_evaluating {
    gb_schema_reader *reader;
    const json_t *schema;
    const char *keyword;
    gb_terms path; /* the schemas that are looked at, each for the one before it */
    size_t named;  /* names and patterns in all lists so far */
} gb_evaluating;

/* Nothing is evaluated, whatever holds. */
json_t *gb_nothing_evaluated(void);
bool gb_is_nothing_evaluated(const json_t *list);

/* What the schema evaluates by its own keywords, whatever else holds. */
json_t *gb_evaluated_by_own(const gb_evaluating *at, const json_t *schema);

/* Whether all members or items are evaluated, where its conditions hold. */
bool gb_evaluates_all(const json_t *evaluation);

/* Whether one of the list evaluates as much and asks no more. True as well on an error. */
bool gb_is_covered(const gb_evaluating *at, const json_t *list, const json_t *evaluation);

/* Each of the list where this schema holds, too. Does not take the schema; NULL counts as no memory. */
json_t *gb_evaluated_where(json_t *list, const json_t *schema);

/* What one of the two evaluates, and what both do together. Too long a list is the error. */
json_t *gb_evaluated_by_either(gb_evaluating *at, json_t *a, json_t *b);
json_t *gb_evaluated_by_both(gb_evaluating *at, json_t *a, json_t *b);

#endif
