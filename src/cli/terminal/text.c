/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/text.h"

#include <string.h>
#include <utf8proc.h>

static void put_escaped(void *user, const char *text, size_t length) {
    cli_word_wrap_put(user, text, length);
}

static void put(cli_terminal_text *text, const char *bytes, size_t length) {
    gumbel_escape(GUMBEL_ESCAPE_TEXT, bytes, length, put_escaped, &text->wrap);
}

/* Bytes of the character that begins with this byte, at most 4; 0 where none does. */
static size_t expected_size(char first) {
    return (size_t)utf8proc_utf8class[(unsigned char)first];
}

static bool is_continuation(char byte) {
    return ((unsigned char)byte & 0xC0) == 0x80;
}

/* How many bytes at the end may be the beginning of a character whose rest has not come. */
static size_t unfinished_size(const char *bytes, size_t length) {
    size_t back = 1;
    while (back < length && back < 3 && is_continuation(bytes[length - back]))
        back++;
    return length > 0 && expected_size(bytes[length - back]) > back ? back : 0;
}

/* Adds bytes to the pending ones until these are a character, or cannot become one. Returns how many. */
static size_t finish_pending(cli_terminal_text *text, const char *bytes, size_t length) {
    size_t taken = 0, expected = expected_size(text->pending[0]);
    while (text->pending_count < expected && text->pending_count < sizeof text->pending && taken < length &&
           is_continuation(bytes[taken]))
        text->pending[text->pending_count++] = bytes[taken++];
    if (text->pending_count == expected || taken < length) {
        put(text, text->pending, text->pending_count);
        text->pending_count = 0;
    }
    return taken;
}

void cli_terminal_text_put(cli_terminal_text *text, const char *bytes, size_t length) {
    size_t begin = text->pending_count > 0 ? finish_pending(text, bytes, length) : 0;
    size_t unfinished = unfinished_size(bytes + begin, length - begin);
    put(text, bytes + begin, length - begin - unfinished);
    memcpy(text->pending + text->pending_count, bytes + length - unfinished, unfinished);
    text->pending_count += unfinished;
}

void cli_terminal_text_end(cli_terminal_text *text) {
    put(text, text->pending, text->pending_count);
    text->pending_count = 0;
    cli_word_wrap_end(&text->wrap);
}

void cli_terminal_text_free(cli_terminal_text *text) {
    cli_word_wrap_free(&text->wrap);
}
