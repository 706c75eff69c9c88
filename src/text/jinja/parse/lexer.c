/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/parse/lexer.h"

#include "text/jinja/value/number.h"

#include <string.h>

typedef struct lexer {
    gb_jinja_state *state;
    gb_jinja_text source;
    size_t at;
    gb_jinja_token **tail;
    char open[GB_JINJA_MAX_NESTING]; /* the closing brackets still to come in this tag */
    size_t open_count;
} lexer;

static gumbel_status add_token(lexer *l, gb_jinja_token_kind kind, gb_jinja_text text,
                               gb_jinja_token **added) {
    gumbel_status status;
    gb_jinja_token *token = gb_jinja_allocate(l->state, 1, sizeof *token, &status);
    if (!token)
        return status;
    token->kind = kind;
    token->line = l->state->line;
    token->text = text;
    *l->tail = token;
    l->tail = &token->next;
    if (added)
        *added = token;
    return GUMBEL_OK;
}

static bool starts(const lexer *l, const char *string) {
    gb_jinja_text rest = gb_jinja_text_part(l->source, l->at, l->source.length - l->at);
    return gb_jinja_text_starts_with(rest, gb_jinja_text_of(string));
}

/* Moves on, counting lines. */
static void advance(lexer *l, size_t length) {
    for (size_t end = l->at + length; l->at < end; l->at++)
        l->state->line += l->source.bytes[l->at] == '\n';
}

static void skip_space(lexer *l) {
    size_t size;
    while (l->at < l->source.length && gb_jinja_is_space(gb_jinja_text_code_point(l->source, l->at, &size)))
        advance(l, size);
}

/* Passes the end of a tag ("%}", "}}" or "#}"), if it stands here, with its mark and the white space it
 * takes: a block's or comment's also takes the line end behind it (trim_blocks) unless marked +. */
static bool skip_end(lexer *l, const char *end, bool block_or_comment) {
    char marked[4] = {'-', end[0], end[1], 0};
    if (starts(l, marked)) {
        advance(l, 3);
        skip_space(l);
        return true;
    }
    marked[0] = '+';
    if (block_or_comment && starts(l, marked)) {
        advance(l, 3);
        return true;
    }
    if (!starts(l, end))
        return false;
    advance(l, 2);
    if (block_or_comment && starts(l, "\n"))
        advance(l, 1);
    return true;
}

static size_t find_tag(const lexer *l) {
    for (size_t i = l->at; i + 1 < l->source.length; i++)
        if (l->source.bytes[i] == '{' && strchr("{%#", l->source.bytes[i + 1]) && l->source.bytes[i + 1])
            return i;
    return l->source.length;
}

/* lstrip_blocks: the text of a line before a block goes if it is only white space. */
static gb_jinja_text strip_indent(const lexer *l, gb_jinja_text text) {
    size_t start = text.length;
    while (start > 0 && text.bytes[start - 1] != '\n')
        start--;
    bool line_start = start > 0 || l->at == 0 || l->source.bytes[l->at - 1] == '\n';
    gb_jinja_text indent = gb_jinja_text_part(text, start, text.length - start);
    if (line_start && gb_jinja_text_strip(indent, NULL, true, false).length == 0)
        return gb_jinja_text_part(text, 0, start);
    return text;
}

/* Reads text up to the next tag and that tag's opening; *opening is its second character, 0 at the end. */
static gumbel_status read_text(lexer *l, char *opening) {
    size_t tag = find_tag(l);
    gb_jinja_text text = gb_jinja_text_part(l->source, l->at, tag - l->at);
    *opening = tag < l->source.length ? l->source.bytes[tag + 1] : 0;
    char mark = tag + 2 < l->source.length ? l->source.bytes[tag + 2] : 0;
    if (*opening && mark == '-')
        text = gb_jinja_text_strip(text, NULL, false, true);
    else if (*opening && *opening != '{' && mark != '+')
        text = strip_indent(l, text);
    if (text.length)
        GB_TRY(add_token(l, GB_JINJA_TOKEN_TEXT, text, NULL));
    advance(l, tag - l->at);
    if (*opening)
        advance(l, mark == '-' || mark == '+' ? 3 : 2);
    return GUMBEL_OK;
}

static gumbel_status skip_comment(lexer *l) {
    for (; l->at < l->source.length; advance(l, 1))
        if (skip_end(l, "#}", true))
            return GUMBEL_OK;
    return gb_jinja_fail(l->state, GUMBEL_ERROR_FORMAT, "a comment has no end");
}

static gumbel_status read_string(lexer *l) {
    char quote = l->source.bytes[l->at];
    size_t end = l->at + 1;
    while (end < l->source.length && l->source.bytes[end] != quote)
        end += l->source.bytes[end] == '\\' ? 2 : 1;
    if (end >= l->source.length)
        return gb_jinja_fail(l->state, GUMBEL_ERROR_FORMAT, "a string has no end");
    gb_jinja_text literal = gb_jinja_text_part(l->source, l->at + 1, end - l->at - 1);
    GB_TRY(gb_jinja_unescape(l->state, literal, &literal));
    GB_TRY(add_token(l, GB_JINJA_TOKEN_STRING, literal, NULL));
    advance(l, end + 1 - l->at);
    return GUMBEL_OK;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_word(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static char byte_at(const lexer *l, size_t at) {
    return at < l->source.length ? l->source.bytes[at] : 0;
}

static size_t word_end(const lexer *l, size_t at) {
    while (is_word(byte_at(l, at)))
        at++;
    return at;
}

static size_t digits_end(const lexer *l, size_t at) {
    while (is_digit(byte_at(l, at)) || (byte_at(l, at) == '_' && is_digit(byte_at(l, at + 1))))
        at++;
    return at;
}

/* Where the number ends, and whether it has a fraction or an exponent. "a.1.2" has indices, no float. */
static size_t number_end(const lexer *l, bool *real) {
    size_t end = digits_end(l, l->at);
    *real = false;
    if (l->at > 0 && byte_at(l, l->at - 1) == '.')
        return end;
    if (end == l->at + 1 && byte_at(l, l->at) == '0' && strchr("xXoObB", byte_at(l, end)) && byte_at(l, end))
        return word_end(l, end);
    if (byte_at(l, end) == '.' && is_digit(byte_at(l, end + 1))) {
        end = digits_end(l, end + 1);
        *real = true;
    }
    size_t sign = byte_at(l, end + 1) == '-' || byte_at(l, end + 1) == '+' ? 1 : 0;
    if ((byte_at(l, end) | 0x20) == 'e' && is_digit(byte_at(l, end + 1 + sign))) {
        end = digits_end(l, end + 1 + sign);
        *real = true;
    }
    return end;
}

static gumbel_status read_number(lexer *l) {
    bool real;
    size_t end = number_end(l, &real);
    gb_jinja_text text = gb_jinja_text_part(l->source, l->at, end - l->at);
    gb_jinja_token *token = NULL;
    GB_TRY(add_token(l, real ? GB_JINJA_TOKEN_FLOAT : GB_JINJA_TOKEN_INTEGER, text, &token));
    if (real ? !gb_jinja_parse_float(text, &token->real) : !gb_jinja_parse_integer(text, 0, &token->integer))
        return gb_jinja_fail(l->state, GUMBEL_ERROR_UNSUPPORTED, "the number %.*s is not one of 64 bits",
                             GB_JINJA_SHOWN(text));
    advance(l, end - l->at);
    return GUMBEL_OK;
}

static gumbel_status balance(lexer *l, char bracket) {
    static const char opening[] = "([{", closing[] = ")]}";
    const char *opens = strchr(opening, bracket);
    if (opens) {
        if (l->open_count == sizeof l->open)
            return gb_jinja_fail(l->state, GUMBEL_ERROR_LIMIT, "brackets are nested more than %d deep",
                                 GB_JINJA_MAX_NESTING);
        l->open[l->open_count++] = closing[opens - opening];
    } else if (strchr(closing, bracket)) {
        if (l->open_count == 0 || l->open[--l->open_count] != bracket)
            return gb_jinja_fail(l->state, GUMBEL_ERROR_FORMAT, "unexpected '%c'", bracket);
    }
    return GUMBEL_OK;
}

static gumbel_status read_operator(lexer *l) {
    static const char *const operators[] = {"//", "**", "==", "!=", "<=", ">=", "+", "-", "*",
                                            "/",  "%",  "~",  "<",  ">",  "=",  "(", ")", "[",
                                            "]",  "{",  "}",  ".",  ",",  ":",  "|"};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (!starts(l, operators[i]))
            continue;
        gb_jinja_text text = gb_jinja_text_of(operators[i]);
        if (text.length == 1)
            GB_TRY(balance(l, text.bytes[0]));
        GB_TRY(add_token(l, GB_JINJA_TOKEN_OPERATOR, text, NULL));
        advance(l, text.length);
        return GUMBEL_OK;
    }
    size_t size;
    gb_jinja_text_code_point(l->source, l->at, &size);
    gb_jinja_text found = gb_jinja_text_part(l->source, l->at, size);
    return gb_jinja_fail(l->state, GUMBEL_ERROR_FORMAT, "unexpected character '%.*s'", GB_JINJA_SHOWN(found));
}

static gumbel_status read_name(lexer *l) {
    size_t length = word_end(l, l->at) - l->at;
    GB_TRY(add_token(l, GB_JINJA_TOKEN_NAME, gb_jinja_text_part(l->source, l->at, length), NULL));
    advance(l, length);
    return GUMBEL_OK;
}

static gumbel_status read_token(lexer *l) {
    char first = byte_at(l, l->at);
    if (l->at >= l->source.length)
        return gb_jinja_fail(l->state, GUMBEL_ERROR_FORMAT, "the template ends within a tag");
    if (first == '"' || first == '\'')
        return read_string(l);
    if (is_digit(first))
        return read_number(l);
    return is_word(first) ? read_name(l) : read_operator(l);
}

/* Reads the inside of a tag and its end. */
static gumbel_status read_tag(lexer *l, bool block) {
    const char *begin = block ? "{%" : "{{", *end = block ? "%}" : "}}";
    GB_TRY(add_token(l, block ? GB_JINJA_TOKEN_BLOCK_BEGIN : GB_JINJA_TOKEN_PRINT_BEGIN,
                     gb_jinja_text_of(begin), NULL));
    l->open_count = 0;
    skip_space(l);
    while (l->open_count > 0 || !skip_end(l, end, block)) {
        GB_TRY(read_token(l));
        skip_space(l);
    }
    return add_token(l, block ? GB_JINJA_TOKEN_BLOCK_END : GB_JINJA_TOKEN_PRINT_END, gb_jinja_text_of(end),
                     NULL);
}

gumbel_status gb_jinja_tokenize(gb_jinja_state *state, gb_jinja_text source, const gb_jinja_token **first) {
    gb_jinja_token *head = NULL;
    lexer l = {.state = state, .source = source, .tail = &head};
    state->line = 1;
    char opening = 0;
    do {
        GB_TRY(read_text(&l, &opening));
        if (opening == '#')
            GB_TRY(skip_comment(&l));
        else if (opening)
            GB_TRY(read_tag(&l, opening == '%'));
    } while (opening);
    GB_TRY(add_token(&l, GB_JINJA_TOKEN_END, gb_jinja_text_of("the end of the template"), NULL));
    *first = head;
    return GUMBEL_OK;
}
