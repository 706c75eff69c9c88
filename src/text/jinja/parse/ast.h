/* SPDX-License-Identifier: Apache-2.0
 *
 * A template's syntax tree. Lists are linked through next; all of it lives in the render's arena.
 */
#ifndef GUMBEL_TEXT_JINJA_PARSE_AST_H
#define GUMBEL_TEXT_JINJA_PARSE_AST_H

#include "text/jinja/value/value.h"

/* The name, which no template can write, of a variable with the output of a set or filter block's body. */
#define GB_JINJA_BODY "(body)"

typedef enum gb_jinja_operator {
    GB_JINJA_ADD,
    GB_JINJA_SUBTRACT,
    GB_JINJA_MULTIPLY,
    GB_JINJA_DIVIDE,
    GB_JINJA_FLOOR_DIVIDE,
    GB_JINJA_MODULO,
    GB_JINJA_POWER,
    GB_JINJA_CONCATENATE,
    GB_JINJA_EQUAL,
    GB_JINJA_NOT_EQUAL,
    GB_JINJA_LESS,
    GB_JINJA_LESS_EQUAL,
    GB_JINJA_GREATER,
    GB_JINJA_GREATER_EQUAL,
    GB_JINJA_IN,
    GB_JINJA_NOT_IN
} gb_jinja_operator;

typedef enum gb_jinja_expression_kind {
    GB_JINJA_CONSTANT,   /* constant */
    GB_JINJA_NAME,       /* name */
    GB_JINJA_MAKE_LIST,  /* items */
    GB_JINJA_MAKE_TUPLE, /* items; as a target, names */
    GB_JINJA_MAKE_DICT,  /* items: key, value, key, value, ... */
    GB_JINJA_ATTRIBUTE,  /* left . name; as a target, left is the name of a namespace */
    GB_JINJA_ITEM,       /* left [ right ] */
    GB_JINJA_SLICE,      /* left [ right : third : fourth ], each of which may be NULL */
    GB_JINJA_CALL,       /* left ( arguments ) */
    GB_JINJA_FILTER,     /* left | name ( arguments ) */
    GB_JINJA_TEST,       /* left is name ( arguments ) */
    GB_JINJA_NOT,        /* not left */
    GB_JINJA_NEGATE,     /* - left */
    GB_JINJA_PLUS,       /* + left */
    GB_JINJA_AND,        /* left and right */
    GB_JINJA_OR,         /* left or right */
    GB_JINJA_ARITHMETIC, /* left operator right */
    GB_JINJA_COMPARISON, /* left operator right, then operator and right of each of items: a < b <= c */
    GB_JINJA_CONDITIONAL /* left if right else third, which may be NULL */
} gb_jinja_expression_kind;

typedef struct gb_jinja_expression gb_jinja_expression;

typedef struct gb_jinja_argument {
    struct gb_jinja_argument *next;
    gb_jinja_text keyword; /* empty for one by position */
    const gb_jinja_expression *value;
} gb_jinja_argument;

struct gb_jinja_expression {
    gb_jinja_expression *next; /* within the items of another */
    gb_jinja_expression_kind kind;
    gb_jinja_operator operation;
    uint32_t line;
    gb_jinja_text name;
    gb_jinja_value constant;
    const gb_jinja_expression *left, *right, *third, *fourth;
    gb_jinja_expression *items;
    const gb_jinja_argument *arguments;
};

typedef enum gb_jinja_statement_kind {
    GB_JINJA_TEXT,         /* text */
    GB_JINJA_PRINT,        /* value */
    GB_JINJA_IF,           /* if value: body, else elif, which is an IF, or else otherwise */
    GB_JINJA_FOR,          /* for target in value if condition: body, otherwise */
    GB_JINJA_SET,          /* target = value */
    GB_JINJA_SET_BLOCK,    /* target = value, in which GB_JINJA_BODY is body's output */
    GB_JINJA_FILTER_BLOCK, /* value, in which GB_JINJA_BODY is body's output */
    GB_JINJA_SCOPE,        /* body, whose variables do not leave it */
    GB_JINJA_DEFINE,       /* macro text(parameters): body */
    GB_JINJA_LEAVE_LOOP,   /* break */
    GB_JINJA_NEXT_ITEM     /* continue */
} gb_jinja_statement_kind;

typedef struct gb_jinja_parameter {
    struct gb_jinja_parameter *next;
    gb_jinja_text name;
    const gb_jinja_expression *otherwise; /* its default, or NULL */
} gb_jinja_parameter;

typedef struct gb_jinja_statement {
    struct gb_jinja_statement *next;
    gb_jinja_statement_kind kind;
    uint32_t line;
    gb_jinja_text text;
    const gb_jinja_expression *target, *value, *condition;
    const struct gb_jinja_statement *body, *elif, *otherwise;
    const gb_jinja_parameter *parameters;
} gb_jinja_statement;

#endif
