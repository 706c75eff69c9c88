/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of tokenizers in GGUF files: every name of a pre-tokenizer, SentencePiece with scores, and tokens
 * that are spelled alike.
 */
#include "golden.h"

#include "export/text/pre_tokenizers.h"
#include "export/text/tokenizer_gguf.h"
#include "support/assertions.h"
#include "support/checkpoints/gguf_writer.h"
#include "support/temporary.h"
#include "text/tokenizer/splitter.h"

#include <math.h>

#define KEY(name) "tokenizer.ggml." name
enum { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE, MOST_NAMES = 128, MOST_TOKENS = 64 };

/* ---- Pre-tokenizers ---- */

static gumbel_status compile(gb_split_expression expression, gb_splitter **splitter) {
    const char *text = gb_split_expression_text(expression);
    const gb_text_step step = {.kind = GB_SPLIT_EXPRESSION,
                               .option = GB_SPLIT_ISOLATED,
                               .pattern = text,
                               .pattern_length = (uint32_t)strlen(text)};
    assert_true(step.pattern_length > 0 && step.pattern_length <= GB_MAX_EXPRESSION_BYTES);
    return gb_splitter_create(&step, splitter, NULL);
}

/* What the expression makes of a text, with "|" between the pieces. */
static void expect_pieces(gb_split_expression expression, const char *text, const char *expected) {
    gb_splitter *splitter;
    gb_cutting *cutting;
    char joined[256] = "";
    size_t size, used = 0;
    assert_int_equal(compile(expression, &splitter), GUMBEL_OK);
    assert_int_equal(gb_cutting_create(splitter, &cutting, NULL), GUMBEL_OK);
    assert_int_equal(gb_cutting_begin(cutting, text, strlen(text), NULL), GUMBEL_OK);
    while (gb_cutting_next(cutting, &size, NULL) == GUMBEL_OK && size > 0) {
        used +=
            (size_t)snprintf(joined + used, sizeof joined - used, "%s%.*s", used ? "|" : "", (int)size, text);
        text += size;
    }
    assert_string_equal(joined, expected);
    gb_cutting_free(cutting);
    gb_splitter_free(splitter);
}

/* Where the libraries' versions of Unicode differ; the results are those of the `tokenizers` package. */
static void pieces_are_the_references(void **state) {
    (void)state;
    expect_pieces(GB_EXPRESSION_GPT2, "it's 12\r\nx", "it|'s| 12|\r|\n|x");
    expect_pieces(GB_EXPRESSION_DIGITS, "a12b3", "a|12|b|3");
    expect_pieces(GB_EXPRESSION_DEEPSEEK3, "a \U0001FAE8!b", "a| \U0001FAE8!|b"); /* a symbol of Unicode 15 */
    expect_pieces(GB_EXPRESSION_DEEPSEEK3, " \u180E x", " |\u180E| x"); /* neither space nor symbol */
    expect_pieces(GB_EXPRESSION_HAN_AND_KANA, "\u6F22\u3042\u0E9E\u0EB2", "\u6F22\u3042|\u0E9E\u0EB2");
    expect_pieces(GB_EXPRESSION_BLOOM, "a \u180E,b", "a| \u180E|,|b");
    expect_pieces(GB_EXPRESSION_KIMI, "\u6F22\u5B57ab\u3002(c", "\u6F22\u5B57|ab|\u3002(|c");
    expect_pieces(GB_EXPRESSION_AFMOE_DIGITS, "1234567 89", "1|234|567| |89");
    expect_pieces(GB_EXPRESSION_SUPERBPE_THREES, "1234567", "1|234|567");
    expect_pieces(GB_EXPRESSION_DEEPSEEK_LAST_SPACE, "a  b  ", "a  b|  ");
}

/* Each name stands once, leads to its entry, and its expressions compile. */
static void every_name_is_known(void **state) {
    (void)state;
    char all[2048], *names[MOST_NAMES];
    size_t count = 0;
    gb_pre_tokenizer_list(all, sizeof all);
    for (char *rest = all; (names[count] = strtok_r(rest, ", ", &rest)); count++)
        assert_true(count + 1 < MOST_NAMES);
    assert_int_equal(count, 91);
    for (size_t i = 0; i < count; i++) {
        const gb_pre_tokenizer *pre = gb_pre_tokenizer_find(names[i], strlen(names[i]));
        assert_non_null(pre);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(names[i], names[j]);
        for (size_t j = 0; j < GB_PRE_TOKENIZER_STEPS && pre->expressions[j]; j++)
            expect_pieces(pre->expressions[j], "", "");
    }
    assert_null(gb_pre_tokenizer_find("gpt", 3));
    assert_null(gb_pre_tokenizer_find("", 0));
    assert_null(gb_pre_tokenizer_find("gpt-2 phi-2", 11));
}

/* Every text of expressions.def is found again, and no other. */
static void expressions_are_found(void **state) {
    (void)state;
    for (int i = 1; i < GB_EXPRESSION_COUNT; i++) {
        const char *text = gb_split_expression_text((gb_split_expression)i);
        assert_int_equal(gb_split_expression_find(text, strlen(text)), i);
        assert_int_not_equal(gb_split_expression_find(text, strlen(text) - 1), i);
    }
    assert_int_equal(gb_split_expression_find("", 0), GB_EXPRESSION_NONE);
}

/* ---- A small vocabulary ---- */

typedef struct token {
    const char *text;
    int32_t type;
    float score;
} token;

/* Adds the lists to w and writes it; the file's path. */
static const char *write_tokens(gguf_writer *w, const token *tokens, size_t count) {
    const char *texts[MOST_TOKENS], *path = temporary_path("kinds.gguf");
    int32_t types[MOST_TOKENS];
    float scores[MOST_TOKENS];
    assert_true(count <= MOST_TOKENS);
    for (size_t i = 0; i < count; i++) {
        texts[i] = tokens[i].text;
        types[i] = tokens[i].type;
        scores[i] = tokens[i].score;
    }
    w->version = 3;
    gguf_add_texts(w, KEY("tokens"), texts, count);
    gguf_add_i32s(w, KEY("token_type"), types, count);
    gguf_add_f32s(w, KEY("scores"), scores, count);
    gguf_write(w, path);
    return path;
}

static gumbel_tokenizer *open_tokens(gguf_writer *w, const token *tokens, size_t count) {
    gumbel_tokenizer *tokenizer;
    gumbel_error error;
    assert_ok(gumbel_export_tokenizer(write_tokens(w, tokens, count), &tokenizer, &error), &error);
    return tokenizer;
}

static void expect_ids(const gumbel_tokenizer *tokenizer, const char *text, bool add_special,
                       const int32_t *expected, size_t expected_count) {
    const gumbel_encode_options options = {
        .size = sizeof options, .add_special = add_special, .parse_special = true};
    int32_t ids[64];
    size_t count;
    gumbel_error error;
    assert_ok(gumbel_encode(tokenizer, text, strlen(text), &options, ids, 64, &count, &error), &error);
    assert_int_equal(count, expected_count);
    assert_memory_equal(ids, expected, count * sizeof *ids);
}
#define EXPECT(tokenizer, text, special, ...)                                                                \
    expect_ids(tokenizer, text, special, (const int32_t[]){__VA_ARGS__},                                     \
               sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static void expect_text(const gumbel_tokenizer *tokenizer, int32_t id, const char *expected) {
    gumbel_detokenizer *detokenizer;
    const char *text;
    size_t length;
    assert_int_equal(gumbel_detokenizer_create(tokenizer, true, &detokenizer, NULL), GUMBEL_OK);
    assert_int_equal(gumbel_detokenize(detokenizer, id, &text, &length, NULL), GUMBEL_OK);
    assert_int_equal(length, strlen(expected));
    assert_memory_equal(text, expected, length);
    gumbel_detokenizer_destroy(detokenizer);
}

/* ---- Scores ---- */

/* "ab" is a better token than "bc"; "aa" and "aaa" are made of the same one from left to right. */
static const token SCORED[] = {
    {"<unk>", UNKNOWN, 0},
    {"<s>", CONTROL, 0},
    {"</s>", CONTROL, 0},
    {"<0xC3>", BYTE, 0},
    {"<0xA9>", BYTE, 0},
    {"ab", NORMAL, -1},
    {"bc", NORMAL, -2},
    {"\xE2\x96\x81"
     "ab",
     NORMAL, -3},
    {"abc", NORMAL, -4},
    {"\xE2\x96\x81", NORMAL, -5},
    {"a", NORMAL, -6},
    {"b", NORMAL, -7},
    {"c", NORMAL, -8},
    {"<b>", USER_DEFINED, -1000},
    {"\xE2\x96\x81\xE2\x96\x81", USER_DEFINED, -1000},
};
enum { SCORED_COUNT = sizeof SCORED / sizeof SCORED[0] };

static void merges_by_scores(void **state) {
    (void)state;
    gguf_writer w = {0};
    gguf_add_text(&w, KEY("model"), "llama");
    gguf_add_bool(&w, KEY("add_space_prefix"), false);
    gumbel_tokenizer *tokenizer = open_tokens(&w, SCORED, SCORED_COUNT);
    EXPECT(tokenizer, "abc", false, 8); /* ab and c before a and bc */
    EXPECT(tokenizer, "bca", false, 6, 10);
    EXPECT(tokenizer, " ab", true, 1, 7);         /* bos, which llama's files add unless they say otherwise */
    EXPECT(tokenizer, "a  b", false, 10, 14, 11); /* two spaces are a token, found before all else */
    EXPECT(tokenizer, "a<b>b", false, 10, 13, 11);
    EXPECT(tokenizer, "\u00e9", false, 3, 4); /* by its bytes */
    EXPECT(tokenizer, "x", false, 0);         /* neither has bytes */
    expect_text(tokenizer, 7, " ab");
    expect_text(tokenizer, 14, "  ");
    gumbel_tokenizer_destroy(tokenizer);
}

/* Unless the file says otherwise a text begins with a space; what follows a special token is one. */
static void texts_begin_with_a_space(void **state) {
    (void)state;
    gguf_writer w = {0};
    gguf_add_text(&w, KEY("model"), "llama");
    gguf_add_bool(&w, KEY("add_bos_token"), false);
    gumbel_tokenizer *tokenizer = open_tokens(&w, SCORED, SCORED_COUNT);
    EXPECT(tokenizer, "ab", true, 7);
    EXPECT(tokenizer, "<s>ab</s>ab", true, 1, 7, 2, 7);
    gumbel_tokenizer_destroy(tokenizer);
}

static void phi3s_special_tokens_strip(void **state) {
    (void)state;
    gguf_writer w = {0};
    gguf_add_text(&w, "general.name", "My Phi-3 mini");
    gguf_add_text(&w, KEY("model"), "llama");
    gguf_add_bool(&w, KEY("add_space_prefix"), false);
    gumbel_tokenizer *tokenizer = open_tokens(&w, SCORED, SCORED_COUNT);
    EXPECT(tokenizer, "</s> \n ab", false, 2, 5);
    EXPECT(tokenizer, "<s> ab", false, 1, 7); /* not this one */
    gumbel_tokenizer_destroy(tokenizer);
}

/* A default that the vocabulary does not have is none; one that the file names must be there. */
static void unknown_tokens(void **state) {
    (void)state;
    static const token tokens[] = {{"<u>", USER_DEFINED, 0}, {"a", NORMAL, -1}, {"b", NORMAL, -2}};
    gumbel_tokenizer *tokenizer;
    gumbel_error error;
    gguf_writer w = {0};
    gguf_add_text(&w, KEY("model"), "llama");
    gguf_add_bool(&w, KEY("add_bos_token"), false);
    tokenizer = open_tokens(&w, tokens, 3);
    EXPECT(tokenizer, "axb", false, 1, 2);
    gumbel_tokenizer_destroy(tokenizer);
    w = (gguf_writer){0};
    gguf_add_text(&w, KEY("model"), "llama");
    gguf_add_u32(&w, KEY("unknown_token_id"), 0);
    assert_fails(gumbel_export_tokenizer(write_tokens(&w, tokens, 3), &tokenizer, &error),
                 GUMBEL_ERROR_FORMAT, &error,
                 "tokenizer.ggml.unknown_token_id: the token is user-defined or unused");
}

/* ---- Stops ---- */

static void stops_whatever_their_type(void **state) {
    (void)state;
    static const token tokens[] = {{"<unk>", UNKNOWN, 0},     {"<|im_end|>", USER_DEFINED, 0},
                                   {"</s>", USER_DEFINED, 0}, {"<end_of_turn>", CONTROL, 0},
                                   {"<|eot_id|>", NORMAL, 0}, {"[PAD]", CONTROL, 0}};
    int32_t ids[GB_GGUF_MAX_STOPS];
    gguf_writer w = {0};
    gb_gguf file;
    gumbel_error error;
    gguf_add_text(&w, KEY("model"), "llama");
    assert_ok(gb_gguf_open(write_tokens(&w, tokens, 6), &file, &error), &error);
    assert_int_equal(gb_gguf_find_stops(&file, ids), 3);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 3); /* not the mark of struck text, and not what is spelled by chance */
    assert_int_equal(ids[2], 5);
    gb_gguf_close(&file);
}

/* ---- Equal spellings ---- */

static void the_lower_id_wins(void **state) {
    (void)state;
    static const token tokens[] = {
        {"<unk>", UNKNOWN, 0}, {"a", NORMAL, -1},        {"b", NORMAL, -2},        {"ab", NORMAL, -3},
        {"a", NORMAL, -4},     {"ab", NORMAL, 0},        {"<x>", CONTROL, 0},      {"<x>", CONTROL, 0},
        {"<y>", NORMAL, 0},    {"<y>", USER_DEFINED, 0}, {"<z>", USER_DEFINED, 0}, {"<z>", USER_DEFINED, 0},
    };
    gguf_writer w = {0};
    gguf_add_text(&w, KEY("model"), "llama");
    gguf_add_bool(&w, KEY("add_space_prefix"), false);
    gguf_add_bool(&w, KEY("add_bos_token"), false);
    gguf_add_u32(&w, KEY("bos_token_id"), 0);
    gumbel_tokenizer *tokenizer = open_tokens(&w, tokens, sizeof tokens / sizeof tokens[0]);
    EXPECT(tokenizer, "aab", false, 1, 3);
    EXPECT(tokenizer, "<x>a<z>", false, 6, 1, 10);
    assert_int_equal(gumbel_token_id(tokenizer, "<y>"), 8);
    for (int32_t id = 1; id < 12; id++)
        expect_text(tokenizer, id, tokens[id].text);
    gumbel_tokenizer_destroy(tokenizer);
}

/* The same of a vocabulary that is spelled in bytes. */
static void the_lower_id_wins_in_bytes(void **state) {
    (void)state;
    static const token tokens[] = {{"a", NORMAL, 0},
                                   {"\u0120", NORMAL, 0},
                                   {"\u0120"
                                    "a",
                                    NORMAL, 0},
                                   {"\u0120"
                                    "a",
                                    NORMAL, 0},
                                   {"a", NORMAL, 0}};
    gguf_writer w = {0};
    gguf_add_text(&w, KEY("model"), "gpt2");
    gguf_add_text(&w, KEY("pre"), "smollm");
    gguf_add_u32(&w, KEY("unknown_token_id"), 0);
    gguf_add_texts(&w, KEY("merges"), (const char *const[]){"\u0120 a"}, 1);
    gumbel_tokenizer *tokenizer = open_tokens(&w, tokens, 5);
    EXPECT(tokenizer, "a a", false, 0, 2);
    EXPECT(tokenizer, "axa", false, 0, 0); /* a byte without a token is left out */
    expect_text(tokenizer, 2, " a");
    expect_text(tokenizer, 3, " a");
    expect_text(tokenizer, 4, "a");
    gumbel_tokenizer_destroy(tokenizer);
}

/* ---- What means nothing ---- */

static void refuses(const token *tokens, const char *reason) {
    gumbel_tokenizer *tokenizer;
    gumbel_error error;
    gguf_writer w = {0};
    gguf_add_text(&w, KEY("model"), "llama");
    assert_fails(gumbel_export_tokenizer(write_tokens(&w, tokens, 2), &tokenizer, &error),
                 GUMBEL_ERROR_FORMAT, &error, reason);
}

static void refuses_bad_tokens(void **state) {
    (void)state;
    const token zero[] = {{"<unk>", UNKNOWN, 0}, {"<s>", 0, 0}},
                seven[] = {{"<unk>", UNKNOWN, 0}, {"<s>", 7, 0}},
                nan[] = {{"<unk>", UNKNOWN, 0}, {"<s>", CONTROL, NAN}};
    refuses(zero, "tokenizer.ggml.token_type: 0 of token 1, expected 1 (normal) to 6 (byte)");
    refuses(seven, "tokenizer.ggml.token_type: 7 of token 1");
    refuses(nan, "tokenizer.ggml.scores: that of token 1 is not a finite number");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_is_known),      cmocka_unit_test(pieces_are_the_references),
        cmocka_unit_test(expressions_are_found),    cmocka_unit_test(merges_by_scores),
        cmocka_unit_test(texts_begin_with_a_space), cmocka_unit_test(phi3s_special_tokens_strip),
        cmocka_unit_test(unknown_tokens),           cmocka_unit_test(stops_whatever_their_type),
        cmocka_unit_test(the_lower_id_wins),        cmocka_unit_test(the_lower_id_wins_in_bytes),
        cmocka_unit_test(refuses_bad_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
