/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer/added_tokens.h"

#include "base/memory.h"
#include "text/base/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* Of equal patterns, that of the lower id first. */
static int compare_patterns(const void *left, const void *right) {
    const gb_added_pattern *a = left, *b = right;
    int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
    order = order ? order : (a->length > b->length) - (a->length < b->length);
    return order ? order : (a->id > b->id) - (a->id < b->id);
}

void gb_added_tokens_index(gb_added_tokens *set) {
    if (set->count > 0)
        qsort(set->patterns, set->count, sizeof *set->patterns, compare_patterns);
    uint32_t at = 0;
    for (int byte = 0; byte < 256; byte++) {
        set->first[byte] = at;
        while (at < set->count && (uint8_t)set->patterns[at].text[0] == byte)
            at++;
    }
    set->first[256] = at;
}

void gb_added_tokens_free(gb_added_tokens *set) {
    gb_free(set->patterns);
    gb_free(set->storage);
    *set = (gb_added_tokens){0};
}

/* The first of the patterns low..high-1, which agree in depth bytes, whose next byte is at least byte. */
static size_t lower_bound(const gb_added_tokens *set, size_t low, size_t high, size_t depth, int byte) {
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const gb_added_pattern *pattern = &set->patterns[middle];
        int found = pattern->length > depth ? (uint8_t)pattern->text[depth] : -1;
        if (found < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The longest pattern that text begins with, or NULL. Narrows the range of candidates byte by byte; a pattern
 * that ends stands first in its range. */
static const gb_added_pattern *longest(const gb_added_tokens *set, const char *text, size_t length) {
    const gb_added_pattern *best = NULL;
    size_t low = set->first[(uint8_t)text[0]], high = set->first[(uint8_t)text[0] + 1];
    for (size_t depth = 1; low < high; depth++) {
        if (set->patterns[low].length == depth)
            best = &set->patterns[low];
        if (depth == length)
            break;
        int byte = (uint8_t)text[depth];
        low = lower_bound(set, low, high, depth, byte);
        high = lower_bound(set, low, high, depth, byte + 1);
    }
    return best;
}

bool gb_is_literal(const gb_literal_spans *literal, gb_span part, bool *all) {
    size_t low = 0, high = literal->count;
    while (low < high) { /* the first span that ends after start */
        size_t middle = low + (high - low) / 2;
        if (literal->spans[middle].end <= part.start)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == literal->count) {
        *all = false;
        return false;
    }
    *all = literal->spans[low].start <= part.start && part.end <= literal->spans[low].end;
    return literal->spans[low].start < part.end;
}

/* \w of Unicode Technical Standard 18: letters, marks, decimal digits, connectors, joiners, and the circled
 * and squared letters, which are alphabetic symbols. */
static bool is_word(uint32_t c) {
    if (c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
        (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189))
        return true;
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) ||
           category == UTF8PROC_CATEGORY_PC;
}

static size_t previous_character(const char *text, size_t at) {
    do
        at--;
    while (((uint8_t)text[at] & 0xC0) == 0x80);
    return at;
}

static bool is_within_word(const char *text, size_t length, size_t start, size_t end) {
    if (start > 0) {
        size_t before = previous_character(text, start);
        if (is_word(gb_utf8_code_point(text + before, start - before)))
            return true;
    }
    return end < length && is_word(gb_utf8_code_point(text + end, gb_utf8_size(text[end])));
}

static size_t strip_left(const char *text, size_t start, size_t limit) {
    while (start > limit) {
        size_t before = previous_character(text, start);
        if (!gb_is_white_space(gb_utf8_code_point(text + before, start - before)))
            break;
        start = before;
    }
    return start;
}

static size_t strip_right(const char *text, size_t length, size_t end) {
    while (end < length && gb_is_white_space(gb_utf8_code_point(text + end, gb_utf8_size(text[end]))))
        end += gb_utf8_size(text[end]);
    return end;
}

/* Whether the pattern found at start counts; otherwise *search is where to look on. A refused pattern is
 * passed over whole, as the reference does, but never beyond the literal text that it was refused for. */
static bool accept(const gb_added_pattern *pattern, const char *text, size_t length, size_t start,
                   const gb_literal_spans *literal, size_t *search) {
    size_t end = start + pattern->length;
    bool inside = true;
    *search = end;
    if (pattern->flags & GB_ADDED_SPECIAL && gb_is_literal(literal, (gb_span){start, end}, &inside)) {
        if (!inside)
            *search = start + gb_utf8_size(text[start]);
        return false;
    }
    return !(pattern->flags & GB_ADDED_SINGLE_WORD) || !is_within_word(text, length, start, end);
}

gb_added_match gb_added_tokens_next(const gb_added_tokens *set, const char *text, size_t length,
                                    const gb_literal_spans *literal, gb_added_cursor *cursor) {
    while (cursor->search < length) {
        size_t start = cursor->search;
        const gb_added_pattern *pattern = longest(set, text + start, length - start);
        if (!pattern) {
            cursor->search++;
            continue;
        }
        if (!accept(pattern, text, length, start, literal, &cursor->search))
            continue;
        size_t end = start + pattern->length;
        if (pattern->flags & GB_ADDED_LEFT_STRIP)
            start = strip_left(text, start, cursor->start < start ? cursor->start : start);
        if (pattern->flags & GB_ADDED_RIGHT_STRIP)
            end = strip_right(text, length, end);
        gb_added_match match = {.before = {cursor->start, start}, .id = pattern->id};
        if (match.before.end < match.before.start) /* it began in white space that the last one took */
            match.before.end = match.before.start;
        cursor->start = end;
        return match;
    }
    gb_added_match rest = {.before = {cursor->start, length}, .id = -1};
    if (rest.before.start > length)
        rest.before.start = length;
    cursor->start = length;
    return rest;
}
