/* SPDX-License-Identifier: Apache-2.0
 *
 * Any text as a reply on a terminal, in pieces that bytes 0xFF cut, escaped and then wrapped at the columns
 * that the first byte says. Nothing but white space may be lost or added.
 */
#include "cli/terminal/word_wrap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void keep(void *user, const char *text, size_t length) {
    cli_append(user, text, length);
}

static bool is_blank(int32_t c) {
    return c == '\t' || c == '\n' || utf8proc_category(c) == UTF8PROC_CATEGORY_ZS;
}

static void drop_blanks(gb_byte_buffer *text) {
    size_t kept = 0;
    int32_t c;
    for (size_t at = 0; at < text->size;) {
        const utf8proc_ssize_t length =
            utf8proc_iterate(text->data + at, (utf8proc_ssize_t)(text->size - at), &c);
        if (length <= 0)
            abort(); /* all that was given is whole characters */
        if (!is_blank(c)) {
            memmove(text->data + kept, text->data + at, (size_t)length);
            kept += (size_t)length;
        }
        at += (size_t)length;
    }
    text->size = kept;
}

static void compare(gb_byte_buffer *given, gb_byte_buffer *wrapped) {
    drop_blanks(given);
    drop_blanks(wrapped);
    if (given->size != wrapped->size ||
        (given->size > 0 && memcmp(given->data, wrapped->data, given->size) != 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1 || size > 4096)
        return 0;
    gb_byte_buffer given = {0}, wrapped = {0};
    cli_word_wrap wrap = {.write = keep, .user = &wrapped, .columns = data[0]};
    for (size_t at = 1; at < size;) {
        const uint8_t *cut = memchr(data + at, 0xFF, size - at);
        const size_t length = cut ? (size_t)(cut - data) - at : size - at;
        const size_t before = given.size;
        gumbel_escape(GUMBEL_ESCAPE_TEXT, (const char *)data + at, length, keep, &given);
        if (given.size > before)
            cli_word_wrap_put(&wrap, given.text + before, given.size - before);
        at += length + 1;
    }
    cli_word_wrap_end(&wrap);
    compare(&given, &wrapped);
    cli_word_wrap_free(&wrap);
    gb_buffer_free(&given);
    gb_buffer_free(&wrapped);
    return 0;
}
