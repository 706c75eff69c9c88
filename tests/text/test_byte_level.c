/* SPDX-License-Identifier: Apache-2.0
 *
 * What is particular to byte-level tokenizers: every character of Unicode, splitting by an expression and its
 * limits, what is refused, bad input, and long texts. Encoding and decoding as such are compared in
 * test_encode.c and test_decode.c.
 */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "bad_input.h"

#include <pcre2.h>
#include <stdlib.h>
#include <time.h>
#include <utf8proc.h>

/* A small valid file; the macros replace its parts. Ġ is the space, Ċ the line feed. */
#define FLAGS(special)                                                                                       \
    "\"special\":" special ",\"normalized\":false,\"lstrip\":false,\"rstrip\":false,\"single_word\":false"
#define VOCAB                                                                                                \
    "\"a\":0,\"b\":1,\"\\u0120\":2,\"\\u010a\":3,\"\\u00e2\":4,\"\\u0124\":5,\"\\u00ac\":6,"                 \
    "\"ab\":7,\"\\u0120ab\":8,\"\\u00e2\\u0124\":9"
#define MERGES "[[\"a\",\"b\"],[\"\\u0120\",\"ab\"],[\"\\u00e2\",\"\\u0124\"]]"
#define MODEL_OF(keys, vocab)                                                                                \
    "{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":\"\","              \
    "\"end_of_word_suffix\":\"\",\"fuse_unk\":false," keys "\"vocab\":{" vocab "},\"merges\":" MERGES "}"
#define MODEL MODEL_OF("\"byte_fallback\":false,\"ignore_merges\":false,", VOCAB)
#define ADDED                                                                                                \
    "{\"id\":10,\"content\":\"<s>\"," FLAGS("true") "},{\"id\":11,\"content\":\"<t>\"," FLAGS("false") "}"
#define BYTES "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":false,\"use_regex\":false}"
#define SPLIT_OF(pattern, behavior)                                                                          \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" pattern "\"},\"behavior\":\"" behavior                   \
    "\",\"invert\":false}"
#define SEQUENCE(steps) "{\"type\":\"Sequence\",\"pretokenizers\":[" steps "]}"
#define FILE_OF(model, added, normalizer, splitter, decoder, processor)                                      \
    "{\"model\":" model ",\"added_tokens\":[" added "],\"normalizer\":" normalizer                           \
    ",\"pre_tokenizer\":" splitter ",\"decoder\":" decoder ",\"post_processor\":" processor "}"
#define NFC "{\"type\":\"NFC\"}"
#define WITH_MODEL(model)                                                                                    \
    FILE_OF(model, ADDED, NFC, SEQUENCE(SPLIT_OF("a+|b", "Isolated") "," BYTES), BYTES, BYTES)
#define WITH_ADDED(added) FILE_OF(MODEL, added, NFC, BYTES, BYTES, "null")
#define WITH_SPLITTER(splitter) FILE_OF(MODEL, ADDED, NFC, splitter, BYTES, BYTES)
#define WITH_EXPRESSION(text) WITH_SPLITTER(SEQUENCE(SPLIT_OF(text, "Isolated") "," BYTES))
#define WITH_DECODER(decoder) FILE_OF(MODEL, ADDED, NFC, BYTES, decoder, "null")
#define VALID                                                                                                \
    WITH_EXPRESSION(                                                                                         \
        "(?i:'s|'t)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+")

static gumbel_tokenizer *small_tokenizer(const char *json) {
    return tokenizer_of(json, strlen(json));
}

static size_t encode(const gumbel_tokenizer *tokenizer, const char *text, bool parse_special,
                     int32_t ids[64]) {
    gumbel_encode_options options = {.size = sizeof options, .parse_special = parse_special};
    size_t count;
    assert_int_equal(gumbel_encode(tokenizer, text, strlen(text), &options, ids, 64, &count, NULL),
                     GUMBEL_OK);
    return count;
}

static void expect_ids(const gumbel_tokenizer *tokenizer, const char *text, bool parse_special,
                       const int32_t *expected, size_t count) {
    int32_t ids[64];
    assert_int_equal(encode(tokenizer, text, parse_special, ids), count);
    assert_memory_equal(ids, expected, count * sizeof *ids);
}
#define EXPECT_IDS(tokenizer, text, parse, ...)                                                              \
    expect_ids(tokenizer, text, parse, (const int32_t[]){__VA_ARGS__},                                       \
               sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static void test_small(void **state) {
    (void)state;
    gumbel_tokenizer *tokenizer = small_tokenizer(VALID);
    EXPECT_IDS(tokenizer, "ab ab\n", true, 7, 8, 3);
    EXPECT_IDS(tokenizer, "\u20AC", true, 9, 6); /* E2 82, AC */
    EXPECT_IDS(tokenizer,
               "a\xFF"
               "b",
               true, 0, 1); /* U+FFFD has bytes without a token */
    assert_int_equal(gumbel_token_id(tokenizer, " ab"), 8);
    gumbel_tokenizer_destroy(tokenizer);
}

/* parse_special decides about special tokens; added tokens that are not special are found either way. */
static void test_added_tokens(void **state) {
    (void)state;
    gumbel_tokenizer *tokenizer = small_tokenizer(VALID);
    EXPECT_IDS(tokenizer, "a<s>b<t>a", true, 0, 10, 1, 11, 0);
    EXPECT_IDS(tokenizer, "a<s>b<t>a", false, 0, 1, 11, 0); /* "<s>" is bytes, which have no tokens here */
    gumbel_tokenizer_destroy(tokenizer);
}

/* ---- Unicode ---- */

typedef struct characters {
    const gumbel_tokenizer *tokenizer;
    gb_byte_buffer text;
    int32_t *ids;
} characters;

enum { BLOCK = 1024, IDS_OF_A_BLOCK = 64 * BLOCK };

static void append_text(gb_byte_buffer *text, const char *piece) {
    gb_buffer_append(text, piece, strlen(piece));
}

/* What make_goldens.py's write_characters makes of the block. */
static void make_block(uint32_t first, gb_byte_buffer *text) {
    static const char *const around[] = {"x", "\u0334\u0323", "\u0301", "\u0345 ", "1"};
    text->size = 0;
    for (uint32_t c = first; c < first + BLOCK; c++) {
        char character[4];
        size_t size = put_character(c, character);
        for (int i = 0; i < 5 && !(c >= 0xD800 && c < 0xE000); i++) {
            append_text(text, around[i]);
            if (i < 4)
                gb_buffer_append(text, character, size);
        }
    }
}

/* Later libraries know characters that the package does not. */
static bool is_known_unicode(void) {
    char version[64];
    pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, version);
    return atoi(version) <= 16 && atoi(utf8proc_unicode_version()) <= 16;
}

static void check_characters(gumbel_tokenizer *tokenizer, const char *path) {
    characters all = {.tokenizer = tokenizer, .ids = gb_allocate(IDS_OF_A_BLOCK, sizeof(int32_t))};
    char *golden;
    assert_int_equal(gb_read_file(path, 1 << 20, &golden, NULL, NULL), GUMBEL_OK);
    unsigned expected;
    uint32_t first = 0;
    for (const char *at = golden; sscanf(at, "%8x", &expected) == 1; at += 9) {
        size_t count;
        make_block(first, &all.text);
        assert_int_equal(gumbel_encode(tokenizer, (const char *)all.text.data, all.text.size, NULL, all.ids,
                                       IDS_OF_A_BLOCK, &count, NULL),
                         GUMBEL_OK);
        if (hash_ids(all.ids, count) != expected)
            fail_msg("characters U+%04X to U+%04X differ", first, first + BLOCK - 1);
        first = first + BLOCK == 0x40000 ? 0xE0000 : first + BLOCK; /* the planes between are empty */
    }
    assert_int_equal(first, 0xE1000);
    gb_free(golden);
    gb_free(all.ids);
    gb_buffer_free(&all.text);
    gumbel_tokenizer_destroy(tokenizer);
}

static void test_every_character(void **state) {
    (void)state;
    if (!is_known_unicode())
        skip();
    check_characters(load_tokenizer(DATA("qwen.tokenizer.json")), DATA("qwen.characters.txt"));
}

/* The same tokens with Mistral's expression, which tells kinds of letters apart. */
static void test_every_kind_of_letter(void **state) {
    (void)state;
    static const char expression[] =
        "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|"
        "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|\\p{N}|"
        " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
    if (!is_known_unicode())
        skip();
    json_t *root = json_load_file(DATA("qwen.tokenizer.json"), 0, NULL);
    json_t *steps = json_object_get(json_object_get(root, "pre_tokenizer"), "pretokenizers");
    json_object_set_new(json_object_get(json_array_get(steps, 0), "pattern"), "Regex",
                        json_string(expression));
    char *text = json_dumps(root, 0);
    json_decref(root);
    check_characters(tokenizer_of(text, strlen(text)), DATA("mistral.characters.txt"));
    free(text);
}

/* ---- Expressions ---- */

static void test_expressions(void **state) {
    (void)state;
    const gumbel_status bad = GUMBEL_ERROR_FORMAT, refused = GUMBEL_ERROR_UNSUPPORTED;
    expect(WITH_EXPRESSION("(a"), bad, "expression \"(a\" does not compile");
    expect(WITH_EXPRESSION("a)"), bad, "does not compile");
    expect(WITH_EXPRESSION("a**"), bad, "does not compile");
    expect(WITH_EXPRESSION("[a"), bad, "does not compile");
    expect(WITH_EXPRESSION(""), bad, "0 bytes");
    static const char *const unsupported[][2] = {
        {"(?i:\\\\p{Lu})", "\"\\p{Lu}\""},
        {"\\\\w+", "\"\\w+\""},
        {"\\\\d", "\"\\d\""},
        {"\\\\bA", "\"\\bA\""},
        {"\\\\p{Han}", "\"\\p{Han\""},
        {"\\\\p{^L}", "\\p{^L}"},
        {"^a", "\"^\""},
        {"a$", "\"$\""},
        {"(?<=a)b", "\"(?<=\""},
        {"(?i)a", "\"(?i)\""},
        {"(*UTF)a", "\"(*UT\""},
        {"[[:alpha:]]", "\"[:\""},
        {"[a&&b]", "\"&&\""},
        {"[]a]", "\"]\""},
        {"a{2}+", "\"{2}+\""},
        {"a{2}?", "\"{2}?\""},
        {"a{,2}", "\"{,2}\""},
        {"(?i:ss)", "\"ss\""},
        {"(?i:a(?:Fl))", "\"Fl\""},
        {"\\u00e9", "byte 0xC3"},
        {"\\u0001", "byte 0x01"},
        {"a\\\\", "\"\\\""},
    };
    for (size_t i = 0; i < sizeof unsupported / sizeof unsupported[0]; i++) {
        char text[2048];
        snprintf(text, sizeof text, WITH_EXPRESSION("%s"), unsupported[i][0]);
        expect(text, refused, unsupported[i][1]);
    }
    expect(WITH_SPLITTER(SEQUENCE(SPLIT_OF("a", "Removed") "," BYTES)), refused, "\"Removed\"");
    expect(WITH_SPLITTER(SEQUENCE(SPLIT_OF("a", "MergedWithPrevious") "," BYTES)), refused, "Isolated is");
}

/* A section may hold what export refuses; it has to compile all the same. */
static void test_broken_expression_in_section(void **state) {
    (void)state;
    gb_byte_buffer bytes = {0};
    gumbel_error error;
    assert_int_equal(gb_convert_tokenizer_json(VALID, strlen(VALID), "t.json", &bytes, NULL), GUMBEL_OK);
    for (size_t i = 0; i + 3 < bytes.size; i++)
        if (memcmp(bytes.data + i, "(?!", 3) == 0)
            memcpy(bytes.data + i, "(?\\", 3);
    assert_fails(use_section(bytes.data, bytes.size, &error), GUMBEL_ERROR_FORMAT, &error,
                 "tokenizer: the splitting expression");
    gb_buffer_free(&bytes);
}

/* Expressions that go back more and more often are stopped, soon, whatever the text's length. */
static void test_match_limits(void **state) {
    (void)state;
    static const char *const files[] = {
        WITH_EXPRESSION("(?:a+)+b"),
        WITH_EXPRESSION("a*a*a*a*a*a*b"),
        WITH_EXPRESSION("(?:a|a)+b"),
        WITH_EXPRESSION("(?:(?=(?:a+)+b)|a)"),
        WITH_SPLITTER(SEQUENCE(
            SPLIT_OF("a", "Isolated") "," SPLIT_OF("(?:(?=a)|(?!b)){16}\\\\p{N}", "Isolated") "," BYTES)),
    };
    enum { LENGTH = 20000 };
    char *text = gb_allocate(LENGTH, 1);
    memset(text, 'a', LENGTH);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        gumbel_tokenizer *tokenizer = small_tokenizer(files[i]);
        gumbel_error error;
        size_t count;
        clock_t start = clock();
        assert_fails(gumbel_encode(tokenizer, text, LENGTH, NULL, NULL, 0, &count, &error),
                     GUMBEL_ERROR_FORMAT, &error, "limit");
        assert_true(clock() - start < 20 * CLOCKS_PER_SEC); /* seconds under sanitizers */
        gumbel_tokenizer_destroy(tokenizer);
    }
    gb_free(text);
}

/* A nest of groups asks for a frame of memory per repetition. */
static void test_depth_limit(void **state) {
    (void)state;
    enum { LENGTH = 1 << 20 };
    char *text = gb_allocate(LENGTH, 1);
    memset(text, 'a', LENGTH);
    gumbel_tokenizer *tokenizer = small_tokenizer(WITH_EXPRESSION("(?:a|b(?!c))+"));
    gumbel_error error;
    size_t count;
    assert_fails(gumbel_encode(tokenizer, text, LENGTH, NULL, NULL, 0, &count, &error), GUMBEL_ERROR_FORMAT,
                 &error, "limit");
    gumbel_tokenizer_destroy(tokenizer);
    gb_free(text);
}

/* ---- Long texts ---- */

/* One piece, or one run of marks to sort, as long as the text. Quadratic time would take hours. */
static void test_long_texts(void **state) {
    (void)state;
    static const char *const units[] = {" ", "\n", " \n", "a", "\u0301\u0323", "!", "\u1112\u1161\u11ab",
                                        "7"};
    enum { LENGTH = 1 << 20 };
    gumbel_tokenizer *tokenizer = load_tokenizer(DATA("qwen.tokenizer.json"));
    int32_t *ids = gb_allocate(LENGTH, sizeof *ids);
    char *text = gb_allocate(LENGTH, 1);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        size_t size = strlen(units[i]), length = LENGTH / size * size, count;
        for (size_t at = 0; at < length; at += size)
            memcpy(text + at, units[i], size);
        assert_int_equal(gumbel_encode(tokenizer, text, length, NULL, ids, LENGTH, &count, NULL), GUMBEL_OK);
        assert_true(count > 0);
    }
    gb_free(text);
    gb_free(ids);
    gumbel_tokenizer_destroy(tokenizer);
}

/* ---- Files ---- */

static void test_refused(void **state) {
    (void)state;
    const gumbel_status bad = GUMBEL_ERROR_FORMAT, refused = GUMBEL_ERROR_UNSUPPORTED;
    expect(WITH_MODEL(MODEL_OF("\"byte_fallback\":true,", VOCAB)), refused, "byte_fallback");
    expect(WITH_MODEL(MODEL_OF("", VOCAB ",\"a b\":12")), refused, "token 12");
    expect(WITH_MODEL(MODEL_OF("", VOCAB ",\"\\u3042\":12")), refused, "token 12");
    expect(WITH_ADDED("{\"id\":8,\"content\":\"\\u0120ab\"," FLAGS("false") "}"), refused, "entry 0 (id 8)");
    expect(WITH_SPLITTER("{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"use_regex\":false}"), refused,
           "add_prefix_space");
    expect(WITH_SPLITTER(SEQUENCE("{\"type\":\"Punctuation\",\"behavior\":\"Removed\"}," BYTES)), refused,
           "the Punctuation behavior \"Removed\"");
    expect(WITH_SPLITTER(SEQUENCE("{\"type\":\"Whitespace\"}," BYTES)), refused, "the type \"Whitespace\"");
    expect(WITH_SPLITTER(SEQUENCE(BYTES "," SPLIT_OF("a", "Isolated"))), refused, "Split after ByteLevel");
    expect(WITH_SPLITTER("null"), refused, "decoder: ByteLevel");
    expect(WITH_DECODER("{\"type\":\"Fuse\"}"), refused, "decoder: ByteLevel");
    expect(WITH_DECODER("{\"type\":\"Sequence\",\"decoders\":[" BYTES ",{\"type\":\"ByteFallback\"}]}"), bad,
           "decoder");
}

/* An added token may stand in the vocabulary as its own text, also one that no bytes spell. */
static void test_added_in_vocabulary(void **state) {
    (void)state;
    gumbel_tokenizer *tokenizer =
        small_tokenizer(FILE_OF(MODEL_OF("", VOCAB ",\"<a b>\":10,\"<s>\":11"),
                                "{\"id\":10,\"content\":\"<a b>\"," FLAGS(
                                    "false") "},{\"id\":11,\"content\":\"<s>\"," FLAGS("true") "}",
                                "null", BYTES, BYTES, "null"));
    EXPECT_IDS(tokenizer, "a<a b><s>", true, 0, 10, 11);
    gumbel_tokenizer_destroy(tokenizer);
}

static void test_damaged_json(void **state) {
    (void)state;
    check_damaged_json(VALID);
}

static void test_damaged_section(void **state) {
    (void)state;
    check_damaged_section(VALID);
}

static void test_no_memory(void **state) {
    (void)state;
    check_no_memory(VALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_added_tokens),
        cmocka_unit_test(test_every_character),
        cmocka_unit_test(test_every_kind_of_letter),
        cmocka_unit_test(test_expressions),
        cmocka_unit_test(test_broken_expression_in_section),
        cmocka_unit_test(test_match_limits),
        cmocka_unit_test(test_depth_limit),
        cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_added_in_vocabulary),
        cmocka_unit_test(test_damaged_json),
        cmocka_unit_test(test_damaged_section),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
