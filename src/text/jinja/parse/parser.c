/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/parse/parser.h"

bool gb_jinja_at_operator(const gb_jinja_parser *parser, const char *operator) {
    return parser->token->kind == GB_JINJA_TOKEN_OPERATOR && gb_jinja_text_is(parser->token->text, operator);
}

bool gb_jinja_at_name(const gb_jinja_parser *parser, const char *name) {
    return parser->token->kind == GB_JINJA_TOKEN_NAME && gb_jinja_text_is(parser->token->text, name);
}

/* The END token is never passed, so that there is always a next one. */
static void pass(gb_jinja_parser *parser) {
    if (parser->token->next)
        parser->token = parser->token->next;
    parser->state->line = parser->token->line;
}

bool gb_jinja_skip_operator(gb_jinja_parser *parser, const char *operator) {
    bool found = gb_jinja_at_operator(parser, operator);
    if (found)
        pass(parser);
    return found;
}

bool gb_jinja_skip_name(gb_jinja_parser *parser, const char *name) {
    bool found = gb_jinja_at_name(parser, name);
    if (found)
        pass(parser);
    return found;
}

gumbel_status gb_jinja_unexpected(const gb_jinja_parser *parser, const char *expected) {
    gb_jinja_text found = parser->token->text;
    return gb_jinja_fail(parser->state, GUMBEL_ERROR_FORMAT, "expected %s, found \"%.*s\"", expected,
                         GB_JINJA_SHOWN(found));
}

gumbel_status gb_jinja_expect_operator(gb_jinja_parser *parser, const char *operator) {
    return gb_jinja_skip_operator(parser, operator) ? GUMBEL_OK : gb_jinja_unexpected(parser, operator);
}

gumbel_status gb_jinja_expect_name(gb_jinja_parser *parser, gb_jinja_text *name) {
    if (parser->token->kind != GB_JINJA_TOKEN_NAME)
        return gb_jinja_unexpected(parser, "a name");
    *name = parser->token->text;
    pass(parser);
    return GUMBEL_OK;
}

gumbel_status gb_jinja_nest(gb_jinja_parser *parser) {
    if (parser->nesting >= GB_JINJA_MAX_NESTING)
        return gb_jinja_fail(parser->state, GUMBEL_ERROR_LIMIT,
                             "statements or expressions are nested more than %d deep", GB_JINJA_MAX_NESTING);
    parser->nesting++;
    return GUMBEL_OK;
}

static gumbel_status expect_token(gb_jinja_parser *parser, gb_jinja_token_kind kind, const char *expected) {
    if (parser->token->kind != kind)
        return gb_jinja_unexpected(parser, expected);
    pass(parser);
    return GUMBEL_OK;
}

static gumbel_status new_statement(gb_jinja_parser *parser, gb_jinja_statement_kind kind,
                                   gb_jinja_statement **statement) {
    gumbel_status status;
    *statement = gb_jinja_allocate(parser->state, 1, sizeof **statement, &status);
    if (!*statement)
        return status;
    (*statement)->kind = kind;
    (*statement)->line = parser->token->line;
    return GUMBEL_OK;
}

static gumbel_status parse_statement(gb_jinja_parser *parser, gb_jinja_statement **statement);

/* The names that end a statement list; NULL behind the last. */
typedef const char *const end_names[4];

static bool at_end_name(const gb_jinja_parser *parser, const char *const *ends) {
    for (; ends && *ends; ends++)
        if (gb_jinja_at_name(parser, *ends))
            return true;
    return false;
}

/* One statement, or *ended with the tag's name next when it is one of ends. */
static gumbel_status parse_part(gb_jinja_parser *parser, const char *const *ends,
                                gb_jinja_statement **statement, bool *ended) {
    const gb_jinja_token *token = parser->token;
    *ended = false;
    pass(parser);
    if (token->kind == GB_JINJA_TOKEN_TEXT) {
        GB_TRY(new_statement(parser, GB_JINJA_TEXT, statement));
        (*statement)->text = token->text;
        return GUMBEL_OK;
    }
    if (token->kind == GB_JINJA_TOKEN_PRINT_BEGIN) {
        gb_jinja_expression *value;
        GB_TRY(new_statement(parser, GB_JINJA_PRINT, statement));
        GB_TRY(gb_jinja_parse_tuple(parser, true, &value));
        (*statement)->value = value;
        return expect_token(parser, GB_JINJA_TOKEN_PRINT_END, "}}");
    }
    *ended = at_end_name(parser, ends);
    if (*ended)
        return GUMBEL_OK;
    GB_TRY(parse_statement(parser, statement));
    return expect_token(parser, GB_JINJA_TOKEN_BLOCK_END, "%}");
}

/* Statements up to a tag with one of the names, which is left to be read; without ends, up to the end. */
static gumbel_status parse_statements(gb_jinja_parser *parser, const char *const *ends,
                                      const gb_jinja_statement **first) {
    gb_jinja_statement *head = NULL, **tail = &head;
    bool ended = false;
    while (!ended && parser->token->kind != GB_JINJA_TOKEN_END) {
        GB_TRY(parse_part(parser, ends, tail, &ended));
        if (*tail)
            tail = &(*tail)->next;
    }
    *first = head;
    if (ended || !ends)
        return GUMBEL_OK;
    while (ends[1]) /* the last name ends the statement for good */
        ends++;
    return gb_jinja_unexpected(parser, ends[0]);
}

/* The end of a tag, the statements behind it, and up to the name in the tag that ends them. */
static gumbel_status parse_body(gb_jinja_parser *parser, const char *const *ends,
                                const gb_jinja_statement **body) {
    GB_TRY(expect_token(parser, GB_JINJA_TOKEN_BLOCK_END, "%}"));
    GB_TRY(gb_jinja_nest(parser));
    GB_TRY(parse_statements(parser, ends, body));
    gb_jinja_unnest(parser);
    return GUMBEL_OK;
}

/* A body that only one name ends, which is passed. */
static gumbel_status parse_whole_body(gb_jinja_parser *parser, const char *end,
                                      const gb_jinja_statement **body) {
    end_names ends = {end};
    GB_TRY(parse_body(parser, ends, body));
    pass(parser);
    return GUMBEL_OK;
}

static gumbel_status parse_target_name(gb_jinja_parser *parser, bool namespaces,
                                       gb_jinja_expression **target) {
    GB_TRY(gb_jinja_new_expression(parser, GB_JINJA_NAME, target));
    GB_TRY(gb_jinja_expect_name(parser, &(*target)->name));
    if (!namespaces || !gb_jinja_skip_operator(parser, "."))
        return GUMBEL_OK;
    gb_jinja_expression *space = *target;
    GB_TRY(gb_jinja_new_expression(parser, GB_JINJA_ATTRIBUTE, target));
    (*target)->left = space;
    return gb_jinja_expect_name(parser, &(*target)->name);
}

static gumbel_status parse_targets(gb_jinja_parser *parser, bool namespaces, gb_jinja_expression **target);

static gumbel_status parse_target(gb_jinja_parser *parser, bool namespaces, gb_jinja_expression **target) {
    if (!gb_jinja_skip_operator(parser, "("))
        return parse_target_name(parser, namespaces, target);
    GB_TRY(gb_jinja_nest(parser));
    GB_TRY(parse_targets(parser, namespaces, target));
    gb_jinja_unnest(parser);
    return gb_jinja_expect_operator(parser, ")");
}

/* What set and for assign to: a name, a namespace's attribute, or several of them with commas. */
static gumbel_status parse_targets(gb_jinja_parser *parser, bool namespaces, gb_jinja_expression **target) {
    gb_jinja_expression *first;
    GB_TRY(parse_target(parser, namespaces, &first));
    *target = first;
    if (!gb_jinja_at_operator(parser, ","))
        return GUMBEL_OK;
    GB_TRY(gb_jinja_new_expression(parser, GB_JINJA_MAKE_TUPLE, target));
    (*target)->items = first;
    gb_jinja_expression **tail = &first->next;
    while (gb_jinja_skip_operator(parser, ",") && !gb_jinja_at_name(parser, "in") &&
           !gb_jinja_at_operator(parser, ")") && !gb_jinja_at_operator(parser, "=")) {
        GB_TRY(parse_target(parser, namespaces, tail));
        tail = &(*tail)->next;
    }
    return GUMBEL_OK;
}

static gumbel_status parse_if(gb_jinja_parser *parser, gb_jinja_statement **statement) {
    static end_names ends = {"elif", "else", "endif"};
    gb_jinja_statement *branch;
    GB_TRY(new_statement(parser, GB_JINJA_IF, &branch));
    *statement = branch;
    for (;;) {
        gb_jinja_expression *condition;
        GB_TRY(gb_jinja_parse_tuple(parser, false, &condition));
        branch->value = condition;
        GB_TRY(parse_body(parser, ends, &branch->body));
        if (gb_jinja_skip_name(parser, "else"))
            return parse_whole_body(parser, "endif", &branch->otherwise);
        if (gb_jinja_skip_name(parser, "endif"))
            return GUMBEL_OK;
        pass(parser);
        gb_jinja_statement *elif;
        GB_TRY(new_statement(parser, GB_JINJA_IF, &elif));
        branch->elif = elif;
        branch = elif;
    }
}

static gumbel_status parse_for(gb_jinja_parser *parser, gb_jinja_statement **statement) {
    static end_names ends = {"else", "endfor"};
    gb_jinja_expression *target, *items, *condition = NULL;
    GB_TRY(new_statement(parser, GB_JINJA_FOR, statement));
    GB_TRY(parse_targets(parser, false, &target));
    if (!gb_jinja_skip_name(parser, "in"))
        return gb_jinja_unexpected(parser, "in");
    GB_TRY(gb_jinja_parse_tuple(parser, false, &items));
    if (gb_jinja_skip_name(parser, "if"))
        GB_TRY(gb_jinja_parse_expression(parser, true, &condition));
    if (gb_jinja_at_name(parser, "recursive"))
        return gb_jinja_fail(parser->state, GUMBEL_ERROR_UNSUPPORTED, "recursive loops are not known here");
    (*statement)->target = target;
    (*statement)->value = items;
    (*statement)->condition = condition;
    bool in_loop = parser->in_loop;
    parser->in_loop = true;
    GB_TRY(parse_body(parser, ends, &(*statement)->body));
    parser->in_loop = in_loop;
    if (gb_jinja_skip_name(parser, "else"))
        return parse_whole_body(parser, "endfor", &(*statement)->otherwise);
    pass(parser);
    return GUMBEL_OK;
}

/* The name that filters of a block start from. */
static gumbel_status new_block_value(gb_jinja_parser *parser, gb_jinja_expression **value) {
    GB_TRY(gb_jinja_new_expression(parser, GB_JINJA_NAME, value));
    (*value)->name = gb_jinja_text_of(GB_JINJA_BODY);
    return GUMBEL_OK;
}

static gumbel_status parse_set(gb_jinja_parser *parser, gb_jinja_statement **statement) {
    gb_jinja_expression *target, *value;
    GB_TRY(new_statement(parser, GB_JINJA_SET, statement));
    GB_TRY(parse_targets(parser, true, &target));
    (*statement)->target = target;
    if (gb_jinja_skip_operator(parser, "=")) {
        GB_TRY(gb_jinja_parse_tuple(parser, true, &value));
        (*statement)->value = value;
        return GUMBEL_OK;
    }
    (*statement)->kind = GB_JINJA_SET_BLOCK;
    GB_TRY(new_block_value(parser, &value));
    while (gb_jinja_skip_operator(parser, "|"))
        GB_TRY(gb_jinja_parse_filter(parser, value, &value));
    (*statement)->value = value;
    return parse_whole_body(parser, "endset", &(*statement)->body);
}

static gumbel_status parse_filter_block(gb_jinja_parser *parser, gb_jinja_statement **statement) {
    gb_jinja_expression *value;
    GB_TRY(new_statement(parser, GB_JINJA_FILTER_BLOCK, statement));
    GB_TRY(new_block_value(parser, &value));
    do
        GB_TRY(gb_jinja_parse_filter(parser, value, &value));
    while (gb_jinja_skip_operator(parser, "|"));
    (*statement)->value = value;
    return parse_whole_body(parser, "endfilter", &(*statement)->body);
}

static gumbel_status parse_parameter(gb_jinja_parser *parser, gb_jinja_parameter **parameter) {
    gumbel_status status;
    *parameter = gb_jinja_allocate(parser->state, 1, sizeof **parameter, &status);
    if (!*parameter)
        return status;
    GB_TRY(gb_jinja_expect_name(parser, &(*parameter)->name));
    if (gb_jinja_skip_operator(parser, "=")) {
        gb_jinja_expression *value;
        GB_TRY(gb_jinja_parse_expression(parser, true, &value));
        (*parameter)->otherwise = value;
    }
    return GUMBEL_OK;
}

static gumbel_status parse_macro(gb_jinja_parser *parser, gb_jinja_statement **statement) {
    GB_TRY(new_statement(parser, GB_JINJA_DEFINE, statement));
    GB_TRY(gb_jinja_expect_name(parser, &(*statement)->text));
    GB_TRY(gb_jinja_expect_operator(parser, "("));
    gb_jinja_parameter *first = NULL, **tail = &first;
    while (!gb_jinja_skip_operator(parser, ")")) {
        if (first)
            GB_TRY(gb_jinja_expect_operator(parser, ","));
        GB_TRY(parse_parameter(parser, tail));
        tail = &(*tail)->next;
    }
    (*statement)->parameters = first;
    bool in_loop = parser->in_loop;
    parser->in_loop = false;
    GB_TRY(parse_whole_body(parser, "endmacro", &(*statement)->body));
    parser->in_loop = in_loop;
    return GUMBEL_OK;
}

static gumbel_status parse_generation(gb_jinja_parser *parser, gb_jinja_statement **statement) {
    GB_TRY(new_statement(parser, GB_JINJA_SCOPE, statement));
    return parse_whole_body(parser, "endgeneration", &(*statement)->body);
}

static gumbel_status parse_loop_control(gb_jinja_parser *parser, gb_jinja_statement_kind kind,
                                        gb_jinja_statement **statement) {
    if (!parser->in_loop)
        return gb_jinja_fail(parser->state, GUMBEL_ERROR_FORMAT, "break or continue outside of a loop");
    return new_statement(parser, kind, statement);
}

static gumbel_status parse_break(gb_jinja_parser *parser, gb_jinja_statement **statement) {
    return parse_loop_control(parser, GB_JINJA_LEAVE_LOOP, statement);
}

static gumbel_status parse_continue(gb_jinja_parser *parser, gb_jinja_statement **statement) {
    return parse_loop_control(parser, GB_JINJA_NEXT_ITEM, statement);
}

static gumbel_status parse_statement(gb_jinja_parser *parser, gb_jinja_statement **statement) {
    static const struct {
        const char *name;
        gumbel_status (*parse)(gb_jinja_parser *, gb_jinja_statement **);
    } statements[] = {
        {"if", parse_if},
        {"for", parse_for},
        {"set", parse_set},
        {"macro", parse_macro},
        {"break", parse_break},
        {"continue", parse_continue},
        {"filter", parse_filter_block},
        {"generation", parse_generation},
    };
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (gb_jinja_skip_name(parser, statements[i].name))
            return statements[i].parse(parser, statement);
    gb_jinja_text name = parser->token->text;
    if (parser->token->kind != GB_JINJA_TOKEN_NAME)
        return gb_jinja_unexpected(parser, "a statement");
    bool end = gb_jinja_text_starts_with(name, gb_jinja_text_of("end")) || gb_jinja_text_is(name, "else") ||
               gb_jinja_text_is(name, "elif");
    return gb_jinja_fail(parser->state, end ? GUMBEL_ERROR_FORMAT : GUMBEL_ERROR_UNSUPPORTED,
                         end ? "\"%.*s\" ends no open statement" : "the statement \"%.*s\" is not known here",
                         GB_JINJA_SHOWN(name));
}

gumbel_status gb_jinja_parse(gb_jinja_state *state, const gb_jinja_token *tokens,
                             const gb_jinja_statement **statements) {
    gb_jinja_parser parser = {.state = state, .token = tokens};
    state->line = tokens->line;
    return parse_statements(&parser, NULL, statements);
}
