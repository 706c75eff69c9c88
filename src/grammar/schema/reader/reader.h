/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the schema reader share: the schema, the expressions that are made of it, and errors that
 * name a keyword and its place. Functions that return an expression return 0 on an error, which the
 * expressions keep.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_READER_READER_H
#define GUMBEL_GRAMMAR_SCHEMA_READER_READER_H

#include "grammar/schema/options.h"
#include "grammar/schema/reader/places.h"
#include "grammar/schema/reader/terms.h"

enum {
    GB_MAX_SCHEMA_BYTES = 16 << 20,
    GB_MAX_SCHEMA_DEPTH = 256,            /* JSON inside JSON */
    GB_MAX_SCHEMA_WORK = 1 << 18,         /* schemas looked at */
    GB_MAX_SCHEMA_ALTERNATIVES = 1 << 16, /* of one value */
    GB_MAX_TRIED = 16                     /* expressions that are kept compiled */
};

/* A schema that stands for keywords of another one (made.h). */
typedef struct gb_made_schema {
    json_t *schema; /* owned */
    const json_t *source;
} gb_made_schema;

/* Lists of assertions, of which any may hold (alternatives.h). */
typedef struct gb_alternatives {
    gb_terms *items; /* an empty list allows every value */
    size_t count, capacity;
} gb_alternatives;

/* A rule whose item is still to be expressed. */
typedef struct gb_waiting_rule {
    gb_expression rule;
    gb_alternatives alternatives;
} gb_waiting_rule;

/* The values of an enum (listed.h). */
typedef struct gb_value_set {
    const json_t **slots; /* a hash table; NULL: free */
    size_t slot_count;    /* a power of two */
} gb_value_set;

/* An expression that texts are tried on (pattern.h). */
typedef struct gb_tried {
    gb_expression expression;
    uint64_t walked; /* steps that texts took without its grammar, which is then worth making */
    bool is_compiled;
    struct gb_grammar *grammar; /* NULL: it allows no text, or is not compiled */
} gb_tried;

/* How strings are spelled: as JSON has them, or as they are. */
typedef struct gb_strings {
    bool is_raw;                   /* no escapes: tabs and line breaks, no other control characters */
    gb_expression open, close;     /* around a string */
    gb_expression free_character;  /* of a string, in any spelling */
    gb_expression free_string;     /* any, with its quotes */
    gb_expression plain_character; /* of a string, in its one spelling */
    json_t *patterns, *formats;    /* {"^a": number of its expression}; those of formats are whole; owned */
} gb_strings;

/* How many levels of required members and items are looked at to see that no value can satisfy terms. */
enum { GB_LOOK_DEPTH = 4 };

typedef struct gb_schema_reader {
    gb_expressions *expressions;
    gb_schema_options options;
    const json_t *root;
    unsigned draft; /* that $schema of the document names: 3, 4, 6, 7, 2019, 2020; without one the last */
    json_t *big_integers;                     /* of root (big_integers.h); NULL: there are none */
    gb_places places;                         /* of schemas in root */
    char rule_prefix[40];                     /* of the names of this reader's rules */
    gb_terms_map values;                      /* terms -> the expression of their values */
    gb_terms_map possible[GB_LOOK_DEPTH + 1]; /* by levels: terms -> whether a value can satisfy them, + 1 */
    gb_terms_map rewritten; /* the schema and the name of what was rewritten -> index in made + 1 */
    gb_made_schema *made;
    size_t made_count, made_capacity;
    gb_waiting_rule *waiting;
    size_t waiting_count, waiting_capacity;
    gb_terms_map matching[2]; /* terms -> what gb_express_matching gives of quoted and of bare strings */
    gb_tried tried[GB_MAX_TRIED];
    gb_terms_map listed; /* an array -> index of its set + 1 */
    gb_value_set *value_sets;
    size_t value_set_count, value_set_capacity;
    uint64_t work;
    size_t order_count; /* rules of in_order.c */

    /* Parts of many expressions. */
    gb_expression empty, nothing;
    gb_expression space;                   /* inside brackets */
    gb_expression comma, colon;            /* with the white space behind them */
    gb_expression number, integer, digits; /* without bounds; any number of digits */
    uint32_t most_digits;                  /* of a number before its point; GB_NO_END: any number */
    const gb_strings *strings;             /* the spelling that holds */
    gb_strings quoted;                     /* of values */
    gb_strings bare;                       /* without quotes, as they are; of arguments alone */
    gb_expression reserved;                /* regular: contents that no string may have; 0: none */
} gb_schema_reader;

/* Fails naming the keyword of the schema: `schema: "pattern" at #/properties/a/pattern: ...`. keyword may be
 * NULL. Returns 0. */
gb_expression gb_schema_fail(gb_schema_reader *reader, const json_t *schema, const char *keyword,
                             gumbel_status status, const char *format, ...) GB_PRINTF(5, 6);

/* Whether the schema is one of the document, and not made of one. False as well on an error: MEMORY, LIMIT
 * (the document has too many values to tell). */
bool gb_schema_is_given(gb_schema_reader *reader, const json_t *schema);

/* The schema of the document that this one was made of; itself where it is of the document. */
const json_t *gb_schema_source(const gb_schema_reader *reader, const json_t *schema);

gb_expression gb_schema_no_memory(gb_schema_reader *reader);
bool gb_schema_failed(const gb_schema_reader *reader);

/* Counts a step of work. False, with the error, when there were too many. */
bool gb_schema_work(gb_schema_reader *reader, const json_t *schema);

/* The expression of a value under all the terms: reader->nothing if none can be. */
gb_expression gb_express_value(gb_schema_reader *reader, const gb_terms *terms);

/* One after the other, and any one of several; `nothing` among them counts as it should. */
gb_expression gb_join(gb_schema_reader *reader, const gb_expression *items, size_t count);
gb_expression gb_either(gb_schema_reader *reader, const gb_expression *items, size_t count);
#define GB_JOIN(reader, ...)                                                                                 \
    gb_join((reader), (const gb_expression[]){__VA_ARGS__},                                                  \
            sizeof((const gb_expression[]){__VA_ARGS__}) / sizeof(gb_expression))
#define GB_EITHER(reader, ...)                                                                               \
    gb_either((reader), (const gb_expression[]){__VA_ARGS__},                                                \
              sizeof((const gb_expression[]){__VA_ARGS__}) / sizeof(gb_expression))

/* Expressions to be joined or chosen from. Starts zeroed. */
typedef struct gb_value_parts {
    gb_expression *items;
    size_t count, capacity;
} gb_value_parts;

/* False, with the error, without memory and where the part is the 0 of another error. */
bool gb_parts_add(gb_schema_reader *reader, gb_value_parts *parts, gb_expression part);

/* gb_join and gb_either of them, 0 after an error. Both free the parts. */
gb_expression gb_parts_join(gb_schema_reader *reader, gb_value_parts *parts);
gb_expression gb_parts_either(gb_schema_reader *reader, gb_value_parts *parts);

/* These characters of ASCII as they are. */
gb_expression gb_literal(gb_schema_reader *reader, const char *text);

/* One ASCII character of first to last. */
gb_expression gb_between(gb_schema_reader *reader, char first, char last);

#endif
