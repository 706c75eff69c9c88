/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/number/decimal.h"

#include "text/reply/json_text.h"

#include <stdlib.h>
#include <string.h>

/* Puts count digits of `digits` from `from` on into text; those outside of it are zeros. */
static void copy_digits(char *text, const char *digits, long from, long count) {
    const long length = (long)strlen(digits);
    for (long i = 0; i < count; i++)
        text[i] = from + i >= 0 && from + i < length ? digits[from + i] : '0';
    text[count] = 0;
}

static void trim(gb_decimal *decimal) {
    const size_t zeros = strspn(decimal->whole, "0");
    memmove(decimal->whole, decimal->whole + zeros, strlen(decimal->whole) - zeros + 1);
    if (!decimal->whole[0])
        strcpy(decimal->whole, "0");
    for (size_t end = strlen(decimal->fraction); end > 0 && decimal->fraction[end - 1] == '0'; end--)
        decimal->fraction[end - 1] = 0;
    decimal->negative &= !gb_decimal_is_zero(decimal);
}

/* text: a JSON number. */
static bool read_text(const char *text, gb_decimal *decimal) {
    char digits[GB_MAX_DIGITS + 20] = "";
    size_t count = 0;
    long point = -1, exponent = 0;
    decimal->negative = *text == '-';
    for (text += decimal->negative; *text && count + 1 < sizeof digits; text++) {
        if (*text == '.') {
            point = (long)count;
        } else if (*text == 'e' || *text == 'E') {
            exponent = strtol(text + 1, NULL, 10);
            break;
        } else {
            digits[count++] = *text;
            digits[count] = 0;
        }
    }
    point = (point < 0 ? (long)count : point) + exponent;
    const long whole = point > 0 ? point : 1, from = point > 0 ? 0 : point - 1;
    const long fraction = (long)count > from + whole ? (long)count - (from + whole) : 0;
    if (whole > GB_MAX_DIGITS || fraction > GB_MAX_DIGITS)
        return false;
    copy_digits(decimal->whole, digits, from, whole);
    copy_digits(decimal->fraction, digits, from + whole, fraction);
    trim(decimal);
    return true;
}

gumbel_status gb_decimal_read(const json_t *number, gb_decimal *decimal) {
    gb_byte_buffer text = {0};
    gb_append_json(&text, number);
    gb_buffer_append(&text, "", 1);
    const bool is_read = !text.failed && read_text((const char *)text.data, decimal);
    const gumbel_status status = text.failed ? GUMBEL_ERROR_MEMORY : GUMBEL_ERROR_LIMIT;
    gb_buffer_free(&text);
    return is_read ? GUMBEL_OK : status;
}

gumbel_status gb_decimal_read_digits(const char *digits, gb_decimal *decimal) {
    return read_text(digits, decimal) ? GUMBEL_OK : GUMBEL_ERROR_LIMIT;
}

bool gb_decimal_is_zero(const gb_decimal *decimal) {
    return strcmp(decimal->whole, "0") == 0 && !decimal->fraction[0];
}

static int compare_sizes(const gb_decimal *a, const gb_decimal *b) {
    const size_t length = strlen(a->whole), other = strlen(b->whole);
    if (length != other)
        return length > other ? 1 : -1;
    const int whole = strcmp(a->whole, b->whole);
    return whole ? whole : strcmp(a->fraction, b->fraction);
}

int gb_decimal_compare(const gb_decimal *a, const gb_decimal *b) {
    if (a->negative != b->negative)
        return a->negative ? -1 : 1;
    return a->negative ? compare_sizes(b, a) : compare_sizes(a, b);
}
