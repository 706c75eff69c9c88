/* SPDX-License-Identifier: Apache-2.0
 *
 * A set is a tree of its texts, whose equal parts are stored once. Parts have lower numbers than what is made
 * of them.
 */
#include "grammar/match/text_sets.h"

#include "base/memory.h"

#include <string.h>

enum { MOST_WORDS = 1 + 2 * 256 }; /* of a set */

bool gb_text_sets_begin(gb_text_sets *sets) {
    const uint32_t empty[] = {0};
    uint32_t number;
    return gb_intern(&sets->table, empty, 1, &number);
}

void gb_text_sets_free(gb_text_sets *sets) {
    gb_intern_free(&sets->table);
    gb_free(sets->path);
    *sets = (gb_text_sets){0};
}

size_t gb_text_sets_bytes(const gb_text_sets *sets) {
    return gb_intern_bytes(&sets->table) + sets->path_capacity * sizeof *sets->path;
}

bool gb_text_append(gb_text_sets *sets, uint32_t text, uint8_t byte, uint32_t *longer) {
    return gb_intern(&sets->table, (const uint32_t[]){text, byte}, 2, longer);
}

/* Where the byte stands among those of a set's words, or belongs. */
static size_t place_of(const uint32_t *words, size_t count, uint32_t byte) {
    size_t first = 0, end = count / 2;
    while (first < end) {
        const size_t middle = first + (end - first) / 2;
        if (words[1 + 2 * middle] < byte)
            first = middle + 1;
        else
            end = middle;
    }
    return 1 + 2 * first;
}

uint32_t gb_texts_after(const gb_text_sets *sets, uint32_t set, uint8_t byte) {
    const uint32_t *words = gb_interned(&sets->table, set);
    const size_t count = gb_interned_size(&sets->table, set), at = place_of(words, count, byte);
    return at < count && words[at] == byte ? words[at + 1] : GB_NO_TEXTS;
}

/* ---- One more text ------------------------------------------------------------------------------------- */

/* The set with one more text, which begins with the byte; `after` has what follows that. */
static bool with_branch(gb_text_sets *sets, uint32_t set, uint8_t byte, uint32_t after, uint32_t *with) {
    uint32_t words[MOST_WORDS];
    size_t count = gb_interned_size(&sets->table, set);
    memcpy(words, gb_interned(&sets->table, set), count * sizeof *words);
    const size_t at = place_of(words, count, byte);
    if (at == count || words[at] != byte) {
        memmove(words + at + 2, words + at, (count - at) * sizeof *words);
        count += 2;
    }
    words[0] += 2;
    words[at] = byte;
    words[at + 1] = after;
    return gb_intern(&sets->table, words, count, with);
}

static bool with_empty(gb_text_sets *sets, uint32_t set, uint32_t *with) {
    uint32_t words[MOST_WORDS];
    const size_t count = gb_interned_size(&sets->table, set);
    memcpy(words, gb_interned(&sets->table, set), count * sizeof *words);
    words[0] += 3;
    return gb_intern(&sets->table, words, count, with);
}

/* Writes the text's bytes to the path, the last one first, each before room for a set. */
static bool write_path(gb_text_sets *sets, uint32_t text, size_t *count) {
    *count = 0;
    for (; text != GB_EMPTY_TEXT; text = gb_interned(&sets->table, text)[0]) {
        if (!gb_grow((void **)&sets->path, &sets->path_capacity, *count + 2, sizeof *sets->path))
            return false;
        sets->path[*count] = gb_interned(&sets->table, text)[1];
        *count += 2;
    }
    return true;
}

bool gb_texts_add(gb_text_sets *sets, uint32_t set, uint32_t text, uint32_t *with) {
    size_t count;
    if (!write_path(sets, text, &count))
        return false;
    for (size_t at = count; at > 0; at -= 2) {
        sets->path[at - 1] = set;
        set = gb_texts_after(sets, set, (uint8_t)sets->path[at - 2]);
    }
    bool is_added = with_empty(sets, set, &set);
    for (size_t at = 0; at < count && is_added; at += 2)
        is_added = with_branch(sets, sets->path[at + 1], (uint8_t)sets->path[at], set, &set);
    *with = set;
    return is_added;
}

/* ---- To another table ---------------------------------------------------------------------------------- */

/* Whether a word of so many is the number of a part. */
static bool is_part(size_t word, size_t count) {
    return count == 2 ? word == 0 : word > 0 && word % 2 == 0;
}

/* A part that is not moved yet, or 0. */
static uint32_t next_part(const gb_text_sets *from, const uint32_t *moved, uint32_t number) {
    const size_t count = gb_interned_size(&from->table, number);
    const uint32_t *words = gb_interned(&from->table, number);
    for (size_t i = 0; i < count; i++)
        if (is_part(i, count) && words[i] && !moved[words[i]])
            return words[i];
    return 0;
}

/* Moves what has its parts there. */
static bool move_one(const gb_text_sets *from, gb_text_sets *to, uint32_t *moved, uint32_t number) {
    uint32_t words[MOST_WORDS];
    const size_t count = gb_interned_size(&from->table, number);
    memcpy(words, gb_interned(&from->table, number), count * sizeof *words);
    for (size_t i = 0; i < count; i++)
        if (is_part(i, count))
            words[i] = moved[words[i]];
    return gb_intern(&to->table, words, count, &moved[number]);
}

bool gb_texts_move(const gb_text_sets *from, gb_text_sets *to, uint32_t *moved, uint32_t *number) {
    size_t count = 0;
    for (uint32_t part = moved[*number] ? 0 : *number; part || count;) {
        if (!gb_grow((void **)&to->path, &to->path_capacity, count + 1, sizeof *to->path))
            return false;
        if (part)
            to->path[count++] = part;
        else if (!move_one(from, to, moved, to->path[--count]))
            return false;
        part = count ? next_part(from, moved, to->path[count - 1]) : 0;
    }
    *number = moved[*number];
    return true;
}
