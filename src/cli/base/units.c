/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/units.h"

#include "cli/options/values.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
enum { UNITS = sizeof units / sizeof *units };

const char *cli_describe_bytes(uint64_t bytes, char *text) {
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 999.95 && unit + 1 < UNITS; unit++)
        value /= 1000;
    snprintf(text, CLI_BYTES_TEXT, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return text;
}

/* What a unit multiplies by: "", "b", "g", "gb", "gib"; 0 for other words. */
static double factor_of(const char *unit) {
    double thousands = 1, powers = 1;
    if (unit[0] == '\0' || strcasecmp(unit, "b") == 0)
        return 1;
    for (size_t i = 1; i < UNITS; i++) {
        thousands *= 1000;
        powers *= 1024;
        if (strncasecmp(unit, units[i], 1) != 0)
            continue;
        bool is_plain = unit[1] == '\0' || strcasecmp(unit + 1, "b") == 0;
        return is_plain ? thousands : strcasecmp(unit + 1, "ib") == 0 ? powers : 0;
    }
    return 0;
}

bool cli_parse_bytes(const char *text, uint64_t *bytes) {
    static const cli_range range = {.low = 0, .high = 1e18};
    char number[32];
    double value;
    size_t length = strspn(text, "0123456789.");
    if (length == 0 || length >= sizeof number)
        return false;
    memcpy(number, text, length);
    number[length] = '\0';
    double factor = factor_of(text + length + strspn(text + length, " "));
    if (factor == 0 || !cli_parse_number(number, &range, &value) ||
        value * factor > (double)(UINT64_C(1) << 60))
        return false;
    *bytes = (uint64_t)(value * factor);
    return true;
}
