/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/json.h"

#include "cli/base/storage.h"
#include "cli/options/values.h"

#include <math.h>
#include <unistd.h>

/* Bytes of the UTF-8 character that text begins with; 0 when there is none (an overlong form, a surrogate,
 * one above U+10FFFF, one that is cut). */
static size_t character_length(const unsigned char *text, size_t length) {
    static const struct {
        unsigned char first, last;             /* of the first byte */
        unsigned char second_low, second_high; /* of the second one */
        size_t length;
    } forms[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (text[0] < forms[i].first || text[0] > forms[i].last)
            continue;
        size_t n = forms[i].length;
        if (n > length || (n > 1 && (text[1] < forms[i].second_low || text[1] > forms[i].second_high)))
            return 0;
        for (size_t k = 2; k < n; k++)
            if ((text[k] & 0xc0) != 0x80)
                return 0;
        return n;
    }
    return 0;
}

json_t *cli_json_text(const char *text, size_t length) {
    static const char replacement[] = "\xef\xbf\xbd";
    cli_text clean = {0};
    cli_text_add(&clean, "", 0);
    for (size_t i = 0; i < length;) {
        size_t n = character_length((const unsigned char *)text + i, length - i);
        cli_text_add(&clean, n ? text + i : replacement, n ? n : sizeof replacement - 1);
        i += n ? n : 1;
    }
    json_t *string = json_stringn(clean.bytes, clean.length);
    cli_text_free(&clean);
    return string;
}

json_t *cli_json_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *cli_json_float(float value) {
    return cli_json_number(cli_decimal(value));
}

void cli_json_print(const json_t *value, size_t flags, FILE *file) {
    json_dumpf(value, file, flags | (isatty(fileno(file)) ? JSON_ENSURE_ASCII : 0));
}
