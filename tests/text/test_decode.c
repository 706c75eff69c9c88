/* SPDX-License-Identifier: Apache-2.0
 *
 * The streaming detokenizer against the `tokenizers` package's decode.
 */
#include "golden.h"

typedef struct decoding {
    const gumbel_tokenizer *tokenizer;
    int32_t *known; /* every id with a spelling */
    size_t known_count;
    int32_t ids[64];
    size_t count;
} decoding;

/* The ids that make_goldens.py's test_ids makes of the same number. */
static void make_ids(decoding *d, uint64_t index) {
    uint64_t state = index;
    const gb_vocabulary *vocabulary = &d->tokenizer->vocabulary;
    const int32_t *byte_ids =
        gb_is_byte_level(&d->tokenizer->data) ? vocabulary->one_byte : vocabulary->byte_tokens;
    d->count = 0;
    for (uint64_t n = 1 + below(&state, 10); n > 0; n--) {
        uint64_t kind = below(&state, 8);
        if (kind < 4) {
            d->ids[d->count++] = d->known[below(&state, d->known_count)];
        } else if (kind == 4) {
            d->ids[d->count++] = byte_ids[below(&state, 256)];
        } else {
            char character[4];
            size_t size = put_character(random_character(&state), character);
            size_t cut = below(&state, 4) == 0 ? below(&state, size) : 0;
            for (size_t i = 0; i < size - cut; i++)
                d->ids[d->count++] = byte_ids[(uint8_t)character[i]];
        }
    }
}

/* Decodes in a stream, checking that every piece is whole characters. */
static void decode(const gumbel_tokenizer *tokenizer, bool show_special, const int32_t *ids, size_t count,
                   gb_byte_buffer *text) {
    gumbel_detokenizer *detokenizer;
    const char *piece;
    size_t length;
    assert_int_equal(gumbel_detokenizer_create(tokenizer, show_special, &detokenizer, NULL), GUMBEL_OK);
    text->size = 0;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(gumbel_detokenize(detokenizer, ids[i], &piece, &length, NULL), GUMBEL_OK);
        assert_true(gb_utf8_is_valid(piece, length));
        gb_buffer_append(text, piece, length);
    }
    gumbel_detokenize_end(detokenizer, &piece, &length);
    assert_true(gb_utf8_is_valid(piece, length));
    gb_buffer_append(text, piece, length);
    gumbel_detokenizer_destroy(detokenizer);
}

static void compare_line(void *user, size_t line, uint32_t shown, uint32_t hidden) {
    decoding *d = user;
    gb_byte_buffer text = {0};
    make_ids(d, line);
    decode(d->tokenizer, true, d->ids, d->count, &text);
    if (hash_bytes(HASH_START, text.data, text.size) != shown)
        fail_msg("sequence %zu differs: %.*s", line, (int)text.size, (const char *)text.data);
    decode(d->tokenizer, false, d->ids, d->count, &text);
    if (hash_bytes(HASH_START, text.data, text.size) != hidden)
        fail_msg("sequence %zu differs without special tokens: %.*s", line, (int)text.size,
                 (const char *)text.data);
    gb_buffer_free(&text);
}

static void compare_file(const char *tokenizer_path, const char *path) {
    gumbel_tokenizer *tokenizer = load_tokenizer(tokenizer_path);
    static int32_t known[4096];
    decoding d = {.tokenizer = tokenizer, .known = known};
    assert_true(tokenizer->data.token_count <= 4096);
    for (uint32_t id = 0; id < tokenizer->data.token_count; id++) {
        size_t length;
        gb_token_text(&tokenizer->data, (int32_t)id, &length);
        if (length > 0)
            known[d.known_count++] = (int32_t)id;
    }
    assert_int_equal(for_each_line(path, compare_line, &d), 3000);
    gumbel_tokenizer_destroy(tokenizer);
}

static void test_random_ids(void **state) {
    (void)state;
    compare_file(DATA("gemma.tokenizer.json"), DATA("gemma.decode.txt"));
}

static void test_random_bytes(void **state) {
    (void)state;
    compare_file(DATA("qwen.tokenizer.json"), DATA("qwen.decode.txt"));
}

/* Every ▁ of the text becomes a space; nothing else is lost. */
static void append_spaced(gb_byte_buffer *output, const gb_byte_buffer *text) {
    for (size_t at = 0, size; at < text->size; at += size) {
        size = gb_utf8_size((char)text->data[at]);
        bool is_mark = size == 3 && memcmp(text->data + at, "\u2581", 3) == 0;
        gb_buffer_append(output, is_mark ? (const uint8_t *)" " : text->data + at, is_mark ? 1 : size);
    }
}

static void test_round_trip(void **state) {
    (void)state;
    gumbel_tokenizer *tokenizer = load_tokenizer(DATA("gemma.tokenizer.json"));
    json_t *pieces = load_json(DATA("pieces.json"));
    gb_byte_buffer text = {0}, decoded = {0}, expected = {0};
    static int32_t ids[8192];
    for (uint64_t i = 0; i < 2000; i++) {
        size_t count;
        make_string(pieces, i, &text);
        assert_int_equal(
            gumbel_encode(tokenizer, (const char *)text.data, text.size, NULL, ids, 8192, &count, NULL),
            GUMBEL_OK);
        decode(tokenizer, false, ids, count, &decoded);
        expected.size = 0;
        append_spaced(&expected, &text);
        assert_int_equal(decoded.size, expected.size);
        assert_memory_equal(decoded.data, expected.data, expected.size);
    }
    gb_buffer_free(&text);
    gb_buffer_free(&decoded);
    gb_buffer_free(&expected);
    json_decref(pieces);
    gumbel_tokenizer_destroy(tokenizer);
}

static void expect_piece(gumbel_detokenizer *detokenizer, int32_t token, const char *expected) {
    const char *text;
    size_t length;
    assert_int_equal(gumbel_detokenize(detokenizer, token, &text, &length, NULL), GUMBEL_OK);
    assert_int_equal(length, strlen(expected));
    assert_memory_equal(text, expected, length);
}

static void test_character_by_bytes(void **state) {
    (void)state;
    gumbel_tokenizer *tokenizer = load_tokenizer(DATA("gemma.tokenizer.json"));
    const int32_t *byte = tokenizer->vocabulary.byte_tokens;
    gumbel_detokenizer *detokenizer;
    const char *text;
    size_t length;
    assert_int_equal(gumbel_detokenizer_create(tokenizer, false, &detokenizer, NULL), GUMBEL_OK);
    expect_piece(detokenizer, byte[0xE2], "");
    expect_piece(detokenizer, byte[0x82], "");
    expect_piece(detokenizer, gumbel_token_id(tokenizer, "<bos>"), ""); /* hidden: does not end the run */
    expect_piece(detokenizer, byte[0xAC], "\u20AC");
    expect_piece(detokenizer, byte[0xE2], "");
    expect_piece(detokenizer, byte[0x82], "");
    expect_piece(detokenizer, byte['A'],
                 "\uFFFD"
                 "A"); /* one for the maximal subpart */
    expect_piece(detokenizer, byte[0xF0], "");
    expect_piece(detokenizer, gumbel_token_id(tokenizer, "a"),
                 "\uFFFD"
                 "a");
    expect_piece(detokenizer, byte[0xC3], "");
    gumbel_detokenize_end(detokenizer, &text, &length);
    assert_int_equal(length, 3);
    assert_memory_equal(text, "\uFFFD", 3);
    expect_piece(detokenizer, byte[0xA9], "\uFFFD"); /* begins anew: not the rest of an earlier character */
    gumbel_detokenizer_destroy(detokenizer);
    gumbel_tokenizer_destroy(tokenizer);
}

/* At byte level an ill-formed part gives one mark, however many bytes it has. */
static void test_byte_level_parts(void **state) {
    (void)state;
    gumbel_tokenizer *tokenizer = load_tokenizer(DATA("qwen.tokenizer.json"));
    const int32_t *byte = tokenizer->vocabulary.one_byte;
    gumbel_detokenizer *detokenizer;
    const char *text;
    size_t length;
    assert_int_equal(gumbel_detokenizer_create(tokenizer, false, &detokenizer, NULL), GUMBEL_OK);
    expect_piece(detokenizer, byte[0xF0], "");
    expect_piece(detokenizer, byte[0x9F], "");
    expect_piece(detokenizer, gumbel_token_id(tokenizer, "<|im_end|>"), ""); /* hidden: parts nothing */
    expect_piece(detokenizer, byte[0x99], "");
    expect_piece(detokenizer, byte[0x82], "\U0001F642");
    expect_piece(detokenizer, byte[0xE2], "");
    expect_piece(detokenizer, byte[0x82], "");
    expect_piece(detokenizer, gumbel_token_id(tokenizer, "<think>"), "\uFFFD<think>");
    expect_piece(detokenizer, byte[0x80], "\uFFFD");
    expect_piece(detokenizer, byte[0xE2], "");
    expect_piece(detokenizer, byte[0x82], "");
    gumbel_detokenize_end(detokenizer, &text, &length);
    assert_int_equal(length, 3);
    assert_memory_equal(text, "\uFFFD", 3);
    gumbel_detokenizer_destroy(detokenizer);
    gumbel_tokenizer_destroy(tokenizer);
}

static bool count_allocation(void *user, size_t bytes) {
    (void)bytes;
    ++*(int *)user;
    return true;
}

static void check_allocations(const char *path) {
    gumbel_tokenizer *tokenizer = load_tokenizer(path);
    gumbel_detokenizer *detokenizer;
    int allocations = 0;
    assert_int_equal(gumbel_detokenizer_create(tokenizer, true, &detokenizer, NULL), GUMBEL_OK);
    gb_set_allocation_hook(count_allocation, &allocations);
    for (int repeat = 0; repeat < 3; repeat++) {
        for (uint32_t id = 0; id < tokenizer->data.token_count; id++) {
            const char *text;
            size_t length;
            assert_int_equal(gumbel_detokenize(detokenizer, (int32_t)id, &text, &length, NULL), GUMBEL_OK);
        }
    }
    gb_set_allocation_hook(NULL, NULL);
    assert_int_equal(allocations, 0);
    gumbel_detokenizer_destroy(detokenizer);
    gumbel_tokenizer_destroy(tokenizer);
}

static void test_does_not_allocate(void **state) {
    (void)state;
    check_allocations(DATA("whole.tokenizer.json"));
    check_allocations(DATA("qwen.tokenizer.json"));
}

static void test_unknown_id(void **state) {
    (void)state;
    gumbel_tokenizer *tokenizer = load_tokenizer(DATA("gemma.tokenizer.json"));
    gumbel_detokenizer *detokenizer;
    gumbel_error error;
    const char *text;
    size_t length;
    assert_int_equal(gumbel_detokenizer_create(tokenizer, false, &detokenizer, NULL), GUMBEL_OK);
    assert_int_equal(gumbel_detokenize(detokenizer, -1, &text, &length, &error), GUMBEL_ERROR_ARGUMENT);
    assert_int_equal(gumbel_detokenize(detokenizer, 1 << 30, &text, &length, &error), GUMBEL_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "1073741824"));
    gumbel_detokenizer_destroy(detokenizer);
    gumbel_tokenizer_destroy(tokenizer);
}

static void test_padded_vocabulary(void **state) {
    (void)state;
    gumbel_tokenizer *tokenizer = load_tokenizer(DATA("gemma.tokenizer.json"));
    int32_t count = (int32_t)tokenizer->data.token_count;
    gumbel_detokenizer *detokenizer;
    const char *text;
    size_t length;
    assert_int_equal(gumbel_detokenizer_create(tokenizer, true, &detokenizer, NULL), GUMBEL_OK);
    assert_int_equal(gumbel_detokenize(detokenizer, count, &text, &length, NULL), GUMBEL_ERROR_ARGUMENT);
    gb_tokenizer_allow_ids(tokenizer, (uint32_t)count + 8);
    assert_int_equal(gumbel_detokenize(detokenizer, count + 7, &text, &length, NULL), GUMBEL_OK);
    assert_int_equal(length, 0);
    assert_int_equal(gumbel_detokenize(detokenizer, count + 8, &text, &length, NULL), GUMBEL_ERROR_ARGUMENT);
    gumbel_detokenizer_destroy(detokenizer);
    gumbel_tokenizer_destroy(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_ids),         cmocka_unit_test(test_random_bytes),
        cmocka_unit_test(test_round_trip),         cmocka_unit_test(test_byte_level_parts),
        cmocka_unit_test(test_character_by_bytes), cmocka_unit_test(test_does_not_allocate),
        cmocka_unit_test(test_unknown_id),         cmocka_unit_test(test_padded_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
