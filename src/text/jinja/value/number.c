/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/value/number.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The shortest decimal digits of a finite value in digits (without point), and its decimal exponent, such
 * that value = 0.DIGITS * 10^exponent. The "%e" form has the locale's decimal point in one known place. */
static void shortest_digits(double value, char digits[32], int *exponent) {
    char text[48];
    for (int precision = 0; precision <= 16; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
    char *mark = strchr(text, 'e');
    size_t count = 0;
    for (const char *c = text; c < mark; c++)
        if (*c >= '0' && *c <= '9')
            digits[count++] = *c;
    while (count > 1 && digits[count - 1] == '0')
        count--;
    digits[count] = 0;
    *exponent = atoi(mark + 1) + 1;
}

gumbel_status gb_jinja_append_float(gb_jinja_state *state, gb_jinja_buffer *buffer, double value) {
    if (isnan(value))
        return gb_jinja_append_string(state, buffer, "nan");
    if (signbit(value))
        GB_TRY(gb_jinja_append_string(state, buffer, "-"));
    if (isinf(value))
        return gb_jinja_append_string(state, buffer, "inf");
    char digits[32];
    int point;
    shortest_digits(fabs(value), digits, &point);
    int count = (int)strlen(digits);
    if (value == 0)
        return gb_jinja_append_string(state, buffer, "0.0");
    if (point <= -4 || point > 16)
        return gb_jinja_append_format(state, buffer, "%c%s%s%s%02d", digits[0], count > 1 ? "." : "",
                                      digits + 1, point > 0 ? "e+" : "e-", abs(point - 1));
    if (point <= 0)
        return gb_jinja_append_format(state, buffer, "0.%.*s%s", -point, "0000", digits);
    if (point >= count)
        return gb_jinja_append_format(state, buffer, "%s%.*s.0", digits, point - count, "0000000000000000");
    return gb_jinja_append_format(state, buffer, "%.*s.%s", point, digits, digits + point);
}

/* A small reader over the text of a number. */
typedef struct cursor {
    const char *at, *end;
} cursor;

static bool skip(cursor *c, char wanted) {
    if (c->at == c->end || tolower((unsigned char)*c->at) != wanted)
        return false;
    c->at++;
    return true;
}

static bool skip_word(cursor *c, const char *word) {
    cursor ahead = *c;
    for (; *word; word++)
        if (!skip(&ahead, *word))
            return false;
    *c = ahead;
    return true;
}

static int digit_value(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'Z' ? c - 'A' + 10 : 99;
}

/* Copies decimal digits to *out (up to its end, past which they do not matter) and counts them. */
static int read_digits(cursor *c, char **out, const char *out_end, int *dropped) {
    int count = 0;
    while (c->at < c->end && digit_value(*c->at) < 10) {
        if (*out < out_end)
            *(*out)++ = *c->at;
        else
            (*dropped)++;
        c->at++;
        count++;
        if (c->end - c->at >= 2 && *c->at == '_' && digit_value(c->at[1]) < 10)
            c->at++;
    }
    return count;
}

static bool read_exponent(cursor *c, int *exponent) {
    bool negative = skip(c, '-');
    if (!negative)
        skip(c, '+');
    char text[8], *out = text;
    int dropped = 0;
    if (read_digits(c, &out, text + 5, &dropped) == 0)
        return false;
    *out = 0;
    int value = dropped ? 99999 : atoi(text);
    *exponent += negative ? -value : value;
    return true;
}

/* The digits go to strtod as an integer with an exponent, so that no decimal point depends on the locale. */
static bool read_decimal(cursor *c, double *value) {
    char text[840]; /* more digits than any double needs to be read exactly */
    char *out = text, *out_end = text + 800;
    int dropped = 0, exponent = 0;
    int whole = read_digits(c, &out, out_end, &dropped), fraction = 0;
    if (skip(c, '.')) {
        int before = dropped;
        fraction = read_digits(c, &out, out_end, &dropped);
        exponent -= fraction - (dropped - before);
        dropped = before;
    }
    if (whole + fraction == 0 || (skip(c, 'e') && !read_exponent(c, &exponent)))
        return false;
    snprintf(out, 24, "e%d", exponent + dropped);
    *value = strtod(text, NULL);
    return true;
}

bool gb_jinja_parse_float(gb_jinja_text text, double *value) {
    text = gb_jinja_text_strip(text, NULL, true, true);
    if (text.length > GB_JINJA_MAX_TEMPLATE)
        return false;
    cursor c = {text.bytes, text.bytes + text.length};
    bool negative = skip(&c, '-');
    if (!negative)
        skip(&c, '+');
    if (skip_word(&c, "infinity") || skip_word(&c, "inf"))
        *value = INFINITY;
    else if (skip_word(&c, "nan"))
        *value = NAN;
    else if (!read_decimal(&c, value))
        return false;
    if (negative)
        *value = -*value;
    return c.at == c.end;
}

static int64_t base_of_prefix(cursor *c, int64_t base) {
    static const struct {
        const char *prefix;
        int64_t base;
    } prefixes[] = {{"0x", 16}, {"0o", 8}, {"0b", 2}};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if ((base == 0 || base == prefixes[i].base) && skip_word(c, prefixes[i].prefix)) {
            skip(c, '_');
            return prefixes[i].base;
        }
    return base == 0 ? 10 : base;
}

bool gb_jinja_parse_integer(gb_jinja_text text, int64_t base, int64_t *value) {
    text = gb_jinja_text_strip(text, NULL, true, true);
    cursor c = {text.bytes, text.bytes + text.length};
    bool negative = skip(&c, '-');
    if (!negative)
        skip(&c, '+');
    base = base_of_prefix(&c, base);
    if (base < 2 || base > 36 || c.at == c.end)
        return false;
    int64_t result = 0;
    while (c.at < c.end) {
        int digit = digit_value(*c.at++);
        if (digit >= base || __builtin_mul_overflow(result, base, &result) ||
            __builtin_sub_overflow(result, digit, &result))
            return false;
        if (c.end - c.at >= 2 && *c.at == '_')
            c.at++;
    }
    if (!negative && result == INT64_MIN)
        return false;
    *value = negative ? result : -result;
    return true;
}

double gb_jinja_round(double value, int digits) {
    if (!isfinite(value) || digits > 300)
        return value;
    if (digits == 0)
        return rint(value);
    char text[800];
    snprintf(text, sizeof text, "%.*f", digits, value);
    return strtod(text, NULL);
}
