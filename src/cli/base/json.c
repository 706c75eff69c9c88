/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/json.h"

#include "base/byte_buffer.h"
#include "base/text_sink.h"
#include "cli/options/values.h"

#include <math.h>
#include <unistd.h>

json_t *cli_json_text(const char *text, size_t length) {
    json_t *string = json_stringn(length > 0 ? text : "", length);
    if (string)
        return string;
    gb_byte_buffer clean = {0};
    gb_print_json_string(&(gb_text_sink){gb_buffer_write, &clean}, text, length);
    string = json_loadb(clean.text, clean.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    gb_buffer_free(&clean);
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
