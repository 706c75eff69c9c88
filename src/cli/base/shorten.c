/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/shorten.h"

#include <stdbool.h>
#include <string.h>

static const char ellipsis[] = "\xe2\x80\xa6";
enum { ELLIPSIS_BYTES = sizeof ellipsis - 1 };

static bool continues_character(char byte) {
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* The last place at or before position where no character is cut. */
static size_t boundary_before(const char *text, size_t position) {
    while (position > 0 && continues_character(text[position]))
        position--;
    return position;
}

const char *cli_shorten_bytes(const char *text, size_t length, char room[CLI_SHORTENED]) {
    bool fits = length < CLI_SHORTENED;
    size_t kept = fits ? length : boundary_before(text, CLI_SHORTENED - 1 - ELLIPSIS_BYTES);
    memcpy(room, text, kept);
    strcpy(room + kept, fits ? "" : ellipsis);
    return room;
}

const char *cli_shorten(const char *text, char room[CLI_SHORTENED]) {
    return cli_shorten_bytes(text, strlen(text), room);
}
