/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies that are made to do harm, formats that are wrong, and calls that are.
 */
#include "golden.h"

#include "base/clock.h"
#include "export/text/reply_formats.h"
#include "support/assertions.h"
#include "support/paths.h"
#include "support/reply_text.h"
#include "support/temporary.h"
#include "text/reply/lenient_json.h"
#include "text/reply/use_format.h"

static gumbel_error error;
static gumbel_tokenizer *tokenizer;

static int set_up(void **state) {
    (void)state;
    assert_ok(gumbel_export_tokenizer(bundled_model("gemma4-tiny"), &tokenizer, &error), &error);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    gumbel_tokenizer_destroy(tokenizer);
    return 0;
}

static void use(const char *json) {
    assert_ok(gb_tokenizer_use_reply_format(tokenizer, json, strlen(json), "format", &error), &error);
}

/* ---- Bombs --------------------------------------------------------------------------------------------- */

/* The text: before, `count` times `repeated`, after. */
static gb_byte_buffer bomb(const char *before, const char *repeated, size_t count, const char *after) {
    gb_byte_buffer text = {0};
    gb_buffer_append(&text, before, strlen(before));
    for (size_t i = 0; i < count; i++)
        gb_buffer_append(&text, repeated, strlen(repeated));
    gb_buffer_append(&text, after, strlen(after));
    assert_false(text.failed);
    return text;
}

typedef struct summary {
    size_t parts, calls, warnings, texts; /* texts: bytes of content and reasoning */
} summary;

/* Reads the text in pieces, which it frees, in reasonable time. */
static summary read_bomb(gb_byte_buffer text, size_t step, size_t max_call) {
    static joined_deltas joined;
    gumbel_reply *reply;
    gb_byte_buffer description = {0};
    const gumbel_reply_options options = {.size = sizeof options, .max_call_bytes = max_call};
    const double begin = gb_seconds();
    assert_ok(gumbel_reply_create(tokenizer, &options, &reply, &error), &error);
    for (size_t at = 0; at < text.size; at += step) {
        const size_t size = step < text.size - at ? step : text.size - at;
        assert_ok(gumbel_reply_add_text(reply, (const char *)text.data + at, size, &error), &error);
        join_deltas(reply, &joined);
    }
    assert_ok(gumbel_reply_end(reply, &error), &error);
    join_deltas(reply, &joined);
    describe_reply(reply, &joined, (const char *)text.data, text.size, &description);
    summary s = {.parts = gumbel_reply_part_count(reply)};
    gumbel_reply_part part = {.size = sizeof part};
    for (size_t i = 0; i < s.parts; i++) {
        assert_ok(gumbel_reply_get_part(reply, i, &part, &error), &error);
        s.calls += part.type == GUMBEL_PART_TOOL_CALL;
        s.warnings += part.warning != NULL;
        s.texts += part.type == GUMBEL_PART_TOOL_CALL ? 0 : part.text_length;
    }
    assert_true(gb_seconds() - begin < 60);
    free_deltas(&joined);
    gb_buffer_free(&description);
    gb_buffer_free(&text);
    gumbel_reply_destroy(reply);
    return s;
}

static void test_deep(void **state) {
    (void)state;
    use(gb_known_reply_format("gemma4"));
    for (size_t depth = 60; depth < 70; depth++) {
        gb_byte_buffer text = bomb("<|tool_call>call:f{a:", "[", depth, "1");
        for (size_t i = 0; i < depth; i++)
            gb_buffer_append(&text, "]", 1);
        gb_buffer_append(&text, "}<tool_call|>", 13);
        const size_t size = text.size;
        const bool fits = depth + 2 <= GB_MAX_REPLY_JSON_DEPTH;
        const summary s = read_bomb(text, SIZE_MAX, 0);
        assert_int_equal(s.calls, fits);
        assert_int_equal(s.texts, fits ? 0 : size);
    }
    const summary s = read_bomb(bomb("<|tool_call>call:f{a:", "[", 300000, "<tool_call|>"), SIZE_MAX, 0);
    assert_int_equal(s.calls, 0);
    assert_int_equal(s.warnings, 1);
}

/* A call that never ends is text when it is too long, and calls behind it are found. */
static void test_long_calls(void **state) {
    (void)state;
    use(gb_known_reply_format("gemma4"));
    for (size_t step = 1; step < 5000; step = step * 5 + 2) {
        const summary s = read_bomb(
            bomb("<|tool_call>call:f{a:<|\"|>", "x\xC3\xBC", 1000, "<|tool_call>call:g{}<tool_call|>!"), step,
            2000);
        assert_int_equal(s.parts, 3);
        assert_int_equal(s.calls, 1);
        assert_int_equal(s.warnings, 1);
    }
    assert_int_equal(read_bomb(bomb("<|tool_call>", "x", 3 << 20, ""), 4096, 0).texts, (3 << 20) + 12);
    const summary s = read_bomb(bomb("", "<|tool_call>", 100000, ""), 100, 0);
    assert_int_equal(s.parts, 1);
    assert_int_equal(s.texts, 1200000);
    assert_int_equal(read_bomb(bomb("", "<|tool_call>call:f{}<tool_call|>", 20000, ""), 100, 0).calls, 20000);
}

static void test_white_space(void **state) {
    (void)state;
    use(gb_known_reply_format("qwen3_5"));
    assert_int_equal(read_bomb(bomb("a", " ", 20000, "b"), 1, 0).texts, 20002);
    assert_int_equal(read_bomb(bomb("a", "\n", 20000, "<tool_call>"), 7, 0).texts, 20012);
    assert_int_equal(
        read_bomb(bomb("<tool_call><function=f>", "<parameter=a>", 20000, "</tool_call>"), 100, 0).calls, 1);
    assert_int_equal(read_bomb(bomb("", "<think></think>", 50000, "x"), 100, 0).texts, 1);
}

/* Names are C strings, so what has a zero byte in it is none. */
static void test_zeros_in_name(void **state) {
    (void)state;
    static const char text[] = "<|tool_call>call:\0now{}<tool_call|><|tool_call>call:f\0{}<tool_call|>";
    gb_byte_buffer copy = {0};
    use(gb_known_reply_format("gemma4"));
    gb_buffer_append(&copy, text, sizeof text - 1);
    const summary s = read_bomb(copy, SIZE_MAX, 0);
    assert_int_equal(s.calls, 0);
    assert_int_equal(s.texts, sizeof text - 1);
}

/* An expression that takes for ever ends the taking apart, not the reply. */
static void test_slow_pattern(void **state) {
    (void)state;
    use("{\"start_anchor\": \"A\", \"fields\": {\"content\": {}, \"thinking\": {\"open_pattern\": "
        "\"(?:a|aa|a+)+(?:a|aa)+<\", \"close\": \"b\"}}}");
    const summary s = read_bomb(bomb("x", "a", 2000, "x"), 50, 0);
    assert_int_equal(s.texts, 2002);
    use("{\"start_anchor\": \"A\", \"fields\": {\"content\": {}, \"thinking\": {\"open_pattern\": \"x*\", "
        "\"close_pattern\": \"y*\"}}}");
    assert_int_equal(read_bomb(bomb("", "xyz", 300, ""), 1, 0).texts, 300);
}

/* ---- Formats ------------------------------------------------------------------------------------------- */

#define FIELDS(fields) "{\"start_anchor\": \"A\", \"fields\": {" fields "}}"

static void test_wrong_formats(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"", "line 1"},
        {"[]", "not an object"},
        {"{\"start_anchor\": 1, \"fields\": {\"content\": {}}}", "start_anchor"},
        {"{\"start_anchor\": \"A\"}", "fields"},
        {"{\"version\": 2, \"start_anchor\": \"A\", \"fields\": {\"content\": {}}}", "version"},
        {"{\"more\": 2, \"start_anchor\": \"A\", \"fields\": {\"content\": {}}}", "\"more\" is not a key"},
        {"{\"start_anchor\": \"\", \"fields\": {\"content\": {}}}", "start_anchor"},
        {"{\"start_anchor\": \"A\", \"stray\": [1], \"fields\": {\"content\": {}}}", "not empty"},
        {FIELDS(""), "1 to 16"},
        {FIELDS("\"content\": 1"), "content is not an object"},
        {FIELDS("\"content\": {\"opens\": \"x\"}"), "\"opens\" is not a key"},
        {FIELDS("\"content\": {}, \"thinking\": {}"), "expected one field without"},
        {FIELDS("\"x\": {\"open\": []}"), "x: open: an empty list"},
        {FIELDS("\"x\": {\"open\": \"a\", \"open_pattern\": \"a\"}"), "has open and open_pattern"},
        {FIELDS("\"x\": {\"open_pattern\": 1}"), "is not a string"},
        {FIELDS("\"x\": {\"open_pattern\": \"(\"}"), "does not compile"},
        {FIELDS("\"x\": {\"open_pattern\": \"\\\\C\"}"), "does not compile"},
        {FIELDS("\"x\": {\"open_pattern\": \"()()()()()()()()()()()()()()()()\"}"), "at most 15"},
        {FIELDS("\"x\": {\"open\": \"a\", \"content\": \"yaml\"}"), "\"yaml\""},
        {FIELDS("\"x\": {\"open\": \"a\", \"content\": \"xml-inline\"}"), "without tag_pattern"},
        {FIELDS("\"x\": {\"open\": \"a\", \"content\": \"xml-inline\", \"content_args\": {\"tag_pattern\": "
                "\"a\"}}"),
         "no group \"key\""},
        {FIELDS("\"x\": {\"open\": \"a\", \"content\": \"json\", \"content_args\": {\"string_delims\": "
                "[[\"a\"]]}}"),
         "pair 0"},
        {FIELDS("\"x\": {\"open\": \"a\", \"content_args\": {\"strip\": 1}}"), "strip is not true or false"},
        {FIELDS("\"x\": {\"open\": \"a\", \"transform\": \"pre {content}\"}"), "placeholder and other text"},
        {FIELDS("\"x\": {\"open\": \"a\", \"transform_each\": true}"), "transform_each without"},
        {FIELDS("\"x\": {\"open\": \"a\", \"join\": 1}"), "join"},
        {FIELDS("\"content\": {}, \"x\": {\"open\": \"a\", \"within\": [\"y\"]}"), "names \"y\""},
        {FIELDS("\"content\": {}, \"x\": {\"open\": \"a\", \"ends\": [\"content\"]}"), "names \"content\""},
        {FIELDS("\"content\": {}, \"thinking\": {\"open\": \"a\", \"within\": [\"content\"]}"),
         "a text has within"},
        {FIELDS("\"y\": {}, \"x\": {\"open\": \"a\"}"), "is no text"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_fails(
            gb_tokenizer_use_reply_format(tokenizer, wrong[i][0], strlen(wrong[i][0]), "format", &error),
            GUMBEL_ERROR_FORMAT, &error, wrong[i][1]);
}

/* ---- The API ------------------------------------------------------------------------------------------- */

static void test_wrong_calls(void **state) {
    (void)state;
    gumbel_reply *reply;
    gumbel_reply_options options = {.size = 1};
    gumbel_reply_part part = {.size = sizeof part};
    const int32_t none = -1;
    assert_fails(gumbel_reply_create(tokenizer, &options, &reply, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "size");
    options = (gumbel_reply_options){.size = sizeof options, .tools = "[1"};
    assert_fails(gumbel_reply_create(tokenizer, &options, &reply, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "tools: line 1");
    options.tools = "{}";
    assert_fails(gumbel_reply_create(tokenizer, &options, &reply, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "not a list");
    options.tools = "[{\"function\": {}}]";
    assert_fails(gumbel_reply_create(tokenizer, &options, &reply, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "number 0");
    options = (gumbel_reply_options){.size = sizeof options, .prompt = &none, .prompt_count = 1};
    use(gb_known_reply_format("gemma4"));
    assert_fails(gumbel_reply_create(tokenizer, &options, &reply, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "token -1");
    assert_ok(gumbel_reply_create(tokenizer, NULL, &reply, &error), &error);
    assert_fails(gumbel_reply_add_token(reply, 1 << 30, &error), GUMBEL_ERROR_ARGUMENT, &error, "vocabulary");
    assert_fails(gumbel_reply_get_part(reply, 0, &part, &error), GUMBEL_ERROR_ARGUMENT, &error, "part 0");
    assert_ok(gumbel_reply_add_text(reply, "x", 1, &error), &error);
    assert_ok(gumbel_reply_end(reply, &error), &error);
    assert_fails(gumbel_reply_add_text(reply, "x", 1, &error), GUMBEL_ERROR_ARGUMENT, &error, "ended");
    assert_fails(gumbel_reply_end(reply, &error), GUMBEL_ERROR_ARGUMENT, &error, "ended");
    part.size = 1;
    assert_fails(gumbel_reply_get_part(reply, 0, &part, &error), GUMBEL_ERROR_ARGUMENT, &error, "size");
    gumbel_reply_destroy(reply);
    gumbel_reply_destroy(NULL);
}

/* The same reply to the same prompt has the same ids, to another one others. */
static void test_ids(void **state) {
    (void)state;
    char ids[3][2][64];
    use(gb_known_reply_format("gemma4"));
    for (int i = 0; i < 3; i++) {
        gumbel_reply *reply;
        const char *prompt = i < 2 ? "<|turn>model\n" : "Again.<|turn>model\n";
        const gumbel_reply_options options = {
            .size = sizeof options, .prompt_text = prompt, .prompt_text_length = strlen(prompt)};
        const char *text = "<|tool_call>call:f{}<tool_call|><|tool_call>call:f{}<tool_call|>";
        assert_ok(gumbel_reply_create(tokenizer, &options, &reply, &error), &error);
        assert_ok(gumbel_reply_add_text(reply, text, strlen(text), &error), &error);
        for (size_t k = 0; k < 2; k++) {
            gumbel_reply_part part = {.size = sizeof part};
            assert_ok(gumbel_reply_get_part(reply, k, &part, &error), &error);
            assert_true(strlen(part.id) < sizeof ids[i][k]);
            strcpy(ids[i][k], part.id);
        }
        gumbel_reply_destroy(reply);
        assert_string_not_equal(ids[i][0], ids[i][1]);
    }
    assert_string_equal(ids[0][0], ids[1][0]);
    assert_string_not_equal(ids[0][0], ids[2][0]);
}

/* Without a format all is content, special tokens left out. */
static void test_no_format(void **state) {
    (void)state;
    gumbel_reply *reply;
    gumbel_reply_part part = {.size = sizeof part};
    gb_tokenizer_drop_reply_format(tokenizer);
    assert_ok(gumbel_reply_create(tokenizer, NULL, &reply, &error), &error);
    assert_ok(gumbel_reply_add_text(reply, " <|tool_call> ", 14, &error), &error);
    assert_ok(gumbel_reply_add_token(reply, gumbel_token_id(tokenizer, "<turn|>"), &error), &error);
    assert_ok(gumbel_reply_end(reply, &error), &error);
    assert_int_equal(gumbel_reply_part_count(reply), 1);
    assert_ok(gumbel_reply_get_part(reply, 0, &part, &error), &error);
    assert_int_equal(part.text_length, 14);
    assert_int_equal(part.raw_length, 14 + strlen("<turn|>"));
    gumbel_reply_destroy(reply);
}

static void test_load(void **state) {
    (void)state;
    assert_fails(gumbel_reply_format_load(tokenizer, "no/such/file", &error), GUMBEL_ERROR_IO, &error,
                 "no/such/file");
    const char *path = temporary_path("format.json");
    write_text(path, gb_known_reply_format("gemma4"));
    assert_ok(gumbel_reply_format_load(tokenizer, path, &error), &error);
    assert_non_null(tokenizer->reply_format);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deep),         cmocka_unit_test(test_long_calls),
        cmocka_unit_test(test_white_space),  cmocka_unit_test(test_zeros_in_name),
        cmocka_unit_test(test_slow_pattern), cmocka_unit_test(test_wrong_formats),
        cmocka_unit_test(test_wrong_calls),  cmocka_unit_test(test_ids),
        cmocka_unit_test(test_no_format),    cmocka_unit_test(test_load)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
