/* SPDX-License-Identifier: Apache-2.0
 *
 * How the values that a schema allows are written, and what is taken for a schema.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_OPTIONS_H
#define GUMBEL_GRAMMAR_SCHEMA_OPTIONS_H

#include "grammar/expression.h"

#include <jansson.h>
#include <stdbool.h>

typedef enum gb_schema_space {
    GB_SPACE_FLEXIBLE, /* space, tab, line breaks wherever JSON has them, but not around the whole */
    GB_SPACE_NONE,     /* {"a":1,"b":[1,2]} */
    GB_SPACE_SINGLE,   /* {"a": 1, "b": [1, 2]} */
    /* Behind a token nothing, a space, or a new line and up to longest_space spaces or tabs; none before a
     * colon and at most a space behind it: as people write it, and no place for a model to lose itself in. */
    GB_SPACE_LINES
} gb_schema_space;

#define GB_ARGUMENT_DIGITS 18 /* so that an integer fits into 64 bits */
#define GB_DEFAULT_SPACE 20   /* white-space characters in a row, GB_SPACE_FLEXIBLE and GB_SPACE_LINES */

/* How the arguments of a tool's call are written where that is not JSON. Expressions are of the same
 * gb_expressions as what is made of them. */
typedef struct gb_argument_form {
    gb_expression open_mark, close_mark; /* around strings, which then have no escapes; 0: JSON's quotes */
    bool bare_keys;                      /* keys of objects have no quotes, where they can do without */
    const json_t *reserved;              /* texts that no string may have in it; NULL: none */
    bool is_tagged; /* each argument stands by itself: before_name, its name, behind_name, its value (strings
                       as they are, others as JSON), behind_value; otherwise all are one object */
    gb_expression before_name, behind_name, behind_value;
} gb_argument_form;

/* Zeroed: the defaults. */
typedef struct gb_schema_options {
    gb_schema_space space;
    uint32_t
        longest_space; /* flexible, lines: characters in a row; 0: GB_DEFAULT_SPACE; GB_NO_END: no limit */
    bool in_order;     /* members stand in the order of `properties`, others behind them */
    bool one_of_as_any_of; /* branches of oneOf are not held apart */
    bool strict;     /* keywords and formats that are not known are refused; otherwise they are annotations */
    json_t *unknown; /* an object that gets a member for each of those, by its name; NULL: none are listed */
    /* The values are arguments, written so, and typed again by those who read them: numbers have at most
     * GB_ARGUMENT_DIGITS digits before their point and behind it. NULL: they are JSON. */
    const gb_argument_form *form;
} gb_schema_options;

#endif
