/* SPDX-License-Identifier: Apache-2.0
 *
 * "Did you mean": the nearest known word by edit distance.
 */
#include "cli/options.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST_WORD = 32 };

static size_t smallest(size_t a, size_t b, size_t c) {
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Levenshtein's distance of a word and the first length bytes of another; both at most LONGEST_WORD. */
static size_t edit_distance(const char *word, const char *other, size_t length) {
    size_t row[LONGEST_WORD + 1];
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 0; word[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < length; j++) {
            size_t above = row[j + 1];
            row[j + 1] = smallest(row[j] + 1, above + 1, diagonal + (word[i] == other[j] ? 0 : 1));
            diagonal = above;
        }
    }
    return row[length];
}

const char *cli_suggest(const char *word, const char *candidates, char *found, size_t capacity) {
    size_t length = strlen(word);
    if (length > LONGEST_WORD)
        return NULL;
    size_t best = length / 3 + 2; /* a typing error or two, not another word */
    found[0] = '\0';
    const char *candidate;
    for (size_t n; (n = cli_next_name(&candidates, &candidate)) > 0;) {
        size_t distance = n <= LONGEST_WORD ? edit_distance(word, candidate, n) : best;
        if (distance < best && n < capacity) {
            best = distance;
            snprintf(found, capacity, "%.*s", (int)n, candidate);
        }
    }
    return found[0] ? found : NULL;
}
