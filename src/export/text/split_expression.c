/* SPDX-License-Identifier: Apache-2.0
 *
 * The two libraries differ in words (\w, \b), digits and scripts, in lines (^, $), in nested classes and
 * possessive counts, and in letters that fold to several ("ss" and "ß"); all of that is left out. So are
 * characters beyond ASCII, which the runtime may stand in for others (text/tokenizer/newer_characters.h).
 */
#include "export/text/split_expression.h"

#include "text/tokenizer/expressions.h"

#include <stdbool.h>
#include <string.h>

#define REFUSED(...) gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "the expression has " __VA_ARGS__)

enum { MAX_GROUPS = 64 };

typedef struct scanner {
    const char *text;
    size_t length, at;
    bool caseless[MAX_GROUPS + 1]; /* by depth of groups */
    size_t depth;
} scanner;

static bool starts_with(const scanner *s, const char *prefix) {
    size_t size = strlen(prefix);
    return s->length - s->at >= size && memcmp(s->text + s->at, prefix, size) == 0;
}

static gumbel_status refuse_here(const scanner *s, size_t size, gumbel_error *error) {
    size_t left = s->length - s->at;
    return REFUSED("\"%.*s\" at byte %zu, which is not supported", (int)(size < left ? size : left),
                   s->text + s->at, s->at);
}

static gumbel_status scan_escape(scanner *s, gumbel_error *error) {
    static const char *const known[] = {"\\p{L}", "\\p{M}", "\\p{N}", "\\P{L}", "\\P{M}", "\\P{N}",
                                        "\\s",    "\\S",    "\\r",    "\\n",    "\\t"};
    static const char *const of_a_case[] = {"\\p{Lu}", "\\p{Ll}", "\\p{Lt}", "\\p{Lm}", "\\p{Lo}"};
    for (size_t i = 0; i < sizeof of_a_case / sizeof of_a_case[0]; i++) {
        if (starts_with(s, of_a_case[i]) && !s->caseless[s->depth]) {
            s->at += strlen(of_a_case[i]);
            return GUMBEL_OK;
        }
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (starts_with(s, known[i])) {
            s->at += strlen(known[i]);
            return GUMBEL_OK;
        }
    }
    char escaped = s->length - s->at > 1 ? s->text[s->at + 1] : 0;
    if (!escaped || !strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", escaped))
        return refuse_here(s, 6, error);
    s->at += 2;
    return GUMBEL_OK;
}

static gumbel_status check_character(const scanner *s, gumbel_error *error) {
    unsigned char c = (unsigned char)s->text[s->at];
    if (c < 0x20 || c >= 0x7F)
        return REFUSED("the byte 0x%02X at %zu; only printable ASCII is supported", c, s->at);
    return GUMBEL_OK;
}

/* Whether two letters that follow each other are one character of another case, such as "ß" or "ﬁ". */
static bool folds_together(const scanner *s) {
    static const char *const pairs[] = {"ss", "st", "ff", "fi", "fl"};
    if (!s->caseless[s->depth] || s->length - s->at < 2)
        return false;
    char pair[2] = {(char)(s->text[s->at] | 0x20), (char)(s->text[s->at + 1] | 0x20)};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (memcmp(pair, pairs[i], 2) == 0)
            return true;
    return false;
}

static gumbel_status scan_class(scanner *s, gumbel_error *error) {
    s->at++;
    if (starts_with(s, "^"))
        s->at++;
    if (starts_with(s, "]"))
        return refuse_here(s, 1, error);
    while (s->at < s->length && s->text[s->at] != ']') {
        if (s->text[s->at] == '\\') {
            GB_TRY(scan_escape(s, error));
            continue;
        }
        GB_TRY(check_character(s, error));
        if (s->text[s->at] == '[' || starts_with(s, "&&"))
            return refuse_here(s, 2, error);
        s->at++;
    }
    s->at++;
    return GUMBEL_OK;
}

static gumbel_status scan_group(scanner *s, gumbel_error *error) {
    static const char *const kinds[] = {"(?:", "(?=", "(?!", "(?i:"};
    size_t size = starts_with(s, "(?") || starts_with(s, "(*") ? 0 : 1;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (starts_with(s, kinds[i]))
            size = strlen(kinds[i]);
    if (size == 0)
        return refuse_here(s, 4, error);
    if (s->depth == MAX_GROUPS)
        return REFUSED("groups nested deeper than %d", MAX_GROUPS);
    s->depth++;
    s->caseless[s->depth] = s->caseless[s->depth - 1] || starts_with(s, "(?i:");
    s->at += size;
    return GUMBEL_OK;
}

/* {n}, {n,} or {n,m}; the latter two may be lazy. */
static gumbel_status scan_count(scanner *s, gumbel_error *error) {
    size_t end = s->at + 1;
    while (end < s->length && (strchr("0123456789,", s->text[end]) != NULL) && s->text[end] != 0)
        end++;
    bool is_closed = end < s->length && s->text[end] == '}';
    char next = is_closed && end + 1 < s->length ? s->text[end + 1] : 'x';
    bool is_range = memchr(s->text + s->at, ',', end - s->at) != NULL;
    bool is_followed = next && strchr(is_range ? "+*{" : "?+*{", next);
    if (!is_closed || s->text[s->at + 1] == ',' || s->text[s->at + 1] == '}' || is_followed)
        return refuse_here(s, end - s->at + 2, error);
    s->at = end + 1;
    return GUMBEL_OK;
}

static gumbel_status scan_one(scanner *s, gumbel_error *error) {
    switch (s->text[s->at]) {
    case '\\':
        return scan_escape(s, error);
    case '[':
        return scan_class(s, error);
    case '(':
        return scan_group(s, error);
    case '{':
        return scan_count(s, error);
    case '^':
    case '$':
        return refuse_here(s, 1, error);
    case ')':
        s->depth -= s->depth > 0; /* one too many does not compile */
        break;
    default:
        GB_TRY(check_character(s, error));
        if (folds_together(s))
            return refuse_here(s, 2, error);
    }
    s->at++;
    return GUMBEL_OK;
}

gumbel_status gb_check_split_expression(const char *text, size_t length, gumbel_error *error) {
    if (gb_split_expression_find(text, length) != GB_EXPRESSION_NONE)
        return GUMBEL_OK;
    scanner s = {.text = text, .length = length};
    while (s.at < s.length)
        GB_TRY(scan_one(&s, error));
    return GUMBEL_OK;
}
