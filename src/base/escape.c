/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel_escape: text from files and models, made harmless to a terminal. Which characters are which is
 * utf8proc's knowledge.
 */
#include "gumbel.h"

#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

enum { LONGEST_ESCAPE = 16 };

/* The character at text and its bytes; -1 and 1 where there is none (Unicode 15, table 3-7). */
static int32_t next_character(const char *text, size_t length, size_t *size) {
    utf8proc_int32_t c;
    utf8proc_ssize_t bytes = utf8proc_iterate((const uint8_t *)text, (utf8proc_ssize_t)length, &c);
    *size = bytes > 0 ? (size_t)bytes : 1;
    return bytes > 0 ? c : -1;
}

/* What ordinary text has: joiners and marks of direction that scripts need, emoji's variation selectors. */
static bool is_of_text(int32_t c) {
    return c == '\n' || c == '\t' || (c >= 0x200C && c <= 0x200F) || c == 0x061C ||
           (c >= 0xFE00 && c <= 0xFE0F);
}

/* Whether a terminal obeys the character, or shows nothing for it: controls, separators of lines, formats
 * such as overrides of direction, tags. Marks before digits are formats that can be seen. */
static bool is_harmful(int32_t c) {
    const utf8proc_property_t *property = utf8proc_get_property(c);
    switch (property->category) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return true;
    case UTF8PROC_CATEGORY_CF:
        return property->boundclass != UTF8PROC_BOUNDCLASS_PREPEND;
    default:
        return property->ignorable;
    }
}

/* As C spells it; ill-formed bytes and C0 by two digits. */
static void spell(int32_t c, char byte, char *escape) {
    static const char *const named[] = {['\n'] = "\\n", ['\t'] = "\\t", ['\r'] = "\\r"};
    if (c >= 0 && (size_t)c < sizeof named / sizeof *named && named[c])
        snprintf(escape, LONGEST_ESCAPE, "%s", named[c]);
    else if (c < 0x80)
        snprintf(escape, LONGEST_ESCAPE, "\\x%02x", (uint8_t)byte);
    else
        snprintf(escape, LONGEST_ESCAPE, c < 0x10000 ? "\\u%04x" : "\\U%08x", (uint32_t)c);
}

/* As JSON spells it: two surrogates above U+FFFF, U+FFFD for what is ill-formed. */
static void spell_json(int32_t c, char *escape) {
    uint32_t above = (uint32_t)c - 0x10000;
    if (c < 0)
        memcpy(escape, "\xEF\xBF\xBD", 4);
    else if (c == '"' || c == '\\')
        snprintf(escape, LONGEST_ESCAPE, "\\%c", (int)c);
    else if (c == '\n')
        memcpy(escape, "\\n", 3);
    else if (c < 0x10000)
        snprintf(escape, LONGEST_ESCAPE, "\\u%04x", (uint32_t)c);
    else
        snprintf(escape, LONGEST_ESCAPE, "\\u%04x\\u%04x", 0xD800 + (above >> 10), 0xDC00 + (above & 0x3FF));
}

/* Fills escape where the character does not stand for itself. */
static bool is_escaped(gumbel_escape_style style, int32_t c, char byte, char *escape) {
    bool is_json = style == GUMBEL_ESCAPE_JSON;
    if (c >= 0x20 && c < 0x7F && !(is_json && (c == '"' || c == '\\')))
        return false;
    if (c >= 0x7F && !is_harmful(c))
        return false;
    if (style == GUMBEL_ESCAPE_TEXT && is_of_text(c))
        return false;
    if (is_json)
        spell_json(c, escape);
    else
        spell(c, byte, escape);
    return true;
}

void gumbel_escape(gumbel_escape_style style, const char *text, size_t length, gumbel_write_callback write,
                   void *user) {
    size_t plain = 0, size; /* where what is not written yet begins */
    for (size_t at = 0; at < length; at += size) {
        char escape[LONGEST_ESCAPE];
        int32_t c = next_character(text + at, length - at, &size);
        if (!is_escaped(style, c, text[at], escape))
            continue;
        if (at > plain)
            write(user, text + plain, at - plain);
        write(user, escape, strlen(escape));
        plain = at + size;
    }
    if (length > plain)
        write(user, text + plain, length - plain);
}
