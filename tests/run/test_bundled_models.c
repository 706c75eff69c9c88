/* SPDX-License-Identifier: Apache-2.0
 *
 * The bundled models, as a user meets them: exported, asked the questions of their questions.txt in the chat
 * format, and answered greedily.
 */
#include "support/assertions.h"
#include "support/backend.h"
#include "support/paths.h"
#include "support/temporary.h"
#include "support/test_arguments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ANSWER_BYTES = 2048, PROMPT_TOKENS = 512, QUESTIONS = 40 };

typedef struct chatbot {
    gumbel_program *program;
    gumbel_tokenizer *tokenizer;
    gumbel_detokenizer *detokenizer;
    gumbel_engine *engine;
    gumbel_session *session;
} chatbot;

static void open_chatbot(chatbot *bot, const char *model, const char *recipe, const char *path) {
    gumbel_error error;
    char checkpoint[512];
    snprintf(checkpoint, sizeof checkpoint, "%s/%s", test_models_folder, model);
    gumbel_export_options options = {.size = sizeof options, .quantize = recipe};
    assert_ok(gumbel_export(checkpoint, path, &options, &error), &error);
    assert_ok(gumbel_program_open(path, &bot->program, &error), &error);
    assert_ok(gumbel_tokenizer_create(bot->program, &bot->tokenizer, &error), &error);
    assert_ok(gumbel_detokenizer_create(bot->tokenizer, false, &bot->detokenizer, &error), &error);
    assert_ok(gumbel_engine_create(bot->program, TEST_ENGINE_OPTIONS, &bot->engine, &error), &error);
    assert_ok(gumbel_session_create(bot->engine, &bot->session, &error), &error);
}

static void close_chatbot(chatbot *bot) {
    gumbel_engine_destroy(bot->engine);
    gumbel_detokenizer_destroy(bot->detokenizer);
    gumbel_tokenizer_destroy(bot->tokenizer);
    gumbel_program_close(bot->program);
}

static void append_text(char *answer, const char *text, size_t length) {
    size_t used = strlen(answer), room = ANSWER_BYTES - 1 - used;
    length = length < room ? length : room;
    memcpy(answer + used, text, length);
    answer[used + length] = 0;
}

static void ask(chatbot *bot, const char *question, gumbel_thinking thinking, char answer[ANSWER_BYTES]) {
    gumbel_error error;
    gumbel_message message = {.size = sizeof message, .role = "user", .content = question};
    gumbel_chat_options chat = {.size = sizeof chat, .thinking = thinking};
    gumbel_sampling greedy = {.size = sizeof greedy, .top_p = 1};
    gumbel_generate_options options = {.size = sizeof options, .sampling = &greedy, .max_new_tokens = 64};
    gumbel_generated next = {.size = sizeof next};
    int32_t prompt[PROMPT_TOKENS];
    const char *text;
    size_t count, length;
    assert_ok(gumbel_chat_encode(bot->tokenizer, &message, 1, &chat, prompt, PROMPT_TOKENS, &count, &error),
              &error);
    gumbel_session_reset(bot->session);
    assert_ok(gumbel_generate(bot->session, prompt, count, &options, &error), &error);
    answer[0] = 0;
    while (!next.finish) {
        assert_ok(gumbel_next(bot->session, &next, &error), &error);
        assert_ok(gumbel_detokenize(bot->detokenizer, next.token, &text, &length, &error), &error);
        append_text(answer, text, length);
    }
    gumbel_detokenize_end(bot->detokenizer, &text, &length);
    append_text(answer, text, length);
    assert_int_equal(next.finish, GUMBEL_FINISH_STOP);
}

/* Every line of questions.txt: question, tab, what the answer contains. */
static void answers_its_questions(const char *model, const char *recipe) {
    char line[1024], answer[ANSWER_BYTES];
    chatbot bot = {0};
    const int most = 2 * shortened(QUESTIONS, 2);
    int asked = 0, wrong = 0;
    open_chatbot(&bot, model, recipe, temporary_path("bundled.gumbel"));
    snprintf(line, sizeof line, "%s/%s/questions.txt", test_models_folder, model);
    FILE *questions = fopen(line, "r");
    assert_non_null(questions);
    while ((asked < most || !is_short_run()) && fgets(line, sizeof line, questions)) {
        char *expected = strchr(line, '\t');
        assert_non_null(expected);
        *expected++ = 0;
        expected[strcspn(expected, "\n")] = 0;
        for (int thinking = GUMBEL_THINKING_DEFAULT; thinking <= GUMBEL_THINKING_OFF; thinking += 2) {
            ask(&bot, line, (gumbel_thinking)thinking, answer);
            asked++;
            if (!strstr(answer, expected)) {
                print_error("%s -> \"%s\", expected \"%s\"\n", line, answer, expected);
                wrong++;
            }
        }
    }
    fclose(questions);
    close_chatbot(&bot);
    empty_temporary_directory();
    assert_int_equal(asked, most);
    assert_int_equal(wrong, 0);
}

static void test_gemma4_tiny(void **state) {
    (void)state;
    answers_its_questions("gemma4-tiny", "none");
}

static void test_gemma4_tiny_at_4_bits(void **state) {
    (void)state;
    answers_its_questions("gemma4-tiny", "int4");
}

static void test_qwen3_5_moe_tiny(void **state) {
    (void)state;
    answers_its_questions("qwen3_5-moe-tiny", "none");
}

static void test_qwen3_5_moe_tiny_at_4_bits(void **state) {
    (void)state;
    answers_its_questions("qwen3_5-moe-tiny", "int4");
}

int main(int argument_count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemma4_tiny), cmocka_unit_test(test_gemma4_tiny_at_4_bits),
        cmocka_unit_test(test_qwen3_5_moe_tiny), cmocka_unit_test(test_qwen3_5_moe_tiny_at_4_bits)};
    read_test_arguments(argument_count, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
