/* SPDX-License-Identifier: Apache-2.0
 *
 * Token tries: what stands in them, slices, those of tokenizers, and damaged sections.
 */
#include "base/memory.h"
#include "small_vocabulary.h"
#include "support/assertions.h"
#include "support/paths.h"
#include "text/golden.h"
#include "text/trie/section.h"
#include "text/trie/tokenizer_trie.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void test_slices(void **state) {
    (void)state;
    static const struct {
        const char *text;
        unsigned slice;
    } cases[] = {{"a", 0},
                 {"abcd", 0},
                 {"abcde", 1},
                 {"12345678", 1},
                 {"123456789", 2},
                 {"\xC3\xA9", 0},
                 {"a\"", 5},
                 {"\\", 5},
                 {"\n", 5},
                 {"\x7F", 5},
                 {"\xC3", 5},
                 {"a\xA9", 5},
                 {" the ", 1},
                 {"0123456789abcdef", 2},
                 {"0123456789abcdef!", 3},
                 {"0123456789abcdef0123456789abcdef!", 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(gb_slice_of((const uint8_t *)cases[i].text, strlen(cases[i].text)), cases[i].slice);
}

/* Walks all nodes and gathers each token's bytes from them. */
static void test_nodes(void **state) {
    (void)state;
    small_vocabulary all;
    fill_small_vocabulary(&all);
    gb_token_trie *trie;
    assert_ok(gb_token_trie_create(all.tokens, VOCABULARY_SIZE, &trie, NULL), NULL);
    bool seen[VOCABULARY_SIZE] = {false};
    uint8_t path[GB_TRIE_DEPTH];
    for (uint32_t i = 0; i < trie->slice_ends[GB_SLICE_COUNT - 1]; i++) {
        uint32_t depth = trie->nodes[i].size_and_depth & 0xFF, token = trie->nodes[i].token_and_byte >> 8;
        path[depth - 1] = trie->nodes[i].token_and_byte & 0xFF;
        if (token == trie->no_token)
            continue;
        assert_int_equal(all.tokens[token].size, depth);
        assert_memory_equal(all.tokens[token].data, path, depth);
        assert_false(seen[token]);
        seen[token] = true;
    }
    for (uint32_t i = 0; i < trie->twin_count; i++) {
        gb_token_bytes a = all.tokens[trie->twins[i].token], b = all.tokens[trie->twins[i].twin];
        assert_int_equal(a.size, b.size);
        assert_memory_equal(a.data, b.data, a.size);
        assert_true(seen[trie->twins[i].twin] && !seen[trie->twins[i].token]);
        seen[trie->twins[i].token] = true;
    }
    for (uint32_t i = 0; i < VOCABULARY_SIZE; i++)
        assert_int_equal(seen[i], all.tokens[i].size > 0 && i != LONG_TOKEN);
    assert_int_equal(trie->long_count, 1);
    assert_int_equal(trie->long_tokens[0], LONG_TOKEN);
    gb_token_trie_destroy(trie);
}

static void check_damage(const gb_byte_buffer *section, size_t at, uint32_t value, const char *message) {
    uint8_t *copy = gb_allocate(section->size, 1);
    memcpy(copy, section->data, section->size);
    memcpy(copy + at, &value, sizeof value);
    gb_token_trie *trie;
    gumbel_error error;
    gumbel_status status = gb_token_trie_open(copy, section->size, &trie, &error);
    assert_true(status == GUMBEL_ERROR_FORMAT || status == GUMBEL_ERROR_UNSUPPORTED);
    assert_fails(status, status, &error, message);
    gb_free(copy);
}

static void test_damaged(void **state) {
    (void)state;
    static const gb_token_bytes tokens[] = {{(const uint8_t *)"a", 1},
                                            {(const uint8_t *)"ab", 2},
                                            {(const uint8_t *)"\"", 1},
                                            {(const uint8_t *)"a", 1}};
    gb_byte_buffer section = {0};
    gb_token_trie *trie;
    gumbel_error error;
    assert_ok(gb_token_trie_write(tokens, 4, &section, &error), &error);
    const size_t nodes = sizeof(gb_trie_header);
    check_damage(&section, 0, 0, "not one");
    check_damage(&section, 4, 9, "version 9");
    check_damage(&section, 8, UINT32_MAX, "more tokens or nodes");
    check_damage(&section, 12, 2, "do not fill it");
    check_damage(&section, offsetof(gb_trie_header, slice_ends), 4, "slices are not in order");
    check_damage(&section, offsetof(gb_trie_header, slice_ends) + 20, 2, "nodes that are in no slice");
    check_damage(&section, nodes, 5u << 8 | 'a', "a node's token is out of range");
    check_damage(&section, nodes + 4, 3u << 8 | 1, "size or depth");
    check_damage(&section, nodes + 4, 0u << 8 | 1, "size or depth");
    check_damage(&section, nodes + 12, 1u << 8 | 1, "size or depth");
    check_damage(&section, nodes + 12, 1u << 8 | 3, "size or depth");
    check_damage(&section, nodes + 24, 4, "a token out of range");
    check_damage(&section, nodes + 32 + 4, 100, "a token out of range");
    for (size_t size = 0; size < section.size; size++)
        assert_int_equal(gb_token_trie_open(section.data, size, &trie, NULL), GUMBEL_ERROR_FORMAT);
    assert_ok(gb_token_trie_open(section.data, section.size, &trie, &error), &error);
    gb_token_trie_destroy(trie);
    gb_buffer_free(&section);
}

/* Special tokens and others that no text is spelled with have no bytes. */
static bool is_outside(const gumbel_tokenizer *tokenizer, int32_t token) {
    return (uint32_t)token >= tokenizer->data.token_count || !gb_is_ordinary(&tokenizer->vocabulary, token);
}

/* A token's bytes are what the detokenizer makes of it alone, as far as that is text. */
static void check_token(const gumbel_tokenizer *tokenizer, const gb_token_trie *trie, int32_t token) {
    gumbel_detokenizer *detokenizer;
    const char *piece;
    size_t length;
    gb_token_bytes bytes = gb_bytes_of_token(trie, (uint32_t)token);
    assert_ok(gumbel_detokenizer_create(tokenizer, false, &detokenizer, NULL), NULL);
    assert_ok(gumbel_detokenize(detokenizer, token, &piece, &length, NULL), NULL);
    if (is_outside(tokenizer, token)) {
        assert_int_equal(bytes.size, 0);
    } else if (gb_utf8_is_valid((const char *)bytes.data, bytes.size)) {
        assert_int_equal(bytes.size, length);
        assert_memory_equal(bytes.data, piece, length);
    } else {
        assert_true(bytes.size > 0);
    }
    gumbel_detokenizer_destroy(detokenizer);
}

static void test_tokenizers(void **state) {
    (void)state;
    const char *const paths[] = {bundled_model("gemma4-tiny/tokenizer.json"),
                                 bundled_model("qwen3_5-moe-tiny/tokenizer.json")};
    for (int i = 0; i < 2; i++) {
        gumbel_tokenizer *tokenizer = load_tokenizer(paths[i]);
        gb_byte_buffer section = {0};
        gb_token_trie *trie;
        gumbel_error error;
        assert_ok(gb_write_tokenizer_trie(tokenizer, &section, &error), &error);
        assert_ok(gb_token_trie_open(section.data, section.size, &trie, &error), &error);
        assert_true(trie->token_count >= tokenizer->data.token_count && trie->token_count > 1000);
        for (uint32_t token = 0; token < trie->token_count; token++)
            check_token(tokenizer, trie, (int32_t)token);
        gb_token_trie_destroy(trie);
        gb_buffer_free(&section);
        gumbel_tokenizer_destroy(tokenizer);
    }
}

static void test_no_tokens(void **state) {
    (void)state;
    gb_token_trie *trie;
    assert_ok(gb_token_trie_create(NULL, 0, &trie, NULL), NULL);
    assert_int_equal(trie->word_count, 0);
    gb_token_trie_destroy(trie);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_slices), cmocka_unit_test(test_nodes),
                                       cmocka_unit_test(test_damaged), cmocka_unit_test(test_tokenizers),
                                       cmocka_unit_test(test_no_tokens)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
