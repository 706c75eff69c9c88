/* SPDX-License-Identifier: Apache-2.0
 *
 * A vocabulary for tests: every byte, texts of a, b and c, pieces of JSON and of characters, the same bytes
 * twice, a token that is too long for the trie, and special tokens.
 */
#ifndef GUMBEL_TESTS_GRAMMAR_SMALL_VOCABULARY_H
#define GUMBEL_TESTS_GRAMMAR_SMALL_VOCABULARY_H

#include "text/trie/trie.h"

#include <string.h>

enum {
    VOCABULARY_SIZE = 333,
    SPECIAL_TOKEN = 330,
    OTHER_SPECIAL_TOKEN = 331,
    END_TOKEN = 332,
    LONG_TOKEN = 329
};

typedef struct small_vocabulary {
    uint8_t bytes[256];
    char triples[39][4];
    uint8_t run[300]; /* of a */
    gb_token_bytes tokens[VOCABULARY_SIZE];
    gb_token_trie *trie;
} small_vocabulary;

static inline void fill_small_vocabulary(small_vocabulary *all) {
    static const char *const pieces[] = {"\"",
                                         "\":",
                                         "\",",
                                         "{\"",
                                         "\"}",
                                         "\": \"",
                                         " the",
                                         "the",
                                         "12",
                                         "3.5",
                                         "true",
                                         "null",
                                         "\xC3\xA9",
                                         "\xE4\xB8\xAD",
                                         "\xE4\xB8",
                                         "\x96\xE5",
                                         "\xF0\x9F\x98\x80",
                                         "\xF0\x9F",
                                         "\\n",
                                         "\\u00",
                                         "hello world",
                                         "abababab",
                                         "a",
                                         "ab",
                                         "[1, ",
                                         "]}",
                                         "},",
                                         "  ",
                                         "\n  ",
                                         "\xE4\xB8\xAD\xE6\x96\x87",
                                         "<b>",
                                         "</b>",
                                         "x\xC3",
                                         "-"};
    memset(all, 0, sizeof *all);
    size_t count = 0, triple = 0;
    for (; count < 256; count++) {
        all->bytes[count] = (uint8_t)count;
        all->tokens[count] = (gb_token_bytes){&all->bytes[count], 1};
    }
    for (int length = 2; length <= 3; length++)
        for (int n = 0; n < (length == 2 ? 9 : 27); n++, triple++) {
            for (int i = 0, rest = n; i < length; i++, rest /= 3)
                all->triples[triple][i] = (char)('a' + rest % 3);
            all->tokens[count++] = (gb_token_bytes){(uint8_t *)all->triples[triple], (size_t)length};
        }
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        all->tokens[count++] = (gb_token_bytes){(const uint8_t *)pieces[i], strlen(pieces[i])};
    memset(all->run, 'a', sizeof all->run);
    all->tokens[LONG_TOKEN] = (gb_token_bytes){all->run, sizeof all->run};
}

/* With its trie, for the caller to destroy. False: no memory. */
static inline bool make_small_vocabulary(small_vocabulary *all) {
    fill_small_vocabulary(all);
    return gb_token_trie_create(all->tokens, VOCABULARY_SIZE, &all->trie, NULL) == GUMBEL_OK;
}

#endif
