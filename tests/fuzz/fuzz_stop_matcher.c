/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as stop strings, one a line up to an empty line, and a text behind them that bytes 0xFF cut into
 * pieces. What is shown must be what the definition says. A first byte that is odd includes the string.
 */
#include "base/byte_buffer.h"
#include "base/memory.h"
#include "support/naive_stops.h"
#include "text/base/utf8.h"
#include "text/decode/stop_matcher.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_STRINGS = 32, MOST_INPUT = 2048 };

typedef struct strings {
    char bytes[MOST_INPUT + 1];
    const char *list[MOST_STRINGS];
    size_t count;
} strings;

/* Returns how many bytes the lines take. */
static size_t read_strings(const uint8_t *data, size_t size, strings *s) {
    size_t at = 0;
    memcpy(s->bytes, data, size);
    s->bytes[size] = 0;
    while (at < size && s->count < MOST_STRINGS) {
        size_t end = at;
        while (end < size && data[end] != '\n')
            end++;
        if (end == at)
            return at + (at < size);
        s->list[s->count++] = s->bytes + at;
        s->bytes[end] = 0;
        at = end + (end < size);
    }
    return at;
}

static void take(gb_stop_matcher *matcher, gb_byte_buffer *shown) {
    const char *text;
    size_t length;
    gb_stop_matcher_take(matcher, &text, &length);
    if (!gb_utf8_is_valid(text, length))
        abort();
    gb_buffer_append(shown, text, length);
}

static void match_pieces(gb_stop_matcher *matcher, const strings *s, const uint8_t *data, size_t size,
                         gb_byte_buffer *text, gb_byte_buffer *shown) {
    for (size_t at = 0; at < size;) {
        size_t end = at, before = text->size;
        while (end < size && data[end] != 0xFF)
            end++;
        gb_utf8_append_repaired(text, (const char *)data + at, end - at);
        if (text->size > before)
            gb_stop_matcher_add(matcher, (const char *)text->data + before, text->size - before);
        take(matcher, shown);
        if (gb_stop_matcher_found(matcher) < 0 &&
            text->size - shown->size != naive_held(s->list, s->count, (const char *)text->data, text->size))
            abort();
        at = end + 1;
    }
    gb_stop_matcher_flush(matcher);
    take(matcher, shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > MOST_INPUT)
        return 0;
    strings s = {.count = 0};
    const bool included = data[0] & 1;
    const size_t used = 1 + read_strings(data + 1, size - 1, &s);
    gb_stop_matcher *matcher;
    if (gb_stop_matcher_create(s.list, s.count, included, 3 * MOST_INPUT, &matcher, NULL) != GUMBEL_OK)
        return 0;
    gb_byte_buffer text = {0}, shown = {0};
    match_pieces(matcher, &s, data + used, size - used, &text, &shown);
    const char *bytes = text.data ? (const char *)text.data : "";
    naive_stop expected = naive_find(s.list, s.count, bytes, text.size);
    if (gb_stop_matcher_found(matcher) != expected.string ||
        shown.size != (included ? expected.end : expected.begin) ||
        (shown.size > 0 && memcmp(shown.data, bytes, shown.size) != 0))
        abort();
    gb_stop_matcher_destroy(matcher);
    gb_buffer_free(&text);
    gb_buffer_free(&shown);
    return 0;
}
