/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies against the messages that they are (tests/data/text/replies.json), whole and in pieces.
 */
#include "golden.h"

#include "export/text/reply_formats.h"
#include "support/assertions.h"
#include "support/paths.h"
#include "support/reply_text.h"
#include "text/reply/reasoning.h"
#include "text/reply/use_format.h"

enum { MOST_TOKENS = 4096 };

static gumbel_error error;
static json_t *data, *tools;
static char *tools_text;
static gumbel_tokenizer *gemma, *qwen;

static int set_up(void **state) {
    (void)state;
    data = load_json(DATA("replies.json"));
    tools = json_object_get(data, "tools");
    tools_text = json_dumps(tools, 0);
    assert_ok(gumbel_export_tokenizer(bundled_model("gemma4-tiny"), &gemma, &error), &error);
    assert_ok(gumbel_export_tokenizer(bundled_model("qwen3_5-moe-tiny"), &qwen, &error), &error);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    json_decref(data);
    free(tools_text);
    gumbel_tokenizer_destroy(gemma);
    gumbel_tokenizer_destroy(qwen);
    return 0;
}

/* ---- Cases --------------------------------------------------------------------------------------------- */

typedef struct reply_case {
    const char *format, *prompt, *reply, *types;
    size_t length;
    const json_t *message;
    json_int_t warnings;
    const char *tools;
    gumbel_tokenizer *tokenizer; /* with the case's format */
} reply_case;

static const char *text_of(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

static reply_case case_at(size_t index) {
    const json_t *object = json_array_get(json_object_get(data, "cases"), index);
    reply_case c = {.format = text_of(object, "format"),
                    .prompt = text_of(object, "prompt"),
                    .reply = text_of(object, "reply"),
                    .types = text_of(object, "types"),
                    .message = json_object_get(object, "message"),
                    .warnings = json_integer_value(json_object_get(object, "warnings")),
                    .tools = json_is_true(json_object_get(object, "tools")) ? tools_text : NULL};
    c.length = strlen(c.reply);
    c.tokenizer = strcmp(c.format, "gemma4") == 0 ? gemma : qwen;
    const char *known = gb_known_reply_format(c.format);
    char *text = known ? NULL : json_dumps(json_object_get(json_object_get(data, "formats"), c.format), 0);
    known = known ? known : text;
    assert_ok(gb_tokenizer_use_reply_format(c.tokenizer, known, strlen(known), c.format, &error), &error);
    free(text);
    return c;
}

static size_t case_count(void) {
    return json_array_size(json_object_get(data, "cases"));
}

static gumbel_reply *begin_sized(const reply_case *c, size_t max_call) {
    gumbel_reply *reply;
    const gumbel_reply_options options = {.size = sizeof options,
                                          .tools = c->tools,
                                          .prompt_text = c->prompt,
                                          .prompt_text_length = strlen(c->prompt),
                                          .max_call_bytes = max_call};
    assert_ok(gumbel_reply_create(c->tokenizer, &options, &reply, &error), &error);
    return reply;
}

static gumbel_reply *begin(const reply_case *c) {
    return begin_sized(c, 0);
}

static void add(gumbel_reply *reply, const char *text, size_t length, joined_deltas *joined) {
    assert_ok(gumbel_reply_add_text(reply, text, length, &error), &error);
    join_deltas(reply, joined);
}

/* Ends the reply and writes what it says. */
static void finish(gumbel_reply *reply, joined_deltas *joined, const char *text, size_t length,
                   gb_byte_buffer *description) {
    assert_ok(gumbel_reply_end(reply, &error), &error);
    join_deltas(reply, joined);
    describe_reply(reply, joined, text, length, description);
    free_deltas(joined);
}

/* ---- Messages ------------------------------------------------------------------------------------------ */

static void append(void *user, const char *text, size_t length) {
    gb_buffer_append(user, text, length);
}

/* The message without the role, and calls as name and arguments. */
static json_t *message_of(const gumbel_reply *reply) {
    gb_byte_buffer text = {0};
    assert_ok(gumbel_reply_message(reply, append, &text, &error), &error);
    json_t *message = json_loadb((const char *)text.data, text.size, JSON_ALLOW_NUL, NULL);
    if (!message)
        fail_msg("no JSON: %.*s", (int)text.size, (const char *)text.data);
    assert_string_equal(text_of(message, "role"), "assistant");
    json_object_del(message, "role");
    json_t *calls = json_object_get(message, "tool_calls");
    for (size_t i = 0; i < json_array_size(calls); i++) {
        json_t *call = json_array_get(calls, i), *function = json_object_get(call, "function");
        assert_string_equal(text_of(call, "type"), "function");
        assert_true(json_string_length(json_object_get(call, "id")) > 0);
        json_t *arguments = json_loads(text_of(function, "arguments"), JSON_ALLOW_NUL, NULL);
        assert_non_null(arguments);
        json_object_set_new(function, "arguments", arguments);
        json_array_set(calls, i, function);
    }
    gb_buffer_free(&text);
    return message;
}

static void check_types(const reply_case *c, const gumbel_reply *reply) {
    gumbel_reply_part part = {.size = sizeof part};
    json_int_t warnings = 0;
    char types[64] = "";
    for (size_t i = 0; i < gumbel_reply_part_count(reply); i++) {
        assert_ok(gumbel_reply_get_part(reply, i, &part, &error), &error);
        types[i] = "crto"[part.type];
        warnings += part.warning != NULL;
    }
    if (strcmp(types, c->types) != 0 || warnings != c->warnings)
        fail_msg("%s: %s\nparts %s, expected %s; %d warnings", c->format, c->reply, types, c->types,
                 (int)warnings);
}

static void check_message(const reply_case *c, const gumbel_reply *reply) {
    json_t *message = message_of(reply);
    if (!json_equal(message, c->message)) {
        char *is = json_dumps(message, 0), *expected = json_dumps(c->message, 0);
        fail_msg("%s: %s\nis       %s\nexpected %s", c->format, c->reply, is, expected);
    }
    json_decref(message);
    check_types(c, reply);
}

static void test_messages(void **state) {
    (void)state;
    gb_byte_buffer description = {0};
    for (size_t i = 0; i < case_count(); i++) {
        const reply_case c = case_at(i);
        joined_deltas joined = {.count = 0};
        gumbel_reply *reply = begin(&c);
        add(reply, c.reply, c.length, &joined);
        finish(reply, &joined, c.reply, c.length, &description);
        check_message(&c, reply);
        gumbel_reply_destroy(reply);
    }
    gb_buffer_free(&description);
}

/* ---- Pieces -------------------------------------------------------------------------------------------- */

static void check_same(const reply_case *c, const gb_byte_buffer *is, const gb_byte_buffer *expected,
                       const char *how, size_t number) {
    if (is->size != expected->size || (is->size > 0 && memcmp(is->data, expected->data, is->size) != 0))
        fail_msg("%s: %s\n%s %zu:\n%.*s\nexpected\n%.*s", c->format, c->reply, how, number, (int)is->size,
                 (const char *)is->data, (int)expected->size, (const char *)expected->data);
}

/* Pieces of `first` bytes, then of `step`. */
static void describe_pieces(const reply_case *c, size_t max_call, size_t first, size_t step,
                            gb_byte_buffer *description) {
    joined_deltas joined = {.count = 0};
    gumbel_reply *reply = begin_sized(c, max_call);
    for (size_t at = 0, size = first; at < c->length; at += size, size = step) {
        size = size < c->length - at ? size : c->length - at;
        add(reply, c->reply + at, size, &joined);
    }
    finish(reply, &joined, c->reply, c->length, description);
    gumbel_reply_destroy(reply);
}

static void test_every_cut(void **state) {
    (void)state;
    gb_byte_buffer whole = {0}, cut = {0};
    for (size_t i = 0; i < case_count(); i++) {
        const reply_case c = case_at(i);
        describe_pieces(&c, 0, c.length, 1, &whole);
        for (size_t step = 1; step <= 7; step += 2) {
            describe_pieces(&c, 0, step, step, &cut);
            check_same(&c, &cut, &whole, "step", step);
        }
        for (size_t first = 1; first < c.length; first++) {
            describe_pieces(&c, 0, first, c.length, &cut);
            check_same(&c, &cut, &whole, "cut", first);
        }
    }
    gb_buffer_free(&whole);
    gb_buffer_free(&cut);
}

/* ---- Tokens -------------------------------------------------------------------------------------------- */

static size_t encode(const gumbel_tokenizer *tokenizer, const char *text, bool parse_special,
                     int32_t tokens[MOST_TOKENS]) {
    size_t count;
    const gumbel_encode_options options = {.size = sizeof options, .parse_special = parse_special};
    assert_ok(gumbel_encode(tokenizer, text, strlen(text), &options, tokens, MOST_TOKENS, &count, &error),
              &error);
    return count;
}

/* Adds the tokens; drains: deltas are taken after each of them. */
static gumbel_reply *reply_of_tokens(const reply_case *c, const int32_t *tokens, size_t count, bool drains,
                                     joined_deltas *joined) {
    static int32_t prompt[MOST_TOKENS];
    gumbel_reply *reply;
    const gumbel_reply_options options = {.size = sizeof options,
                                          .tools = c->tools,
                                          .prompt = prompt,
                                          .prompt_count = encode(c->tokenizer, c->prompt, true, prompt)};
    assert_ok(gumbel_reply_create(c->tokenizer, &options, &reply, &error), &error);
    for (size_t i = 0; i < count; i++) {
        assert_ok(gumbel_reply_add_token(reply, tokens[i], &error), &error);
        if (drains)
            join_deltas(reply, joined);
    }
    return reply;
}

static void test_tokens(void **state) {
    (void)state;
    static int32_t tokens[MOST_TOKENS];
    gb_byte_buffer drained = {0}, whole = {0};
    for (size_t i = 0; i < case_count(); i++) {
        const reply_case c = case_at(i);
        if (!gb_known_reply_format(c.format))
            continue;
        const size_t count = encode(c.tokenizer, c.reply, true, tokens);
        for (int drains = 0; drains < 2; drains++) {
            joined_deltas joined = {.count = 0};
            gumbel_reply *reply = reply_of_tokens(&c, tokens, count, drains, &joined);
            finish(reply, &joined, c.reply, c.length, drains ? &drained : &whole);
            check_message(&c, reply);
            gumbel_reply_destroy(reply);
        }
        check_same(&c, &drained, &whole, "drained", i);
    }
    gb_buffer_free(&drained);
    gb_buffer_free(&whole);
}

/* Marks that ordinary tokens spell are text, and hold nothing up for good. */
static void test_spelled_marks(void **state) {
    (void)state;
    static const char *const texts[] = {"<|tool_call>call:now{}<tool_call|>",
                                        "<|channel>thought\nx<channel|>",
                                        "A <turn|> <|tool_call> <tool_call|>", "<|channel"};
    static int32_t tokens[MOST_TOKENS];
    gb_byte_buffer description = {0};
    reply_case c = {.format = "gemma4", .prompt = "<|turn>model\n", .tokenizer = gemma};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        joined_deltas joined = {.count = 0};
        const size_t count = encode(gemma, texts[i], false, tokens);
        gumbel_reply *reply = reply_of_tokens(&c, tokens, count, true, &joined);
        finish(reply, &joined, texts[i], strlen(texts[i]), &description);
        gumbel_reply_part part = {.size = sizeof part};
        assert_int_equal(gumbel_reply_part_count(reply), 1);
        assert_ok(gumbel_reply_get_part(reply, 0, &part, &error), &error);
        assert_int_equal(part.type, GUMBEL_PART_CONTENT);
        assert_int_equal(part.text_length, strlen(texts[i]));
        assert_memory_equal(part.text, texts[i], part.text_length);
        gumbel_reply_destroy(reply);
    }
    gb_buffer_free(&description);
}

/* ---- Streaming ----------------------------------------------------------------------------------------- */

typedef struct streamed_piece {
    const char *in, *out; /* what comes out after it went in, "" for nothing */
    gumbel_part_type type;
} streamed_piece;

static void test_held_back(void **state) {
    (void)state;
    static const streamed_piece pieces[] = {{"Let me", "Let me", GUMBEL_PART_REASONING},
                                            {" ", "", GUMBEL_PART_REASONING},
                                            {"see </", " see", GUMBEL_PART_REASONING},
                                            {"b", " </b", GUMBEL_PART_REASONING},
                                            {"</thin", "", GUMBEL_PART_REASONING},
                                            {"k>\n\n", "", GUMBEL_PART_REASONING},
                                            {"Hi \xC3", "Hi", GUMBEL_PART_CONTENT},
                                            {"\xBC<", " \xC3\xBC", GUMBEL_PART_CONTENT},
                                            {"tool_calm", "<tool_calm", GUMBEL_PART_CONTENT},
                                            {" <tool_call>\n<function=now>\n</function>", "", 0},
                                            {"\n</tool_call>", "{}", GUMBEL_PART_TOOL_CALL},
                                            {"<|im_end|>", "", 0}};
    const char *format = gb_known_reply_format("qwen3_5");
    const reply_case c = {.prompt = "<|im_start|>assistant\n<think>\n", .tokenizer = qwen};
    assert_ok(gb_tokenizer_use_reply_format(qwen, format, strlen(format), "format", &error), &error);
    gumbel_reply *reply = begin(&c);
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        gumbel_reply_delta delta = {.size = sizeof delta};
        assert_ok(gumbel_reply_add_text(reply, pieces[i].in, strlen(pieces[i].in), &error), &error);
        const bool has = gumbel_reply_next(reply, &delta);
        if (has != (*pieces[i].out != 0))
            fail_msg("after \"%s\": %.*s", pieces[i].in, (int)delta.text_length, delta.text);
        if (!has)
            continue;
        assert_int_equal(delta.type, pieces[i].type);
        assert_int_equal(delta.text_length, strlen(pieces[i].out));
        assert_memory_equal(delta.text, pieces[i].out, delta.text_length);
        assert_false(gumbel_reply_next(reply, &delta));
    }
    assert_ok(gumbel_reply_end(reply, &error), &error);
    gumbel_reply_destroy(reply);
}

/* ---- Changed replies ----------------------------------------------------------------------------------- */

static void insert(gb_byte_buffer *text, size_t at, const char *what, size_t length) {
    gb_byte_buffer made = {0};
    if (at > 0)
        gb_buffer_append(&made, text->data, at);
    gb_buffer_append(&made, what, length);
    if (at < text->size)
        gb_buffer_append(&made, text->data + at, text->size - at);
    gb_buffer_free(text);
    *text = made;
}

static void change(gb_byte_buffer *text, uint64_t *random) {
    static const char *const marks[] = {"<think>",
                                        "</think>",
                                        "<tool_call>",
                                        "</tool_call>",
                                        "<function=now>",
                                        "</function>",
                                        "<|im_end|>",
                                        "</parameter>",
                                        "<parameter=a>",
                                        "<|tool_call>",
                                        "<tool_call|>",
                                        "<|channel>thought\n",
                                        "<channel|>",
                                        "<|\"|>",
                                        "call:now{}",
                                        "\n\n",
                                        " ",
                                        "{",
                                        "<|tool_resp",
                                        "<turn|>",
                                        "\xF0\x9F\x91",
                                        "</response>",
                                        "<|message|>",
                                        "<|end|>"};
    const size_t at = below(random, text->size + 1);
    const char *mark = marks[below(random, sizeof marks / sizeof marks[0])];
    switch (below(random, 4)) {
    case 0:
        insert(text, at, mark, strlen(mark));
        break;
    case 1: { /* a part twice */
        const size_t length = below(random, text->size - at + 1);
        char *copy = gb_copy_string(text->data ? (const char *)text->data + at : "", length);
        insert(text, below(random, text->size + 1), copy, length);
        gb_free(copy);
        break;
    }
    case 2: { /* a part left out */
        const size_t length = below(random, text->size - at + 1);
        if (length > 0)
            memmove(text->data + at, text->data + at + length, text->size - at - length);
        text->size -= length;
        break;
    }
    default:
        text->size = at;
        break;
    }
}

/* The text with what is ill-formed replaced, as a reply has it. */
static void repair(gb_byte_buffer *text) {
    gb_byte_buffer repaired = {0};
    gb_utf8_append_repaired(&repaired, text->data ? (const char *)text->data : "", text->size);
    gb_buffer_free(text);
    *text = repaired;
}

static void test_changed(void **state) {
    (void)state;
    gb_byte_buffer whole = {0}, cut = {0};
    for (size_t i = 0; i < case_count(); i++) {
        reply_case c = case_at(i);
        const char *original = c.reply;
        const size_t original_length = c.length;
        for (uint64_t k = 0; k < 60; k++) {
            uint64_t random = i * 1000 + k;
            gb_byte_buffer text = {0};
            gb_buffer_append(&text, original, original_length);
            for (uint64_t n = 1 + below(&random, 4); n > 0; n--)
                change(&text, &random);
            repair(&text);
            gb_buffer_append(&text, "", 1);
            c.reply = (const char *)text.data;
            c.length = text.size - 1;
            const size_t max_call = below(&random, 4) == 0 ? 1 + below(&random, 40) : 0;
            describe_pieces(&c, max_call, c.length, 1, &whole);
            for (size_t step = 1; step <= 3; step++) {
                describe_pieces(&c, max_call, 1 + below(&random, 20), step, &cut);
                check_same(&c, &cut, &whole, "step", step);
            }
            gb_buffer_free(&text);
        }
    }
    gb_buffer_free(&whole);
    gb_buffer_free(&cut);
}

/* A call without marks is held to no schema, which strict tools promise. */
static void strict_tools_need_marks(void **state) {
    (void)state;
    static const char call[] = "{\"name\": \"f\", \"arguments\": {}}";
    const char *format = gb_known_reply_format("qwen3");
    for (int is_strict = 0; is_strict < 2; is_strict++) {
        gumbel_reply *reply;
        char strict[80];
        snprintf(strict, sizeof strict, "[{\"function\": {\"name\": \"f\", \"strict\": %s}}]",
                 is_strict ? "true" : "false");
        const gumbel_reply_options options = {.size = sizeof options, .tools = strict};
        gumbel_reply_part part = {.size = sizeof part};
        assert_ok(gb_tokenizer_use_reply_format(qwen, format, strlen(format), "qwen3", &error), &error);
        assert_ok(gumbel_reply_create(qwen, &options, &reply, &error), &error);
        assert_ok(gumbel_reply_add_text(reply, call, strlen(call), &error), &error);
        assert_ok(gumbel_reply_end(reply, &error), &error);
        assert_ok(gumbel_reply_get_part(reply, 0, &part, &error), &error);
        assert_int_equal(part.type, is_strict ? GUMBEL_PART_CONTENT : GUMBEL_PART_TOOL_CALL);
        gumbel_reply_destroy(reply);
    }
}

/* A token opens reasoning by itself only where an opening begins with it. */
static void test_opening_tokens(void **state) {
    (void)state;
    static const struct {
        const char *open;
        size_t count;
    } cases[] = {{"\"open\": \"<|im_start|>\"", 1},
                 {"\"open\": \" to=self<|im_start|>\"", 0},
                 {"\"open\": [\" to=self<|im_start|>\", \"<think><|im_start|>\"]", 1},
                 {"\"open_pattern\": \" ?<think><\\\\|im_start\\\\|>\"", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char format[256];
        snprintf(format, sizeof format,
                 "{\"fields\": {\"reasoning_content\": {%s, \"close\": \"</think>\"}, \"content\": {}}}",
                 cases[i].open);
        assert_ok(gb_tokenizer_use_reply_format(qwen, format, strlen(format), "format", &error), &error);
        const gb_reasoning_marks marks = gb_read_reasoning_marks(qwen);
        assert_int_equal(marks.open.count, cases[i].count);
        assert_int_equal(marks.close.count, 1);
        assert_int_equal(marks.closing, marks.close.tokens[0]);
    }
}

static size_t before(gb_answer_start *start, const char *piece) {
    return gb_before_answer(start, gumbel_token_id(qwen, piece), piece, strlen(piece));
}

/* Stop strings hold in the final channel, though its mark begins as that of reasoning does. */
static void test_openings_of_channels(void **state) {
    (void)state;
    static const char FORMAT[] =
        "{\"fields\": {\"reasoning_content\": {\"open\": [\"<|im_start|>analysis<think>\"], "
        "\"close\": \"<|im_end|>\"}, \"content\": {\"close\": \"<think>\"}}}";
    static const char *const reasoned[] = {"<|im_start|>", "ana",     "lysis",
                                           "<think>",      "I think", "<|im_end|>"};
    static const char *const heading[] = {"<|im_start|>", "fi", "nal", "<think>"};
    gb_answer_start start;
    assert_ok(gb_tokenizer_use_reply_format(qwen, FORMAT, strlen(FORMAT), "format", &error), &error);
    for (int has_reasoning = 0; has_reasoning < 2; has_reasoning++) {
        assert_ok(gb_await_answer(qwen, NULL, 0, &start, &error), &error);
        for (size_t i = 0; has_reasoning && i < sizeof reasoned / sizeof reasoned[0]; i++)
            assert_int_equal(before(&start, reasoned[i]), strlen(reasoned[i]));
        for (size_t i = 0; i < sizeof heading / sizeof heading[0]; i++)
            assert_int_equal(before(&start, heading[i]), strlen(heading[i]));
        assert_int_equal(before(&start, "Hello"), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(strict_tools_need_marks),
                                       cmocka_unit_test(test_messages),
                                       cmocka_unit_test(test_every_cut),
                                       cmocka_unit_test(test_tokens),
                                       cmocka_unit_test(test_spelled_marks),
                                       cmocka_unit_test(test_held_back),
                                       cmocka_unit_test(test_changed),
                                       cmocka_unit_test(test_opening_tokens),
                                       cmocka_unit_test(test_openings_of_channels)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
