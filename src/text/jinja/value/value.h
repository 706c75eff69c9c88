/* SPDX-License-Identifier: Apache-2.0
 *
 * What a template computes with. As in transformers' sandbox only a namespace can be changed after it is
 * made; values are copied freely and live in the render's arena.
 */
#ifndef GUMBEL_TEXT_JINJA_VALUE_VALUE_H
#define GUMBEL_TEXT_JINJA_VALUE_VALUE_H

#include "text/jinja/value/state.h"

typedef enum gb_jinja_kind {
    GB_JINJA_ABSENT,    /* an argument that was not given; never a template's value */
    GB_JINJA_UNDEFINED, /* text: the name looked for */
    GB_JINJA_NONE,
    GB_JINJA_BOOLEAN,
    GB_JINJA_INTEGER,
    GB_JINJA_FLOAT,
    GB_JINJA_STRING,
    GB_JINJA_LIST,
    GB_JINJA_TUPLE,
    GB_JINJA_VIEW,     /* array: a dict's keys, values or items: has a length, but no indices */
    GB_JINJA_ITERATOR, /* array: what is left of a filter's results: neither length nor indices, read once */
    GB_JINJA_DICT,
    GB_JINJA_NAMESPACE,
    GB_JINJA_LOOP,
    GB_JINJA_MACRO,
    GB_JINJA_FUNCTION,
    GB_JINJA_METHOD
} gb_jinja_kind;

typedef struct gb_jinja_array gb_jinja_array;
typedef struct gb_jinja_dict gb_jinja_dict;
typedef struct gb_jinja_loop gb_jinja_loop;
typedef struct gb_jinja_macro gb_jinja_macro;
typedef struct gb_jinja_method gb_jinja_method;
typedef struct gb_jinja_builtin gb_jinja_builtin;

typedef struct gb_jinja_value {
    gb_jinja_kind kind;
    bool markup; /* a string that went through `safe`: `+` escapes what it is joined with */
    union {
        bool boolean;
        int64_t integer;
        double real;
        gb_jinja_text text;
        gb_jinja_array *array;
        gb_jinja_dict *dict; /* of a dict or a namespace */
        const gb_jinja_loop *loop;
        const gb_jinja_macro *macro;
        const gb_jinja_builtin *function;
        const gb_jinja_method *method;
    } as;
} gb_jinja_value;

struct gb_jinja_array {
    gb_jinja_value *items;
    size_t count, capacity;
    bool is_content; /* the parts of a message's content: printing them is noted */
};

typedef struct gb_jinja_entry {
    gb_jinja_value key, value;
} gb_jinja_entry;

/* In order of insertion. */
struct gb_jinja_dict {
    gb_jinja_entry *entries;
    size_t count, capacity;
    bool is_arguments; /* of a tool call: printing them is noted */
};

struct gb_jinja_loop {
    const gb_jinja_array *items;
    size_t index;
};

/* A built-in method and the value it was looked up on. */
struct gb_jinja_method {
    const gb_jinja_builtin *builtin;
    gb_jinja_value subject;
};

gb_jinja_value gb_jinja_undefined(gb_jinja_text name);
gb_jinja_value gb_jinja_none(void);
gb_jinja_value gb_jinja_boolean(bool boolean);
gb_jinja_value gb_jinja_integer(int64_t integer);
gb_jinja_value gb_jinja_float(double real);
gb_jinja_value gb_jinja_string(gb_jinja_text text);
gb_jinja_value gb_jinja_array_value(gb_jinja_kind kind, gb_jinja_array *array);

/* "string", "list", ... for messages, as Python names its types. */
const char *gb_jinja_type_name(const gb_jinja_value *value);

gumbel_status gb_jinja_new_array(gb_jinja_state *state, gb_jinja_array **array);
gumbel_status gb_jinja_push(gb_jinja_state *state, gb_jinja_array *array, gb_jinja_value item);
/* A tuple of two. */
gumbel_status gb_jinja_pair(gb_jinja_state *state, gb_jinja_value first, gb_jinja_value second,
                            gb_jinja_value *pair);

gumbel_status gb_jinja_new_dict(gb_jinja_state *state, gb_jinja_dict **dict);
/* *found is the value of key, or NULL. The key need not be hashable. */
gumbel_status gb_jinja_find(gb_jinja_state *state, const gb_jinja_dict *dict, gb_jinja_value key,
                            gb_jinja_value **found);
/* Fails if value cannot be a dict's key: Python's "unhashable". */
gumbel_status gb_jinja_need_key(gb_jinja_state *state, const gb_jinja_value *value);
gumbel_status gb_jinja_set(gb_jinja_state *state, gb_jinja_dict *dict, gb_jinja_value key,
                           gb_jinja_value value);

/* Python's bool(). */
bool gb_jinja_is_true(const gb_jinja_value *value);

bool gb_jinja_is_number(const gb_jinja_value *value);  /* booleans too */
bool gb_jinja_is_integer(const gb_jinja_value *value); /* booleans too */
/* A number as Python's int and float operations see it: True is 1. Anything else is 0. */
int64_t gb_jinja_as_integer(const gb_jinja_value *value);
double gb_jinja_as_float(const gb_jinja_value *value);

/* == of Python, at any depth. */
gumbel_status gb_jinja_equal(gb_jinja_state *state, const gb_jinja_value *a, const gb_jinja_value *b,
                             bool *equal);

/* Below, at or above zero for numbers, strings, lists and tuples; FORMAT for what Python cannot order. */
gumbel_status gb_jinja_order(gb_jinja_state *state, const gb_jinja_value *a, const gb_jinja_value *b,
                             int *order);

/* The items a for loop would visit: those of an array, a string's characters, a dict's keys. The array
 * belongs to the value. An iterator is empty afterwards. FORMAT when value cannot be iterated. */
gumbel_status gb_jinja_iterate(gb_jinja_state *state, const gb_jinja_value *value,
                               const gb_jinja_array **items);

/* Python's len(). FORMAT when value has none. */
gumbel_status gb_jinja_length(gb_jinja_state *state, const gb_jinja_value *value, size_t *length);

#endif
