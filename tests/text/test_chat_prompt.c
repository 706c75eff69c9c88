/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a conversation's prompt parts from others that begin like it: behind system messages and tools, and
 * before the generation prompt.
 */
#include "support/assertions.h"
#include "support/paths.h"
#include "text/chat/chat_prompt.h"

#include "golden.h"

enum { MAX_IDS = 4096 };

static gumbel_error error;

#define MESSAGE(...) ((gumbel_message){.size = sizeof(gumbel_message), __VA_ARGS__})
#define COUNT(array) (sizeof(array) / sizeof *(array))

static gumbel_tokenizer *tokenizer_with(const char *path, const char *text) {
    gumbel_tokenizer *tokenizer = load_tokenizer(path);
    assert_ok(gb_chat_section_create(&tokenizer->chat, &error), &error);
    assert_ok(gb_chat_section_add_template(&tokenizer->chat, "default", text, strlen(text), &error), &error);
    assert_ok(gb_chat_section_add_token(&tokenizer->chat, "bos_token", "<bos>", 5, &error), &error);
    return tokenizer;
}

static gumbel_tokenizer *tokenizer_of_model(const char *path, const char *model) {
    char file[4096], *text;
    size_t length;
    snprintf(file, sizeof file, "%s/%s/chat_template.jinja", test_models_folder, model);
    assert_ok(gb_read_file(file, 1 << 20, &text, &length, &error), &error);
    gumbel_tokenizer *tokenizer = tokenizer_with(path, text);
    gb_free(text);
    return tokenizer;
}

/* The text of a range of the prompt. */
static void assert_text(const gumbel_tokenizer *tokenizer, const gb_chat_prompt *prompt, size_t start,
                        size_t end, const char *expected) {
    gumbel_detokenizer *detokenizer;
    char found[4096] = "";
    assert_ok(gumbel_detokenizer_create(tokenizer, true, &detokenizer, &error), &error);
    for (size_t i = start; i < end; i++) {
        const char *text;
        size_t length;
        assert_ok(gumbel_detokenize(detokenizer, prompt->tokens[i], &text, &length, &error), &error);
        strncat(found, text, length);
    }
    gumbel_detokenizer_destroy(detokenizer);
    assert_string_equal(found, expected);
}

/* Its parts are these texts, and its tokens are gumbel_chat_encode's. */
static void check(const gumbel_tokenizer *tokenizer, const gumbel_message *messages, size_t count,
                  const gumbel_chat_options *options, const char *head, const char *said,
                  const char *generation) {
    static int32_t ids[MAX_IDS];
    gb_chat_prompt prompt = {0};
    size_t expected;
    uint32_t branches[GUMBEL_CHAT_BRANCHES];
    assert_ok(gb_chat_prompt_create(tokenizer, messages, count, options, &prompt, &error), &error);
    assert_ok(gumbel_chat_encode_branches(tokenizer, messages, count, options, ids, MAX_IDS, &expected,
                                          branches, &error),
              &error);
    assert_int_equal(prompt.count, expected);
    assert_memory_equal(prompt.tokens, ids, expected * sizeof *ids);
    assert_int_equal(branches[0], prompt.head_end);
    assert_int_equal(branches[1], prompt.messages_end);
    assert_int_equal(gumbel_chat_encode_branches(tokenizer, messages, count, options, ids, expected - 1,
                                                 &expected, branches, &error),
                     GUMBEL_ERROR_LIMIT);
    assert_int_equal(prompt.count, expected);
    assert_ok(gumbel_chat_encode(tokenizer, messages, count, options, ids, MAX_IDS, &expected, &error),
              &error);
    assert_int_equal(prompt.count, expected);
    assert_memory_equal(prompt.tokens, ids, expected * sizeof *ids);
    assert_text(tokenizer, &prompt, 0, prompt.head_end, head);
    assert_text(tokenizer, &prompt, prompt.head_end, prompt.messages_end, said);
    assert_text(tokenizer, &prompt, prompt.messages_end, prompt.count, generation);
    gb_chat_prompt_free(&prompt);
}

static void prompts_of_gemma(void **state) {
    (void)state;
    gumbel_tokenizer *gemma = tokenizer_of_model(DATA("gemma.tokenizer.json"), "gemma4-tiny");
    const gumbel_message messages[] = {
        MESSAGE(.role = "system", .content = "Be brief."), MESSAGE(.role = "user", .content = "Why?"),
        MESSAGE(.role = "assistant", .content = "Because."), MESSAGE(.role = "user", .content = "Really?")};
    const char *generation = "<|turn>model\n<|channel>thought\n<channel|>";
    check(gemma, messages, COUNT(messages), NULL, "<bos><|turn>system\nBe brief.<turn|>\n<|turn>user\n",
          "Why?<turn|>\n<|turn>model\nBecause.<turn|>\n<|turn>user\nReally?<turn|>\n", generation);
    check(gemma, messages + 1, 1, NULL, "<bos><|turn>user\n", "Why?<turn|>\n", generation);
    gumbel_tokenizer_destroy(gemma);
}

static void prompts_of_qwen(void **state) {
    (void)state;
    gumbel_tokenizer *qwen = tokenizer_of_model(DATA("qwen.tokenizer.json"), "qwen3_5-moe-tiny");
    const gumbel_chat_options json = {.size = sizeof json,
                                      .thinking = GUMBEL_THINKING_OFF,
                                      .messages_json =
                                          "[{\"role\": \"developer\", \"content\": \"Be brief.\"},"
                                          " {\"role\": \"user\", \"content\": \"Why?\"}]"};
    check(qwen, NULL, 0, &json, "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n",
          "Why?<|im_end|>\n", "<|im_start|>assistant\n<think>\n\n</think>\n\n");
    gumbel_tokenizer_destroy(qwen);
}

/* Tools, and whatever else a template writes before the messages, are of the head. */
static void heads_have_tools(void **state) {
    (void)state;
    gumbel_tokenizer *tokenizer =
        tokenizer_with(DATA("gemma.tokenizer.json"),
                       "{{ bos_token }}{% for tool in tools %}{{ tool.function.name }},{% endfor %}"
                       "{% for message in messages %}{{ message.content }}{% endfor %}"
                       "{% if add_generation_prompt %}<|turn>{% endif %}");
    const gumbel_message message = MESSAGE(.role = "user", .content = "what now");
    const gumbel_chat_options options = {
        .size = sizeof options, .tools = "[{\"type\": \"function\", \"function\": {\"name\": \"look\"}}]"};
    check(tokenizer, &message, 1, &options, "<bos>look,", "what now", "<|turn>");
    gumbel_tokenizer_destroy(tokenizer);
}

/* Where there is no generation prompt, or the other conversation is refused, nothing is found. */
static void nothing_is_found(void **state) {
    (void)state;
    gumbel_tokenizer *tokenizer = tokenizer_with(
        DATA("gemma.tokenizer.json"),
        "{% for message in messages %}{% if message.content != 'so' and message.content != 'on' %}"
        "{{ raise_exception('no') }}{% endif %}{{ message.content }}{% endfor %}");
    const gumbel_message messages[] = {MESSAGE(.role = "user", .content = "so"),
                                       MESSAGE(.role = "assistant", .content = "on")};
    const gumbel_chat_options ends = {.size = sizeof ends, .no_generation_prompt = true},
                              goes_on = {.size = sizeof goes_on, .continue_final_message = true};
    check(tokenizer, messages, 1, &ends, "", "", "so");
    gumbel_tokenizer_destroy(tokenizer);
    tokenizer = tokenizer_with(DATA("gemma.tokenizer.json"),
                               "{% for message in messages %}{{ message.content }}{% endfor %}");
    gb_chat_prompt prompt = {0};
    assert_ok(gb_chat_prompt_create(tokenizer, messages, 2, &goes_on, &prompt, &error), &error);
    assert_true(prompt.count > 0 && prompt.messages_end == 0);
    gb_chat_prompt_free(&prompt);
    gumbel_tokenizer_destroy(tokenizer);
}

static bool fail_at_zero(void *user, size_t bytes) {
    int *remaining = user;
    (void)bytes;
    return (*remaining)-- != 0;
}

/* Without memory there is an error, or only the positions are missing. */
static void failing_allocations_are_reported(void **state) {
    (void)state;
    gumbel_tokenizer *gemma = tokenizer_of_model(DATA("gemma.tokenizer.json"), "gemma4-tiny");
    const gumbel_message message = MESSAGE(.role = "user", .content = "Why?");
    gb_chat_prompt prompt = {0};
    for (int tried = 0; prompt.messages_end == 0 || prompt.head_end == 0; tried++) {
        int remaining = tried;
        gb_chat_prompt_free(&prompt);
        gb_set_allocation_hook(fail_at_zero, &remaining);
        const gumbel_status status = gb_chat_prompt_create(gemma, &message, 1, NULL, &prompt, &error);
        gb_set_allocation_hook(NULL, NULL);
        assert_true(status == GUMBEL_OK || (status == GUMBEL_ERROR_MEMORY && !prompt.tokens));
    }
    gb_chat_prompt_free(&prompt);
    gumbel_tokenizer_destroy(gemma);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_of_gemma),
        cmocka_unit_test(prompts_of_qwen),
        cmocka_unit_test(heads_have_tools),
        cmocka_unit_test(nothing_is_found),
        cmocka_unit_test(failing_allocations_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
