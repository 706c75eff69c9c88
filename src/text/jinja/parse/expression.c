/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/parse/parser.h"

gumbel_status gb_jinja_new_expression(gb_jinja_parser *parser, gb_jinja_expression_kind kind,
                                      gb_jinja_expression **expression) {
    gumbel_status status;
    *expression = gb_jinja_allocate(parser->state, 1, sizeof **expression, &status);
    if (!*expression)
        return status;
    (*expression)->kind = kind;
    (*expression)->line = parser->token->line;
    return GUMBEL_OK;
}

/* A node over *expression, which it replaces. */
static gumbel_status wrap(gb_jinja_parser *parser, gb_jinja_expression_kind kind,
                          gb_jinja_expression **expression, const gb_jinja_expression *right) {
    gb_jinja_expression *left = *expression;
    GB_TRY(gb_jinja_new_expression(parser, kind, expression));
    (*expression)->left = left;
    (*expression)->right = right;
    return GUMBEL_OK;
}

static bool skip_token(gb_jinja_parser *parser, gb_jinja_token_kind kind) {
    if (parser->token->kind != kind)
        return false;
    parser->token = parser->token->next;
    parser->state->line = parser->token->line;
    return true;
}

/* Expressions with commas up to the closing bracket, which is passed. With pairs, "key: value". */
static gumbel_status parse_items(gb_jinja_parser *parser, const char *closing, bool pairs,
                                 gb_jinja_expression **first) {
    gb_jinja_expression **tail = first;
    while (!gb_jinja_skip_operator(parser, closing)) {
        if (*first)
            GB_TRY(gb_jinja_expect_operator(parser, ","));
        if (gb_jinja_skip_operator(parser, closing))
            break;
        GB_TRY(gb_jinja_parse_expression(parser, true, tail));
        tail = &(*tail)->next;
        if (!pairs)
            continue;
        GB_TRY(gb_jinja_expect_operator(parser, ":"));
        GB_TRY(gb_jinja_parse_expression(parser, true, tail));
        tail = &(*tail)->next;
    }
    return GUMBEL_OK;
}

static bool at_tuple_end(const gb_jinja_parser *parser) {
    return parser->token->kind == GB_JINJA_TOKEN_PRINT_END ||
           parser->token->kind == GB_JINJA_TOKEN_BLOCK_END || gb_jinja_at_operator(parser, ")");
}

gumbel_status gb_jinja_parse_tuple(gb_jinja_parser *parser, bool conditional,
                                   gb_jinja_expression **expression) {
    gb_jinja_expression *first;
    GB_TRY(gb_jinja_parse_expression(parser, conditional, &first));
    *expression = first;
    if (!gb_jinja_at_operator(parser, ","))
        return GUMBEL_OK;
    GB_TRY(gb_jinja_new_expression(parser, GB_JINJA_MAKE_TUPLE, expression));
    (*expression)->items = first;
    gb_jinja_expression **tail = &first->next;
    while (gb_jinja_skip_operator(parser, ",") && !at_tuple_end(parser)) {
        GB_TRY(gb_jinja_parse_expression(parser, conditional, tail));
        tail = &(*tail)->next;
    }
    return GUMBEL_OK;
}

/* What stands behind "(": a tuple, or an expression in brackets. */
static gumbel_status parse_parenthesis(gb_jinja_parser *parser, gb_jinja_expression **expression) {
    if (gb_jinja_skip_operator(parser, ")"))
        return gb_jinja_new_expression(parser, GB_JINJA_MAKE_TUPLE, expression);
    GB_TRY(gb_jinja_parse_tuple(parser, true, expression));
    return gb_jinja_expect_operator(parser, ")");
}

static gumbel_status parse_name(gb_jinja_parser *parser, gb_jinja_expression **expression) {
    static const struct {
        const char *name;
        gb_jinja_value value;
    } constants[] = {
        {"true", {.kind = GB_JINJA_BOOLEAN, .as.boolean = true}},
        {"True", {.kind = GB_JINJA_BOOLEAN, .as.boolean = true}},
        {"false", {.kind = GB_JINJA_BOOLEAN}},
        {"False", {.kind = GB_JINJA_BOOLEAN}},
        {"none", {.kind = GB_JINJA_NONE}},
        {"None", {.kind = GB_JINJA_NONE}},
    };
    GB_TRY(gb_jinja_new_expression(parser, GB_JINJA_NAME, expression));
    GB_TRY(gb_jinja_expect_name(parser, &(*expression)->name));
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (gb_jinja_text_is((*expression)->name, constants[i].name)) {
            (*expression)->kind = GB_JINJA_CONSTANT;
            (*expression)->constant = constants[i].value;
        }
    return GUMBEL_OK;
}

/* Strings beside each other are one. */
static gumbel_status parse_string(gb_jinja_parser *parser, gb_jinja_expression **expression) {
    GB_TRY(gb_jinja_new_expression(parser, GB_JINJA_CONSTANT, expression));
    gb_jinja_text text = parser->token->text;
    gb_jinja_buffer buffer = {0};
    if (parser->token->next->kind == GB_JINJA_TOKEN_STRING) {
        for (; parser->token->kind == GB_JINJA_TOKEN_STRING; skip_token(parser, GB_JINJA_TOKEN_STRING))
            GB_TRY(gb_jinja_append(parser->state, &buffer, parser->token->text));
        text = gb_jinja_buffer_text(&buffer);
    } else {
        skip_token(parser, GB_JINJA_TOKEN_STRING);
    }
    (*expression)->constant = gb_jinja_string(text);
    return GUMBEL_OK;
}

static gumbel_status parse_primary(gb_jinja_parser *parser, gb_jinja_expression **expression) {
    const gb_jinja_token *token = parser->token;
    if (token->kind == GB_JINJA_TOKEN_NAME)
        return parse_name(parser, expression);
    if (token->kind == GB_JINJA_TOKEN_STRING)
        return parse_string(parser, expression);
    if (gb_jinja_skip_operator(parser, "("))
        return parse_parenthesis(parser, expression);
    bool list = gb_jinja_at_operator(parser, "[");
    if (list || gb_jinja_at_operator(parser, "{")) {
        GB_TRY(gb_jinja_new_expression(parser, list ? GB_JINJA_MAKE_LIST : GB_JINJA_MAKE_DICT, expression));
        gb_jinja_skip_operator(parser, list ? "[" : "{");
        return parse_items(parser, list ? "]" : "}", !list, &(*expression)->items);
    }
    GB_TRY(gb_jinja_new_expression(parser, GB_JINJA_CONSTANT, expression));
    if (skip_token(parser, GB_JINJA_TOKEN_INTEGER))
        (*expression)->constant = gb_jinja_integer(token->integer);
    else if (skip_token(parser, GB_JINJA_TOKEN_FLOAT))
        (*expression)->constant = gb_jinja_float(token->real);
    else
        return gb_jinja_unexpected(parser, "an expression");
    return GUMBEL_OK;
}

static gumbel_status parse_argument(gb_jinja_parser *parser, bool keywords_only,
                                    gb_jinja_argument **argument) {
    gumbel_status status;
    *argument = gb_jinja_allocate(parser->state, 1, sizeof **argument, &status);
    if (!*argument)
        return status;
    if (gb_jinja_at_operator(parser, "*") || gb_jinja_at_operator(parser, "**"))
        return gb_jinja_fail(parser->state, GUMBEL_ERROR_UNSUPPORTED,
                             "arguments with * or ** are not known here");
    const gb_jinja_token *token = parser->token, *behind = token->next;
    if (token->kind == GB_JINJA_TOKEN_NAME && behind->kind == GB_JINJA_TOKEN_OPERATOR &&
        gb_jinja_text_is(behind->text, "=")) {
        GB_TRY(gb_jinja_expect_name(parser, &(*argument)->keyword));
        GB_TRY(gb_jinja_expect_operator(parser, "="));
    } else if (keywords_only) {
        return gb_jinja_unexpected(parser, "a keyword argument");
    }
    gb_jinja_expression *value;
    GB_TRY(gb_jinja_parse_expression(parser, true, &value));
    (*argument)->value = value;
    return GUMBEL_OK;
}

/* What stands behind "(" in a call. */
static gumbel_status parse_arguments(gb_jinja_parser *parser, const gb_jinja_argument **arguments) {
    gb_jinja_argument *first = NULL, **tail = &first;
    bool keywords = false;
    while (!gb_jinja_skip_operator(parser, ")")) {
        if (first)
            GB_TRY(gb_jinja_expect_operator(parser, ","));
        if (first && gb_jinja_skip_operator(parser, ")"))
            break;
        GB_TRY(parse_argument(parser, keywords, tail));
        keywords = (*tail)->keyword.length > 0;
        tail = &(*tail)->next;
    }
    *arguments = first;
    return GUMBEL_OK;
}

/* An end of a slice: NULL where nothing is written. */
static gumbel_status parse_bound(gb_jinja_parser *parser, const gb_jinja_expression **bound) {
    gb_jinja_expression *value = NULL;
    if (!gb_jinja_at_operator(parser, ":") && !gb_jinja_at_operator(parser, "]"))
        GB_TRY(gb_jinja_parse_expression(parser, true, &value));
    *bound = value;
    return GUMBEL_OK;
}

/* What stands behind "[". */
static gumbel_status parse_subscript(gb_jinja_parser *parser, gb_jinja_expression **expression) {
    GB_TRY(wrap(parser, GB_JINJA_ITEM, expression, NULL));
    if (gb_jinja_at_operator(parser, "]"))
        return gb_jinja_unexpected(parser, "an index");
    GB_TRY(parse_bound(parser, &(*expression)->right));
    if (gb_jinja_skip_operator(parser, ":")) {
        (*expression)->kind = GB_JINJA_SLICE;
        GB_TRY(parse_bound(parser, &(*expression)->third));
        if (gb_jinja_skip_operator(parser, ":"))
            GB_TRY(parse_bound(parser, &(*expression)->fourth));
    }
    return gb_jinja_expect_operator(parser, "]");
}

/* What stands behind ".": a name, or an index as in "pair.0". */
static gumbel_status parse_attribute(gb_jinja_parser *parser, gb_jinja_expression **expression) {
    const gb_jinja_token *token = parser->token;
    if (token->kind == GB_JINJA_TOKEN_INTEGER) {
        gb_jinja_expression *index;
        GB_TRY(parse_primary(parser, &index));
        return wrap(parser, GB_JINJA_ITEM, expression, index);
    }
    GB_TRY(wrap(parser, GB_JINJA_ATTRIBUTE, expression, NULL));
    return gb_jinja_expect_name(parser, &(*expression)->name);
}

static gumbel_status parse_call(gb_jinja_parser *parser, gb_jinja_expression **expression) {
    GB_TRY(wrap(parser, GB_JINJA_CALL, expression, NULL));
    return parse_arguments(parser, &(*expression)->arguments);
}

static gumbel_status parse_postfix(gb_jinja_parser *parser, gb_jinja_expression **expression) {
    for (;;) {
        if (gb_jinja_skip_operator(parser, "."))
            GB_TRY(parse_attribute(parser, expression));
        else if (gb_jinja_skip_operator(parser, "["))
            GB_TRY(parse_subscript(parser, expression));
        else if (gb_jinja_skip_operator(parser, "("))
            GB_TRY(parse_call(parser, expression));
        else
            return GUMBEL_OK;
    }
}

gumbel_status gb_jinja_parse_filter(gb_jinja_parser *parser, gb_jinja_expression *left,
                                    gb_jinja_expression **expression) {
    *expression = left;
    GB_TRY(wrap(parser, GB_JINJA_FILTER, expression, NULL));
    GB_TRY(gb_jinja_expect_name(parser, &(*expression)->name));
    if (gb_jinja_skip_operator(parser, "("))
        GB_TRY(parse_arguments(parser, &(*expression)->arguments));
    return GUMBEL_OK;
}

/* A test may have one argument without brackets, as in "x is divisibleby 3". */
static bool at_bare_argument(const gb_jinja_parser *parser) {
    switch (parser->token->kind) {
    case GB_JINJA_TOKEN_NAME:
        return !gb_jinja_at_name(parser, "else") && !gb_jinja_at_name(parser, "or") &&
               !gb_jinja_at_name(parser, "and");
    case GB_JINJA_TOKEN_STRING:
    case GB_JINJA_TOKEN_INTEGER:
    case GB_JINJA_TOKEN_FLOAT:
        return true;
    default:
        return gb_jinja_at_operator(parser, "[") || gb_jinja_at_operator(parser, "{");
    }
}

static gumbel_status parse_bare_argument(gb_jinja_parser *parser, const gb_jinja_argument **arguments) {
    if (gb_jinja_at_name(parser, "is"))
        return gb_jinja_fail(parser->state, GUMBEL_ERROR_FORMAT, "tests cannot be chained with \"is\"");
    gumbel_status status;
    gb_jinja_argument *argument = gb_jinja_allocate(parser->state, 1, sizeof *argument, &status);
    if (!argument)
        return status;
    gb_jinja_expression *value;
    GB_TRY(parse_primary(parser, &value));
    GB_TRY(parse_postfix(parser, &value));
    argument->value = value;
    *arguments = argument;
    return GUMBEL_OK;
}

/* What stands behind "is". */
static gumbel_status parse_test(gb_jinja_parser *parser, gb_jinja_expression **expression) {
    bool negated = gb_jinja_skip_name(parser, "not");
    GB_TRY(wrap(parser, GB_JINJA_TEST, expression, NULL));
    GB_TRY(gb_jinja_expect_name(parser, &(*expression)->name));
    if (gb_jinja_skip_operator(parser, "("))
        GB_TRY(parse_arguments(parser, &(*expression)->arguments));
    else if (at_bare_argument(parser))
        GB_TRY(parse_bare_argument(parser, &(*expression)->arguments));
    return negated ? wrap(parser, GB_JINJA_NOT, expression, NULL) : GUMBEL_OK;
}

static gumbel_status parse_filters_and_tests(gb_jinja_parser *parser, gb_jinja_expression **expression) {
    for (;;) {
        if (gb_jinja_skip_operator(parser, "|"))
            GB_TRY(gb_jinja_parse_filter(parser, *expression, expression));
        else if (gb_jinja_skip_name(parser, "is"))
            GB_TRY(parse_test(parser, expression));
        else if (gb_jinja_skip_operator(parser, "("))
            GB_TRY(parse_call(parser, expression));
        else
            return GUMBEL_OK;
    }
}

/* Filters apply to the whole of "-x", so its operand is read without them. */
static gumbel_status parse_unary(gb_jinja_parser *parser, bool filters, gb_jinja_expression **expression) {
    GB_TRY(gb_jinja_nest(parser));
    bool minus = gb_jinja_skip_operator(parser, "-");
    if (minus || gb_jinja_skip_operator(parser, "+")) {
        GB_TRY(parse_unary(parser, false, expression));
        GB_TRY(wrap(parser, minus ? GB_JINJA_NEGATE : GB_JINJA_PLUS, expression, NULL));
    } else {
        GB_TRY(parse_primary(parser, expression));
    }
    GB_TRY(parse_postfix(parser, expression));
    if (filters)
        GB_TRY(parse_filters_and_tests(parser, expression));
    gb_jinja_unnest(parser);
    return GUMBEL_OK;
}

/* The levels of arithmetic, the tightest last; each associates to the left, powers too. */
typedef struct level {
    struct {
        const char *text;
        gb_jinja_operator operation;
    } operators[4];
} level;

static const level levels[] = {
    {{{"+", GB_JINJA_ADD}, {"-", GB_JINJA_SUBTRACT}}},
    {{{"~", GB_JINJA_CONCATENATE}}},
    {{{"*", GB_JINJA_MULTIPLY},
      {"/", GB_JINJA_DIVIDE},
      {"//", GB_JINJA_FLOOR_DIVIDE},
      {"%", GB_JINJA_MODULO}}},
    {{{"**", GB_JINJA_POWER}}},
};
static const size_t level_count = sizeof levels / sizeof *levels;

static bool skip_operator_of(gb_jinja_parser *parser, const level *at, gb_jinja_operator *operation) {
    for (size_t i = 0; i < 4 && at->operators[i].text; i++)
        if (gb_jinja_skip_operator(parser, at->operators[i].text)) {
            *operation = at->operators[i].operation;
            return true;
        }
    return false;
}

static gumbel_status parse_arithmetic(gb_jinja_parser *parser, size_t depth,
                                      gb_jinja_expression **expression) {
    if (depth == level_count)
        return parse_unary(parser, true, expression);
    GB_TRY(parse_arithmetic(parser, depth + 1, expression));
    gb_jinja_operator operation;
    while (skip_operator_of(parser, &levels[depth], &operation)) {
        gb_jinja_expression *right;
        GB_TRY(parse_arithmetic(parser, depth + 1, &right));
        GB_TRY(wrap(parser, GB_JINJA_ARITHMETIC, expression, right));
        (*expression)->operation = operation;
    }
    return GUMBEL_OK;
}

static bool skip_comparison(gb_jinja_parser *parser, gb_jinja_operator *operation) {
    static const level equalities = {{{"==", GB_JINJA_EQUAL},
                                      {"!=", GB_JINJA_NOT_EQUAL},
                                      {"<", GB_JINJA_LESS},
                                      {"<=", GB_JINJA_LESS_EQUAL}}};
    static const level orders = {{{">", GB_JINJA_GREATER}, {">=", GB_JINJA_GREATER_EQUAL}}};
    if (skip_operator_of(parser, &equalities, operation) || skip_operator_of(parser, &orders, operation))
        return true;
    const gb_jinja_token *behind = parser->token->next;
    bool negated = gb_jinja_at_name(parser, "not") && behind->kind == GB_JINJA_TOKEN_NAME &&
                   gb_jinja_text_is(behind->text, "in");
    if (negated)
        gb_jinja_skip_name(parser, "not");
    *operation = negated ? GB_JINJA_NOT_IN : GB_JINJA_IN;
    return gb_jinja_skip_name(parser, "in");
}

static gumbel_status parse_comparison(gb_jinja_parser *parser, gb_jinja_expression **expression) {
    GB_TRY(parse_arithmetic(parser, 0, expression));
    gb_jinja_operator operation;
    gb_jinja_expression **tail = NULL;
    while (skip_comparison(parser, &operation)) {
        gb_jinja_expression *right;
        GB_TRY(parse_arithmetic(parser, 0, &right));
        if (!tail) {
            GB_TRY(wrap(parser, GB_JINJA_COMPARISON, expression, right));
            (*expression)->operation = operation;
            tail = &(*expression)->items;
            continue;
        }
        GB_TRY(gb_jinja_new_expression(parser, GB_JINJA_COMPARISON, tail));
        (*tail)->operation = operation;
        (*tail)->right = right;
        tail = &(*tail)->next;
    }
    return GUMBEL_OK;
}

static gumbel_status parse_not(gb_jinja_parser *parser, gb_jinja_expression **expression) {
    if (!gb_jinja_skip_name(parser, "not"))
        return parse_comparison(parser, expression);
    GB_TRY(gb_jinja_nest(parser));
    GB_TRY(parse_not(parser, expression));
    gb_jinja_unnest(parser);
    return wrap(parser, GB_JINJA_NOT, expression, NULL);
}

/* and, which binds tighter, or or. */
static gumbel_status parse_logic(gb_jinja_parser *parser, bool is_or, gb_jinja_expression **expression) {
    GB_TRY(is_or ? parse_logic(parser, false, expression) : parse_not(parser, expression));
    while (gb_jinja_skip_name(parser, is_or ? "or" : "and")) {
        gb_jinja_expression *right;
        GB_TRY(is_or ? parse_logic(parser, false, &right) : parse_not(parser, &right));
        GB_TRY(wrap(parser, is_or ? GB_JINJA_OR : GB_JINJA_AND, expression, right));
    }
    return GUMBEL_OK;
}

gumbel_status gb_jinja_parse_expression(gb_jinja_parser *parser, bool conditional,
                                        gb_jinja_expression **expression) {
    GB_TRY(gb_jinja_nest(parser));
    GB_TRY(parse_logic(parser, true, expression));
    while (conditional && gb_jinja_skip_name(parser, "if")) {
        gb_jinja_expression *condition, *otherwise = NULL;
        GB_TRY(parse_logic(parser, true, &condition));
        if (gb_jinja_skip_name(parser, "else"))
            GB_TRY(gb_jinja_parse_expression(parser, true, &otherwise));
        GB_TRY(wrap(parser, GB_JINJA_CONDITIONAL, expression, condition));
        (*expression)->third = otherwise;
    }
    gb_jinja_unnest(parser);
    return GUMBEL_OK;
}
