/* SPDX-License-Identifier: Apache-2.0
 *
 * "Did you mean": the nearest known word by edit distance, where it is near for its length.
 */
#include "cli/options/options.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_WORD = 64 };

static size_t smallest(size_t a, size_t b, size_t c) {
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* How many characters must be changed, added, left out or swapped with their neighbour to get from one word
 * to the other; both have at most LONGEST_WORD. */
static size_t edit_distance(const char *word, size_t word_length, const char *other, size_t other_length) {
    size_t rows[3][LONGEST_WORD + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= other_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= word_length; i++) {
        size_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
        row[0] = i;
        for (size_t j = 1; j <= other_length; j++) {
            row[j] = smallest(row[j - 1] + 1, above[j] + 1, above[j - 1] + (word[i - 1] != other[j - 1]));
            bool swapped = i > 1 && j > 1 && word[i - 1] == other[j - 2] && word[i - 2] == other[j - 1];
            if (swapped && before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
    }
    return row[other_length];
}

/* Typing errors that a word of that length may have and still be meant: one in 3 to 6 characters, two in 7 to
 * 10. */
static size_t most_errors(size_t length) {
    return length < 3 ? 0 : (length + 1) / 4;
}

static bool begins_with(const char *text, size_t length, const char *beginning, size_t beginning_length) {
    return beginning_length >= 3 && length > beginning_length &&
           memcmp(text, beginning, beginning_length) == 0;
}

const char *cli_suggest(const char *word, const char *candidates, char *found, size_t capacity) {
    const char *name = word + strspn(word, "-");
    size_t length = strlen(name);
    if (length == 0 || length > LONGEST_WORD)
        return NULL;
    size_t best = most_errors(length) + 1;
    found[0] = '\0';
    const char *candidate;
    for (size_t n; (n = cli_next_name(&candidates, &candidate)) > 0;) {
        size_t dashes = strspn(candidate, "-");
        if (n - dashes > LONGEST_WORD || n >= capacity)
            continue;
        size_t distance = edit_distance(name, length, candidate + dashes, n - dashes);
        if (distance > 1 && begins_with(candidate + dashes, n - dashes, name, length))
            distance = 1; /* a word that was not written to its end */
        if (distance < best) {
            best = distance;
            snprintf(found, capacity, "%.*s", (int)n, candidate);
        }
    }
    return found[0] ? found : NULL;
}
