/* SPDX-License-Identifier: Apache-2.0
 *
 * utf8proc knows the characters, but its own normalization sorts marks in quadratic time, which a text of
 * nothing but marks makes felt. So text is cut into segments that nothing is composed across, most of which
 * are copied as they stand; a segment in which something may happen is decomposed, sorted and composed.
 */
#include "text/tokenizer/nfc.h"

#include "base/memory.h"
#include "text/base/utf8.h"
#include "text/tokenizer/newer_characters.h"

#include <string.h>
#include <utf8proc.h>

/* A segment's characters. */
typedef struct segment {
    utf8proc_int32_t *characters, *sorted; /* owned */
    size_t count, capacity, sorted_capacity;
    bool failed;
} segment;

/* What utf8proc_NFC says; decomposing a character, these ask for its canonical decomposition. */
static const utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_COMPOSE;

/* Room for the longest canonical decomposition of one character. */
enum { MAX_DECOMPOSITION = 4 };

/* Whether the character stands by itself as it is: a mark after it may join it, but it joins nothing before
 * it. True for the common ones of those; asking utf8proc about the others gives the same result. */
static bool is_stable(uint32_t c) {
    return c < 0x300 || (c >= 0x388 && c <= 0x482) || (c >= 0x48A && c <= 0x52F) ||
           (c >= 0x5D0 && c <= 0x5EA) || (c >= 0x620 && c <= 0x64A) || (c >= 0xE01 && c <= 0xE30) ||
           (c >= 0x2010 && c <= 0x2027) || (c >= 0x3000 && c <= 0x3029) || (c >= 0x3041 && c <= 0x3096) ||
           (c >= 0x30A1 && c <= 0x30FF) || (c >= 0x3400 && c <= 0x4DB5) || (c >= 0x4E00 && c <= 0x9FD5) ||
           (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xFF01 && c <= 0xFF60);
}

/* ---- One segment ---- */

static void decompose(segment *s, const char *text, size_t length) {
    s->count = 0;
    for (size_t at = 0, size; at < length; at += size) {
        size = gb_utf8_size(text[at]);
        if (!gb_grow((void **)&s->characters, &s->capacity, s->count + MAX_DECOMPOSITION,
                     sizeof *s->characters)) {
            s->failed = true;
            return;
        }
        utf8proc_int32_t c = (utf8proc_int32_t)gb_utf8_code_point(text + at, size);
        utf8proc_ssize_t added =
            utf8proc_decompose_char(c, s->characters + s->count, MAX_DECOMPOSITION, options, NULL);
        s->failed |= added < 0 || added > MAX_DECOMPOSITION;
        if (s->failed)
            return;
        s->count += (size_t)added;
    }
}

static unsigned combining_class(utf8proc_int32_t c) {
    return (unsigned)utf8proc_get_property(c)->combining_class & 0xFF;
}

/* Sorts marks, keeping the order of those of one class: a counting sort. */
static void sort_marks(segment *s, utf8proc_int32_t *marks, size_t count) {
    size_t starts[257] = {0};
    if (!gb_grow((void **)&s->sorted, &s->sorted_capacity, count, sizeof *s->sorted)) {
        s->failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        starts[combining_class(marks[i]) + 1]++;
    for (int class = 1; class < 257; class ++)
        starts[class] += starts[class - 1];
    for (size_t i = 0; i < count; i++)
        s->sorted[starts[combining_class(marks[i])]++] = marks[i];
    memcpy(marks, s->sorted, count * sizeof *marks);
}

/* The canonical ordering: every run of marks by combining class. */
static void order(segment *s) {
    for (size_t at = 0; at < s->count;) {
        unsigned last = combining_class(s->characters[at]);
        size_t start = at++;
        bool ordered = true;
        for (; last != 0 && at < s->count; at++) {
            unsigned class = combining_class(s->characters[at]);
            if (class == 0)
                break;
            ordered &= class >= last;
            last = class;
        }
        if (!ordered)
            sort_marks(s, s->characters + start, at - start);
    }
}

static void append_segment(segment *s, const char *text, size_t length, gb_byte_buffer *output) {
    decompose(s, text, length);
    if (!s->failed)
        order(s);
    if (s->failed) {
        output->failed = true;
        return;
    }
    utf8proc_ssize_t count = utf8proc_normalize_utf32(s->characters, (utf8proc_ssize_t)s->count, options);
    for (utf8proc_ssize_t i = 0; i < count; i++) {
        utf8proc_uint8_t bytes[4];
        utf8proc_ssize_t size = utf8proc_encode_char(s->characters[i], bytes);
        gb_buffer_append(output, bytes, (size_t)size);
    }
}

/* ---- Cutting a text into segments ---- */

typedef enum kind { STABLE, NEWER, OTHER } kind;

static kind kind_at(const char *text, size_t at) {
    uint32_t c = gb_utf8_code_point(text + at, gb_utf8_size(text[at]));
    return is_stable(c) ? STABLE : gb_is_newer(c) ? NEWER : OTHER;
}

void gb_append_nfc(const char *text, size_t length, gb_byte_buffer *output) {
    segment s = {0};
    size_t copied = 0, last = 0; /* last: the character before at */
    kind before = NEWER;
    for (size_t at = 0; at < length && !output->failed;) {
        kind here = kind_at(text, at);
        if (here != OTHER) {
            before = here;
            last = at;
            at += gb_utf8_size(text[at]);
            continue;
        }
        size_t start = before == STABLE ? last : at;
        while (at < length && kind_at(text, at) == OTHER)
            at += gb_utf8_size(text[at]);
        gb_buffer_append(output, text + copied, start - copied);
        append_segment(&s, text + start, at - start, output);
        copied = at;
        before = NEWER;
    }
    gb_buffer_append(output, text + copied, length - copied);
    gb_free(s.characters);
    gb_free(s.sorted);
}
