/* SPDX-License-Identifier: Apache-2.0
 *
 * Encoding against the `tokenizers` package, over strings of many scripts, controls and special tokens.
 */
#include "golden.h"

#include "text/tokenizer/encode.h"

#include <stdlib.h>

typedef struct comparison {
    const gumbel_tokenizer *tokenizer;
    json_t *pieces;
    gb_byte_buffer text;
    int32_t ids[8192];
} comparison;

static uint32_t encode_hash(comparison *c, bool parse_special) {
    gumbel_encode_options options = {.size = sizeof options, .parse_special = parse_special};
    size_t count;
    gumbel_error error = {0};
    if (gumbel_encode(c->tokenizer, (const char *)c->text.data, c->text.size, &options, c->ids, 8192, &count,
                      &error) != GUMBEL_OK)
        fail_msg("%s", error.message);
    return hash_ids(c->ids, count);
}

static void compare_line(void *user, size_t line, uint32_t parsed, uint32_t plain) {
    comparison *c = user;
    make_string(c->pieces, line, &c->text);
    if (encode_hash(c, true) != parsed)
        fail_msg("string %zu differs: %.*s", line, (int)c->text.size, (const char *)c->text.data);
    if (encode_hash(c, false) != plain)
        fail_msg("string %zu differs where nothing is special: %.*s", line, (int)c->text.size,
                 (const char *)c->text.data);
}

static void compare_all(const gumbel_tokenizer *tokenizer, const char *pieces, const char *path,
                        size_t lines) {
    static comparison c;
    c = (comparison){.tokenizer = tokenizer, .pieces = load_json(pieces)};
    assert_int_equal(for_each_line(path, compare_line, &c), lines);
    json_decref(c.pieces);
    gb_buffer_free(&c.text);
}

static void compare_file(const char *tokenizer_path, const char *pieces, const char *path, size_t lines) {
    gumbel_tokenizer *tokenizer = load_tokenizer(tokenizer_path);
    compare_all(tokenizer, pieces, path, lines);
    gumbel_tokenizer_destroy(tokenizer);
}

static void test_gemma(void **state) {
    (void)state;
    compare_file(DATA("gemma.tokenizer.json"), DATA("pieces.json"), DATA("gemma.encode.txt"), 10000);
}

/* No normalizer, split pieces, missing byte tokens, separate unknown tokens, all flags of added tokens. */
static void test_odd(void **state) {
    (void)state;
    compare_file(DATA("odd.tokenizer.json"), DATA("pieces.json"), DATA("odd.encode.txt"), 3000);
}

/* Whole pieces before merges, fused unknown tokens, several replacements, normalized added tokens. */
static void test_whole(void **state) {
    (void)state;
    compare_file(DATA("whole.tokenizer.json"), DATA("pieces.json"), DATA("whole.encode.txt"), 3000);
}

/* Byte level: NFC, the family's splitting expression, added tokens that are special and that are not. */
static void test_qwen(void **state) {
    (void)state;
    compare_file(DATA("qwen.tokenizer.json"), DATA("byte_pieces.json"), DATA("qwen.encode.txt"), 10000);
}

/* Two expressions, one of which also matches nothing; whole pieces before merges, a byte without a token,
 * normalized added tokens. */
static void test_bytes(void **state) {
    (void)state;
    compare_file(DATA("bytes.tokenizer.json"), DATA("byte_pieces.json"), DATA("bytes.encode.txt"), 3000);
}

/* The older form of merges: "a b" in place of ["a", "b"]. */
static void test_merges_as_strings(void **state) {
    (void)state;
    json_t *root = load_json(DATA("gemma.tokenizer.json"));
    json_t *merges = json_object_get(json_object_get(root, "model"), "merges");
    for (size_t i = 0; i < json_array_size(merges); i++) {
        const json_t *pair = json_array_get(merges, i);
        assert_true(json_is_array(pair));
        json_array_set_new(merges, i,
                           json_sprintf("%s %s", json_string_value(json_array_get(pair, 0)),
                                        json_string_value(json_array_get(pair, 1))));
    }
    char *text = json_dumps(root, 0);
    json_decref(root);
    gumbel_tokenizer *tokenizer = tokenizer_of(text, strlen(text));
    free(text);
    compare_all(tokenizer, DATA("pieces.json"), DATA("gemma.encode.txt"), 10000);
    gumbel_tokenizer_destroy(tokenizer);
}

static size_t encode(const gumbel_tokenizer *tokenizer, const char *text, size_t length, bool add_special,
                     int32_t ids[64]) {
    gumbel_encode_options options = {.size = sizeof options, .add_special = add_special};
    size_t count;
    assert_int_equal(gumbel_encode(tokenizer, text, length, &options, ids, 64, &count, NULL), GUMBEL_OK);
    return count;
}

static void test_around_plain_text(void **state) {
    (void)state;
    gumbel_tokenizer *tokenizer = load_tokenizer(DATA("gemma.tokenizer.json"));
    int32_t with[64], without[64];
    size_t count = encode(tokenizer, "the fox", 7, false, without);
    assert_int_equal(encode(tokenizer, "the fox", 7, true, with), count + 1);
    assert_int_equal(with[0], gumbel_token_id(tokenizer, "<bos>"));
    assert_memory_equal(with + 1, without, count * sizeof *with);
    assert_int_equal(encode(tokenizer, "", 0, true, with), 1);
    assert_int_equal(encode(tokenizer, "", 0, false, with), 0);
    gumbel_tokenizer_destroy(tokenizer);
}

/* Every ill-formed part is one U+FFFD, as in bytes.decode(errors="replace"). */
static void test_invalid_utf8(void **state) {
    (void)state;
    static const struct {
        const char *broken, *repaired;
    } cases[] = {
        {"a\x80z", "a\uFFFDz"},
        {"\xFF\xFE", "\uFFFD\uFFFD"},
        {"\xE2\x82z", "\uFFFDz"},
        {"\xF0\x9F\x98", "\uFFFD"},
        {"\xF0\x9F\xE2\x82\xAC", "\uFFFD\u20AC"},
        {"\xC0\xAF", "\uFFFD\uFFFD"},
        {"\xE0\x80\xAF", "\uFFFD\uFFFD\uFFFD"},
        {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
        {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
        {"\xC3(", "\uFFFD("},
    };
    gumbel_tokenizer *tokenizer = load_tokenizer(DATA("gemma.tokenizer.json"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int32_t broken[64], repaired[64];
        size_t count = encode(tokenizer, cases[i].repaired, strlen(cases[i].repaired), false, repaired);
        assert_int_equal(encode(tokenizer, cases[i].broken, strlen(cases[i].broken), false, broken), count);
        assert_memory_equal(broken, repaired, count * sizeof *broken);
    }
    gumbel_tokenizer_destroy(tokenizer);
}

static void test_capacity(void **state) {
    (void)state;
    gumbel_tokenizer *tokenizer = load_tokenizer(DATA("gemma.tokenizer.json"));
    const char *text = "the quick brown fox";
    int32_t all[64], some[3] = {-7, -7, -7};
    size_t count, needed = encode(tokenizer, text, strlen(text), false, all);
    gumbel_error error;
    assert_int_equal(gumbel_encode(tokenizer, text, strlen(text), NULL, NULL, 0, &count, NULL),
                     GUMBEL_ERROR_LIMIT);
    assert_int_equal(count, needed);
    assert_int_equal(gumbel_encode(tokenizer, text, strlen(text), NULL, some, 2, &count, &error),
                     GUMBEL_ERROR_LIMIT);
    assert_int_equal(error.status, GUMBEL_ERROR_LIMIT);
    assert_int_equal(count, needed);
    assert_memory_equal(some, all, 2 * sizeof *some);
    assert_int_equal(some[2], -7);
    gumbel_tokenizer_destroy(tokenizer);
}

static void test_token_ids(void **state) {
    (void)state;
    gumbel_tokenizer *tokenizer = load_tokenizer(DATA("gemma.tokenizer.json"));
    assert_int_equal(gumbel_token_id(tokenizer, "<bos>"), 2);
    assert_int_equal(gumbel_token_id(tokenizer, "<image>"), tokenizer->data.token_count - 1);
    assert_int_equal(gumbel_token_id(tokenizer, "no such token"), -1);
    assert_int_equal(gumbel_token_id(tokenizer, ""), -1);
    gumbel_tokenizer_destroy(tokenizer);
}

/* A special token that merges could spell is still never made from text that is not parsed. */
static void test_merges_make_no_special_token(void **state) {
    (void)state;
    const char *json =
        "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"<\": 0, \"s\": 1, \">\": 2, \"<s\": 3, \"<s>\": 4},"
        " \"merges\": [[\"<\", \"s\"], [\"<s\", \">\"]]}, \"decoder\": {\"type\": \"Fuse\"},"
        " \"added_tokens\": [{\"id\": 4, \"content\": \"<s>\", \"special\": true, \"normalized\": false,"
        " \"lstrip\": false, \"rstrip\": false, \"single_word\": false}]}";
    gumbel_tokenizer *tokenizer = tokenizer_of(json, strlen(json));
    gumbel_encode_options parse = {.size = sizeof parse, .parse_special = true};
    int32_t ids[64];
    size_t count;
    assert_int_equal(encode(tokenizer, "<s>", 3, false, ids), 2);
    assert_int_equal(ids[0], 3);
    assert_int_equal(ids[1], 2);
    assert_int_equal(gumbel_encode(tokenizer, "<s>", 3, &parse, ids, 64, &count, NULL), GUMBEL_OK);
    assert_int_equal(count, 1);
    assert_int_equal(ids[0], 4);
    gumbel_tokenizer_destroy(tokenizer);
}

/* A literal part's end does not hide the special token that follows it. */
static void test_literal_spans(void **state) {
    (void)state;
    gumbel_tokenizer *tokenizer = load_tokenizer(DATA("gemma.tokenizer.json"));
    const char *text = "<|turn><bos><|turn<turn|>";
    gb_span literal = {0, 18};
    gb_literal_spans spans = {&literal, 1};
    int32_t ids[64], expected[64];
    gb_token_sink sink = {ids, 64, 0};
    assert_int_equal(gb_encode(tokenizer, text, strlen(text), &spans, &sink, NULL), GUMBEL_OK);
    size_t count = encode(tokenizer, text, 18, false, expected);
    expected[count++] = gumbel_token_id(tokenizer, "<turn|>");
    assert_int_equal(sink.count, count);
    assert_memory_equal(ids, expected, count * sizeof *ids);

    /* One byte of the user's makes the whole spelling ordinary text. */
    literal = (gb_span){0, 1};
    sink.count = 0;
    assert_int_equal(gb_encode(tokenizer, "<bos>", 5, &spans, &sink, NULL), GUMBEL_OK);
    count = encode(tokenizer, "<bos>", 5, false, expected);
    assert_int_equal(sink.count, count);
    assert_memory_equal(ids, expected, count * sizeof *ids);
    gumbel_tokenizer_destroy(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemma),
        cmocka_unit_test(test_odd),
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_qwen),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_merges_as_strings),
        cmocka_unit_test(test_around_plain_text),
        cmocka_unit_test(test_invalid_utf8),
        cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_token_ids),
        cmocka_unit_test(test_merges_make_no_special_token),
        cmocka_unit_test(test_literal_spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
