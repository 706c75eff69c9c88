/* SPDX-License-Identifier: Apache-2.0
 *
 * The strings and id sequences that tests/data/text/make_goldens.py asked the `tokenizers` package about,
 * made again from the same numbers, and the files with its answers.
 */
#ifndef GUMBEL_TESTS_TEXT_GOLDEN_H
#define GUMBEL_TESTS_TEXT_GOLDEN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file_map.h"
#include "base/memory.h"
#include "export/text/tokenizer_json.h"
#include "support/paths.h"
#include "text/base/utf8.h"
#include "text/tokenizer/tokenizer.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define DATA(name) test_data("text/" name)

/* ---- Numbers: splitmix64 ---- */

static inline uint64_t below(uint64_t *state, uint64_t limit) {
    *state += 0x9E3779B97F4A7C15u;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (z ^ z >> 31) % limit;
}

static inline uint32_t random_character(uint64_t *state) {
    uint32_t code = (uint32_t)below(state, 0x110000);
    return code >= 0xD800 && code < 0xE000 ? 0xFFFD : code;
}

static inline size_t put_character(uint32_t code, char out[4]) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(0xF00u >> size | code);
    return size;
}

/* ---- Strings ---- */

static inline json_t *load_json(const char *path) {
    json_error_t error;
    json_t *value = json_load_file(path, JSON_ALLOW_NUL, &error);
    if (!value)
        fail_msg("%s: %s", path, error.text);
    return value;
}

/* Replaces text's content by test string number index. pieces is pieces.json. */
static inline void make_string(const json_t *pieces, uint64_t index, gb_byte_buffer *text) {
    uint64_t state = index;
    text->size = 0;
    for (uint64_t n = 1 + below(&state, 12); n > 0; n--) {
        if (below(&state, 8) == 0) {
            char character[4];
            gb_buffer_append(text, character, put_character(random_character(&state), character));
            continue;
        }
        const json_t *piece = json_array_get(pieces, below(&state, json_array_size(pieces)));
        uint64_t times = below(&state, 16) == 0 ? 1 + below(&state, 40) : 1;
        for (; times > 0; times--)
            gb_buffer_append(text, json_string_value(piece), json_string_length(piece));
    }
}

/* ---- Hashes: FNV-1a ---- */

static inline uint32_t hash_bytes(uint32_t hash, const void *data, size_t size) {
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const uint8_t *)data)[i]) * 0x01000193u;
    return hash;
}

#define HASH_START 0x811C9DC5u

static inline uint32_t hash_ids(const int32_t *ids, size_t count) {
    uint32_t hash = HASH_START;
    for (size_t i = 0; i < count; i++)
        for (int shift = 0; shift < 32; shift += 8)
            hash = (hash ^ ((uint32_t)ids[i] >> shift & 0xFF)) * 0x01000193u;
    return hash;
}

/* Calls check for every line of two hashes in the file. Returns how many there were. */
static inline size_t for_each_line(const char *path,
                                   void (*check)(void *user, size_t line, uint32_t first, uint32_t second),
                                   void *user) {
    char *text;
    assert_int_equal(gb_read_file(path, 1 << 24, &text, NULL, NULL), GUMBEL_OK);
    size_t line = 0;
    unsigned first, second;
    for (const char *at = text; sscanf(at, "%8x %8x", &first, &second) == 2; at += 18)
        check(user, line++, first, second);
    gb_free(text);
    return line;
}

/* ---- Tokenizers ---- */

/* The tokenizer of a tokenizer.json's text. */
static inline gumbel_tokenizer *tokenizer_of(const char *text, size_t length) {
    gb_byte_buffer bytes = {0};
    gumbel_error error = {0};
    gumbel_tokenizer *tokenizer = NULL;
    if (gb_convert_tokenizer_json(text, length, "tokenizer.json", &bytes, &error) != GUMBEL_OK)
        fail_msg("%s", error.message);
    gb_blob blob = {bytes.data, bytes.size};
    if (gb_tokenizer_create(&blob, NULL, &tokenizer, &error) != GUMBEL_OK)
        fail_msg("%s", error.message);
    gb_tokenizer_keep(tokenizer, bytes.data);
    return tokenizer;
}

static inline gumbel_tokenizer *load_tokenizer(const char *path) {
    char *text;
    size_t size;
    assert_int_equal(gb_read_file(path, 1 << 24, &text, &size, NULL), GUMBEL_OK);
    gumbel_tokenizer *tokenizer = tokenizer_of(text, size);
    gb_free(text);
    return tokenizer;
}

#endif
