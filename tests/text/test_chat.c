/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversations against the released templates of Gemma 4 and Qwen3.5, rendered by jinja2 (*.chat.json), and
 * the chat format's two forms.
 */
#include "golden.h"

#include "export/text/chat_families.h"
#include "support/assertions.h"
#include "support/temporary.h"
#include "text/chat/chat_format.h"

#include <stdlib.h>

enum { MAX_MESSAGES = 8, MAX_IDS = 1024 };

static gb_chat_format format_of(const char *family) {
    for (size_t i = 0; i < gb_chat_family_count; i++)
        if (strcmp(gb_chat_families[i].name, family) == 0)
            return gb_chat_families[i].variant(0);
    fail_msg("no family %s", family);
    return (gb_chat_format){0};
}

static gumbel_tokenizer *tokenizer_with_format(const char *path, const char *family) {
    gumbel_tokenizer *tokenizer = load_tokenizer(path);
    tokenizer->chat_format = format_of(family);
    tokenizer->has_chat_format = true;
    return tokenizer;
}

/* The Gemma-like tokenizer with the chat format of Gemma 4. */
static gumbel_tokenizer *chat_tokenizer(void) {
    return tokenizer_with_format(DATA("gemma.tokenizer.json"), "gemma4");
}

static size_t read_messages(const json_t *array, gumbel_message messages[MAX_MESSAGES]) {
    size_t count = json_array_size(array);
    assert_true(count <= MAX_MESSAGES);
    for (size_t i = 0; i < count; i++) {
        const json_t *message = json_array_get(array, i);
        messages[i].role = json_string_value(json_object_get(message, "role"));
        messages[i].content = json_string_value(json_object_get(message, "content"));
    }
    return count;
}

static gumbel_chat_options options_of(const json_t *item) {
    const json_t *thinking = json_object_get(item, "thinking");
    return (gumbel_chat_options){.size = sizeof(gumbel_chat_options),
                                 .thinking = json_is_null(thinking)   ? GUMBEL_THINKING_DEFAULT
                                             : json_is_true(thinking) ? GUMBEL_THINKING_ON
                                                                      : GUMBEL_THINKING_OFF,
                                 .no_generation_prompt = json_is_false(json_object_get(item, "generate"))};
}

static void check_text(const gumbel_tokenizer *tokenizer, const gumbel_message *messages, size_t count,
                       const gumbel_chat_options *options, const json_t *expected) {
    gb_chat_text chat = {0};
    gumbel_error error;
    assert_ok(gb_chat_render(&tokenizer->chat_format, messages, count, options, &chat, &error), &error);
    gb_buffer_append(&chat.text, "", 1);
    assert_string_equal((char *)chat.text.data, json_string_value(expected));
    gb_chat_text_free(&chat);
}

static void check_ids(const int32_t *ids, size_t count, const json_t *expected) {
    assert_int_equal(count, json_array_size(expected));
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ids[i], json_integer_value(json_array_get(expected, i)));
}

/* Takes the tokenizer. */
static void compare_cases(gumbel_tokenizer *tokenizer, const char *path) {
    json_t *cases = load_json(path);
    assert_true(json_array_size(cases) >= 60);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *item = json_array_get(cases, i);
        gumbel_message messages[MAX_MESSAGES];
        int32_t ids[MAX_IDS];
        size_t count = read_messages(json_object_get(item, "messages"), messages), id_count;
        gumbel_chat_options options = options_of(item);
        gumbel_error error;
        check_text(tokenizer, messages, count, &options, json_object_get(item, "rendered"));
        assert_ok(gumbel_chat_encode(tokenizer, messages, count, &options, ids, MAX_IDS, &id_count, &error),
                  &error);
        check_ids(ids, id_count, json_object_get(item, "ids"));
    }
    json_decref(cases);
    gumbel_tokenizer_destroy(tokenizer);
}

static void test_gemma_template(void **state) {
    (void)state;
    compare_cases(chat_tokenizer(), DATA("gemma.chat.json"));
}

static void test_qwen_template(void **state) {
    (void)state;
    compare_cases(tokenizer_with_format(DATA("qwen.tokenizer.json"), "qwen3_5"), DATA("qwen.chat.json"));
}

static void check_rendering(const gb_chat_format *format, const gumbel_message *messages, size_t count,
                            gumbel_chat_options options, const char *expected) {
    gb_chat_text chat = {0};
    options.size = sizeof options;
    assert_int_equal(gb_chat_render(format, messages, count, &options, &chat, NULL), GUMBEL_OK);
    gb_buffer_append(&chat.text, "", 1);
    assert_string_equal((char *)chat.text.data, expected);
    gb_chat_text_free(&chat);
}

/* A session's next turn: what the assistant generated is there already, with or without its last token. */
static void test_continues(void **state) {
    (void)state;
    gb_chat_format format = format_of("gemma4");
    gumbel_message next = {"user", "And now?"};
    check_rendering(&format, &next, 1, (gumbel_chat_options){.continues = true},
                    "<turn|>\n<|turn>user\nAnd now?<turn|>\n<|turn>model\n<|channel>thought\n<channel|>");
    check_rendering(
        &format, &next, 1,
        (gumbel_chat_options){.continues = true, .turn_is_closed = true, .thinking = GUMBEL_THINKING_ON},
        "\n<|turn>user\nAnd now?<turn|>\n<|turn>model\n");
    check_rendering(
        &format, NULL, 0,
        (gumbel_chat_options){.continues = true, .turn_is_closed = true, .no_generation_prompt = true}, "\n");
}

static void test_qwen_continues(void **state) {
    (void)state;
    gb_chat_format format = format_of("qwen3_5");
    gumbel_message next[] = {{"user", "And now?"}, {"assistant", "Hm.</think>\n\nNow."}};
    check_rendering(&format, next, 1, (gumbel_chat_options){.continues = true},
                    "<|im_end|>\n<|im_start|>user\nAnd now?<|im_end|>\n<|im_start|>assistant\n<think>\n");
    check_rendering(
        &format, next, 1,
        (gumbel_chat_options){.continues = true, .turn_is_closed = true, .thinking = GUMBEL_THINKING_OFF},
        "\n<|im_start|>user\nAnd now?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n");
    check_rendering(&format, next, 2, (gumbel_chat_options){.continues = true, .no_generation_prompt = true},
                    "<|im_end|>\n<|im_start|>user\nAnd now?<|im_end|>\n"
                    "<|im_start|>assistant\n<think>\nHm.\n</think>\n\nNow.<|im_end|>\n");
}

static void test_variants(void **state) {
    (void)state;
    gumbel_message messages[] = {{"user", "Hi"}, {"assistant", "A"}, {"assistant", "B"}};
    gumbel_chat_options options = {.thinking = GUMBEL_THINKING_OFF};
    gb_chat_format format = format_of("gemma4");
    check_rendering(&format, messages, 3, options,
                    "<bos><|turn>user\nHi<turn|>\n<|turn>model\nA<turn|>\nB<turn|>\n"
                    "<|turn>model\n<|channel>thought\n<channel|>");
    format = gb_chat_families[0].variant(gb_chat_families[0].variant_count - 1);
    check_rendering(&format, messages, 3, options,
                    "<bos><|turn>user\nHi<turn|>\n<|turn>model\n<|channel>thought\n<channel|>A<turn|>\n"
                    "<|turn>model\n<|channel>thought\n<channel|>B<turn|>\n<|turn>model\n");
}

/* The literal parts are the contents, and nothing else. */
static void test_literal_parts(void **state) {
    (void)state;
    gb_chat_format format = format_of("gemma4");
    gumbel_message messages[] = {{"system", " <bos> "}, {"user", "\xFF<turn|>"}};
    gumbel_chat_options options = {.size = sizeof options};
    gb_chat_text chat = {0};
    assert_int_equal(gb_chat_render(&format, messages, 2, &options, &chat, NULL), GUMBEL_OK);
    assert_int_equal(chat.literal_count, 2);
    const char *text = (const char *)chat.text.data;
    assert_int_equal(chat.literal[0].end - chat.literal[0].start, 5);
    assert_memory_equal(text + chat.literal[0].start, "<bos>", 5);
    assert_int_equal(chat.literal[1].end - chat.literal[1].start, 10);
    assert_memory_equal(text + chat.literal[1].start, "\uFFFD<turn|>", 10);
    gb_chat_text_free(&chat);
}

static void test_bad_conversations(void **state) {
    (void)state;
    gumbel_tokenizer *tokenizer = chat_tokenizer();
    gumbel_message unknown = {"tool", "x"}, nameless = {NULL, "x"}, empty = {"user", NULL};
    gumbel_message late[] = {{"user", "x"}, {"system", "y"}};
    gumbel_message system = {"system", "x"};
    gumbel_chat_options continues = {.size = sizeof continues, .continues = true};
    gumbel_error error;
    size_t count;
    assert_fails(gumbel_chat_encode(tokenizer, &unknown, 1, NULL, NULL, 0, &count, &error),
                 GUMBEL_ERROR_ARGUMENT, &error, "tool");
    assert_fails(gumbel_chat_encode(tokenizer, &nameless, 1, NULL, NULL, 0, &count, &error),
                 GUMBEL_ERROR_ARGUMENT, &error, "role");
    assert_fails(gumbel_chat_encode(tokenizer, &empty, 1, NULL, NULL, 0, &count, &error),
                 GUMBEL_ERROR_ARGUMENT, &error, "no content");
    assert_fails(gumbel_chat_encode(tokenizer, late, 2, NULL, NULL, 0, &count, &error), GUMBEL_ERROR_ARGUMENT,
                 &error, "message 1");
    assert_fails(gumbel_chat_encode(tokenizer, &system, 1, &continues, NULL, 0, &count, &error),
                 GUMBEL_ERROR_ARGUMENT, &error, "system");
    tokenizer->has_chat_format = false;
    assert_fails(gumbel_chat_encode(tokenizer, &system, 1, NULL, NULL, 0, &count, &error),
                 GUMBEL_ERROR_UNSUPPORTED, &error, "--chat-format");
    gumbel_tokenizer_destroy(tokenizer);
}

static void assert_formats_equal(const gb_chat_format *a, const gb_chat_format *b) {
    gb_byte_buffer first = {0}, second = {0};
    gb_chat_format_write(a, &first);
    gb_chat_format_write(b, &second);
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.data, second.data, first.size);
    gb_buffer_free(&first);
    gb_buffer_free(&second);
}

static void test_section(void **state) {
    (void)state;
    gb_chat_format written = format_of("gemma4"), read;
    gb_byte_buffer bytes = {0};
    gumbel_error error;
    gb_chat_format_write(&written, &bytes);
    gb_blob blob = {bytes.data, bytes.size};
    assert_ok(gb_chat_format_parse(&blob, &read, &error), &error);
    assert_string_equal(read.stop, "<turn|>");
    assert_true(read.trims_contents);
    assert_false(read.thinks_by_default);
    assert_formats_equal(&read, &written);
    gb_chat_format_free(&read);
    gb_buffer_free(&bytes);
}

/* Flipped and cut sections give an error or some format, and never a crash. */
static void test_hostile_section(void **state) {
    (void)state;
    gb_chat_format written = format_of("gemma4"), read;
    gb_byte_buffer bytes = {0};
    gb_chat_format_write(&written, &bytes);
    for (size_t i = 0; i < bytes.size; i++) {
        for (int flip = 1; flip < 256; flip += flip) {
            bytes.data[i] ^= (uint8_t)flip;
            if (gb_chat_format_parse(&(gb_blob){bytes.data, bytes.size}, &read, NULL) == GUMBEL_OK)
                gb_chat_format_free(&read);
            bytes.data[i] ^= (uint8_t)flip;
        }
        uint8_t *cut = gb_allocate(i, 1); /* of its own size, so that reading past the end shows */
        memcpy(cut, bytes.data, i);
        if (gb_chat_format_parse(&(gb_blob){cut, i}, &read, NULL) == GUMBEL_OK)
            gb_chat_format_free(&read);
        gb_free(cut);
    }
    gb_buffer_free(&bytes);
}

static void test_newer_section(void **state) {
    (void)state;
    const uint8_t field[] = {1, 0, 0, 0, 200, 0, 0, 0}, version[] = {2, 0, 0, 0};
    gb_chat_format format;
    gumbel_error error;
    assert_fails(gb_chat_format_parse(&(gb_blob){field, sizeof field}, &format, &error),
                 GUMBEL_ERROR_UNSUPPORTED, &error, "200");
    assert_fails(gb_chat_format_parse(&(gb_blob){version, sizeof version}, &format, &error),
                 GUMBEL_ERROR_UNSUPPORTED, &error, "version 2");
}

static void test_load_json(void **state) {
    (void)state;
    const char *path = temporary_path("format.json");
    write_text(path, "{\"user_before\": \"U: \", \"user_after\": \"<eos>\\n\", \"trims_contents\": true,"
                     " \"generation_thinking_off\": \"A: \"}");
    gumbel_tokenizer *tokenizer = load_tokenizer(DATA("gemma.tokenizer.json"));
    gumbel_message message = {"user", " hi "};
    int32_t ids[64], expected[64];
    size_t count, expected_count;
    gumbel_error error;
    gumbel_encode_options parse = {.size = sizeof parse, .parse_special = true};
    assert_ok(gumbel_chat_format_load(tokenizer, path, &error), &error);
    assert_ok(gumbel_chat_encode(tokenizer, &message, 1, NULL, ids, 64, &count, &error), &error);
    assert_ok(gumbel_encode(tokenizer, "U: hi<eos>\nA: ", 14, &parse, expected, 64, &expected_count, &error),
              &error);
    assert_int_equal(count, expected_count);
    assert_memory_equal(ids, expected, count * sizeof *ids);
    gumbel_tokenizer_destroy(tokenizer);
}

static void test_bad_json(void **state) {
    (void)state;
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"", "line 1"},
        {"[]", "not a JSON object"},
        {"{\"user_befor\": \"\"}", "user_befor"},
        {"{\"user_before\": 3}", "\"user_before\" is not a string"},
        {"{\"trims_contents\": \"yes\"}", "\"trims_contents\" is not a boolean"},
        {"{\"stop\": \"a\", \"stop\": \"b\"}", "duplicate"},
        {"{\"stop\": \"\\u0000\"}", "line 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gb_chat_format format;
        gumbel_error error;
        assert_fails(
            gb_chat_format_parse_json(cases[i].text, strlen(cases[i].text), "chat.json", &format, &error),
            GUMBEL_ERROR_FORMAT, &error, cases[i].reason);
        assert_non_null(strstr(error.message, "chat.json"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemma_template),    cmocka_unit_test(test_qwen_template),
        cmocka_unit_test(test_qwen_continues),    cmocka_unit_test(test_continues),
        cmocka_unit_test(test_variants),          cmocka_unit_test(test_literal_parts),
        cmocka_unit_test(test_bad_conversations), cmocka_unit_test(test_section),
        cmocka_unit_test(test_hostile_section),   cmocka_unit_test(test_newer_section),
        cmocka_unit_test(test_load_json),         cmocka_unit_test(test_bad_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
