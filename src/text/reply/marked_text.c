/* SPDX-License-Identifier: Apache-2.0 */
#include "text/reply/marked_text.h"

#include "base/memory.h"
#include "text/base/utf8.h"

#include <string.h>

enum { INSTEAD = 0x1A }; /* no format has it in a delimiter */

void gb_marked_text_free(gb_marked_text *text) {
    gb_buffer_free(&text->raw);
    gb_buffer_free(&text->search);
    gb_free(text->hidden);
    text->hidden = NULL;
}

static void append(gb_marked_text *text, const char *bytes, size_t length) {
    gb_buffer_append(&text->raw, bytes, length);
    gb_buffer_append(&text->search, bytes, length);
    text->failed |= text->raw.failed || text->search.failed;
}

/* Hides marks that end behind `from` and that ordinary tokens spell. */
static void hide_marks(gb_marked_text *text, size_t from) {
    const size_t reach = text->longest_mark > 0 ? text->longest_mark - 1 : 0;
    size_t at = from > reach ? from - reach : 0;
    if (text->failed)
        return;
    for (at = at > text->ordinary ? at : text->ordinary; at < text->raw.size; at++)
        for (size_t i = 0; i < text->mark_count; i++) {
            const gb_mark *mark = &text->marks[i];
            if (mark->length <= text->raw.size - at &&
                memcmp(text->raw.data + at, mark->text, mark->length) == 0)
                text->search.data[at] = INSTEAD;
        }
}

void gb_add_ordinary(gb_marked_text *text, const char *piece, size_t length) {
    const size_t from = text->raw.size;
    append(text, piece, length);
    hide_marks(text, from);
}

void gb_add_special(gb_marked_text *text, const char *piece, size_t length, size_t size, bool is_hidden) {
    gb_add_ordinary(text, piece, length - size);
    const size_t start = text->raw.size;
    append(text, piece + length - size, size);
    text->ordinary = text->raw.size;
    if (!is_hidden || size == 0)
        return;
    if (!gb_grow((void **)&text->hidden, &text->hidden_capacity, text->hidden_count + 1,
                 sizeof *text->hidden)) {
        text->failed = true;
        return;
    }
    text->hidden[text->hidden_count++] = (gb_span){start, text->raw.size};
}

/* Gives the first bytes of partial, a character or what can no longer become one. */
static void give_partial(gb_marked_text *text, size_t size, bool is_good) {
    if (is_good)
        append(text, text->partial, size);
    else
        append(text, GB_REPLACEMENT, strlen(GB_REPLACEMENT));
    text->partial_size -= size;
    memmove(text->partial, text->partial + size, text->partial_size);
}

void gb_add_text(gb_marked_text *text, const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++) {
        text->partial[text->partial_size++] = bytes[i];
        while (text->partial_size > 0) {
            size_t size;
            const gb_utf8_state state = gb_utf8_next(text->partial, text->partial_size, &size);
            if (state == GB_UTF8_PARTIAL)
                break;
            give_partial(text, size, state == GB_UTF8_CHARACTER);
        }
    }
    text->ordinary = text->raw.size;
}

void gb_end_text(gb_marked_text *text) {
    if (text->partial_size == 0)
        return;
    give_partial(text, text->partial_size, false);
    text->ordinary = text->raw.size;
}
