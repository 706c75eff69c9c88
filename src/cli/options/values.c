/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/values.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_bounded(const cli_range *range) {
    return range->low != 0 || range->high != 0;
}

static bool is_in_range(const cli_range *range, double value) {
    if (!is_bounded(range) || (range->has_also && value == range->also_value))
        return true;
    return (range->low_excluded ? value > range->low : value >= range->low) && value <= range->high;
}

void cli_describe_range(const cli_range *range, bool integer, char *text, size_t capacity) {
    char also[48] = "";
    if (range->has_also)
        snprintf(also, sizeof also, "%.10g or ", range->also_value);
    const char *kind = integer ? "an integer" : "a number";
    if (is_bounded(range))
        snprintf(text, capacity, "%s%s in %c%.10g, %.10g]", also, kind, range->low_excluded ? '(' : '[',
                 range->low, range->high);
    else
        snprintf(text, capacity, "%s%s", also, kind);
}

bool cli_parse_switch(const char *text, bool *value) {
    bool is_on = strcmp(text, "1") == 0 || strcasecmp(text, "true") == 0 || strcasecmp(text, "on") == 0;
    bool is_off = strcmp(text, "0") == 0 || strcasecmp(text, "false") == 0 || strcasecmp(text, "off") == 0;
    *value = is_on;
    return is_on || is_off;
}

bool cli_parse_integer(const char *text, const cli_range *range, int64_t *value) {
    size_t digits = text[0] == '-' ? 1 : 0;
    if (text[digits] == '\0' || strspn(text + digits, "0123456789") != strlen(text + digits))
        return false;
    errno = 0;
    long long parsed = strtoll(text, NULL, 10);
    if (errno != 0 || !is_in_range(range, (double)parsed))
        return false;
    *value = parsed;
    return true;
}

bool cli_parse_number(const char *text, const cli_range *range, double *value) {
    if (text[0] == '\0' || strspn(text, "0123456789.eE+-") != strlen(text))
        return false; /* strtod also reads blanks, hexadecimal, inf and nan */
    char *end;
    double parsed = strtod(text, &end);
    if (*end != '\0' || !isfinite(parsed) || !is_in_range(range, parsed))
        return false;
    *value = parsed;
    return true;
}

double cli_decimal(float value) {
    char digits[32];
    for (int precision = 6; precision <= 9; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, (double)value);
        if (strtof(digits, NULL) == value)
            return strtod(digits, NULL);
    }
    return (double)value; /* not a number */
}

bool cli_parse_integers(const char *text, const cli_range *range, cli_integers *integers) {
    integers->count = 0;
    for (;; text++) {
        char one[32];
        size_t length = strcspn(text, ",");
        if (length >= sizeof one || integers->count == CLI_MOST_INTEGERS)
            return false;
        memcpy(one, text, length);
        one[length] = '\0';
        if (!cli_parse_integer(one, range, &integers->values[integers->count++]))
            return false;
        text += length;
        if (*text == '\0')
            return true;
    }
}

bool cli_parse_seed(const char *text, bool *draw, uint64_t *value) {
    *draw = strcmp(text, "-1") == 0;
    if (*draw)
        return true;
    if (text[0] == '\0' || strspn(text, "0123456789") != strlen(text))
        return false;
    errno = 0;
    unsigned long long parsed = strtoull(text, NULL, 10);
    if (errno != 0)
        return false;
    *value = parsed;
    return true;
}

bool cli_parse_tokens(const char *text, cli_tokens *tokens) {
    static const char blanks[] = " \t\n";
    for (;;) {
        text += strspn(text, blanks);
        size_t digits = strspn(text, "0123456789");
        errno = 0;
        unsigned long long id = strtoull(text, NULL, 10);
        if (digits == 0 || errno != 0 || id > INT32_MAX)
            break;
        cli_tokens_add(tokens, (int32_t)id);
        text += digits;
        size_t gap = strspn(text, blanks);
        text += gap;
        if (*text == '\0')
            return true;
        if (*text == ',')
            text++;
        else if (gap == 0)
            break;
    }
    cli_tokens_free(tokens);
    return false;
}

static bool set_bias(cli_biases *biases, int32_t token, float value) {
    size_t i = 0;
    while (i < biases->count && biases->list[i].token != token)
        i++;
    if (value == 0) {
        if (i < biases->count)
            biases->list[i] = biases->list[--biases->count];
        return true;
    }
    if (i == CLI_MOST_BIASES)
        return false;
    biases->list[i] = (gumbel_bias){token, value};
    biases->count += i == biases->count;
    return true;
}

/* The value of an entry, which ends at a comma or with the text. */
static bool parse_bias_value(const char *text, size_t length, float *value) {
    static const cli_range range = {.low = -1e6, .high = 1e6};
    char number[32];
    double parsed;
    if (length >= sizeof number)
        return false;
    memcpy(number, text, length);
    number[length] = '\0';
    *value = -INFINITY;
    if (strcmp(number, "-inf") == 0)
        return true;
    if (!cli_parse_number(number, &range, &parsed))
        return false;
    *value = (float)parsed;
    return true;
}

bool cli_parse_biases(const char *text, cli_biases *biases) {
    for (;; text++) {
        size_t digits = strspn(text, "0123456789");
        errno = 0;
        unsigned long long id = strtoull(text, NULL, 10);
        text += digits;
        if (digits == 0 || errno != 0 || id > INT32_MAX || *text == '\0' || !strchr("=+-", *text))
            return false;
        text += *text == '=';
        size_t length = strcspn(text, ",");
        float value;
        if (!parse_bias_value(text, length, &value) || !set_bias(biases, (int32_t)id, value))
            return false;
        text += length;
        if (*text == '\0')
            return true;
    }
}

bool cli_add_string(const char *text, cli_strings *strings) {
    if (*text == '\0' || strings->count == CLI_MOST_STRINGS)
        return false;
    strings->list[strings->count++] = text;
    return true;
}

bool cli_clear_strings(cli_strings *strings) {
    strings->count = 0;
    return true;
}

void cli_words_join(const cli_words *words, gb_byte_buffer *text) {
    for (size_t i = 0; i < words->count; i++) {
        cli_append(text, " ", i > 0 ? 1 : 0);
        cli_append_string(text, words->list[i]);
    }
}

void cli_words_free(cli_words *words) {
    free(words->list);
    *words = (cli_words){0};
}

bool cli_is_choice(const char *value, const char *choices) {
    size_t length = strlen(value);
    if (length == 0 || strchr(value, ' '))
        return false;
    for (const char *found = strstr(choices, value); found; found = strstr(found + 1, value)) {
        bool begins = found == choices || found[-1] == ' ';
        bool ends = found[length] == ' ' || found[length] == '\0';
        if (begins && ends)
            return true;
    }
    return false;
}
