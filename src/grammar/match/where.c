/* SPDX-License-Identifier: Apache-2.0
 *
 * What a grammar expects, in words.
 */
#include "grammar/match/matcher.h"

#include <stdio.h>
#include <string.h>

#define MOST_NAMED 6

typedef struct writer {
    char *text;
    size_t size, length;
} writer;

static void append(writer *to, const char *text) {
    int written = snprintf(to->text + to->length, to->size - to->length, "%s", text);
    size_t left = to->size - to->length - 1;
    to->length += (size_t)written < left ? (size_t)written : left;
}

static void append_byte(writer *to, unsigned byte) {
    char name[16];
    if (byte > 0x20 && byte < 0x7F)
        snprintf(name, sizeof name, "'%c'", (char)byte);
    else if (byte == ' ')
        snprintf(name, sizeof name, "a space");
    else if (byte == '\n')
        snprintf(name, sizeof name, "a new line");
    else
        snprintf(name, sizeof name, "byte 0x%02X", byte);
    append(to, name);
}

static void append_expected(gb_configurations *configurations, uint32_t at, writer *to) {
    unsigned named = 0, others = 0;
    for (unsigned byte = 0; byte < 256; byte++) {
        if (gb_byte_step(configurations, at, (uint8_t)byte) == GB_DEAD)
            continue;
        if (named == MOST_NAMED) {
            others++;
            continue;
        }
        append(to, named++ ? ", " : "");
        append_byte(to, byte);
    }
    char rest[40];
    snprintf(rest, sizeof rest, "%s%u more bytes", named ? " or " : "", others);
    append(to, others ? rest : "");
    if (configurations->traits[at] & GB_HAS_TOKENS)
        append(to, named ? " or a special token" : "a special token");
    if (configurations->traits[at] & GB_MAY_END)
        append(to, named ? " or the end" : "the end");
}

void gb_matcher_where(gb_matcher *matcher, char *text, size_t size) {
    writer to = {.text = text, .size = size};
    if (size == 0)
        return;
    *text = '\0';
    gb_configurations *configurations = gb_matcher_lock(matcher);
    const uint32_t at = gb_configuration_of(matcher);
    if (at == GB_ENDED)
        append(&to, "nothing: the answer has ended");
    else
        append_expected(configurations, at, &to);
    gb_matcher_unlock(matcher);
    if (to.length == 0) /* every byte met a limit */
        append(&to, "more than can be told: it is too ambiguous here");
}
