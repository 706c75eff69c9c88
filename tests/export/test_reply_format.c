/* SPDX-License-Identifier: Apache-2.0
 *
 * Reply formats on their way from a checkpoint through a program to a reply.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file_map.h"
#include "base/memory.h"
#include "export/text/reply_families.h"
#include "export/text/reply_formats.h"
#include "support/assertions.h"
#include "support/paths.h"
#include "support/programs/program_file.h"
#include "support/temporary.h"

#include <stdio.h>
#include <string.h>

enum { PROMPT_TOKENS = 512, MOST_TOKENS = 400 };

static gumbel_error error;

static void export_model(const char *model, const char *path) {
    char checkpoint[512];
    snprintf(checkpoint, sizeof checkpoint, "%s/%s", test_models_folder, model);
    assert_ok(gumbel_export(checkpoint, path, NULL, &error), &error);
}

/* ---- Choosing ------------------------------------------------------------------------------------------ */

static char last_line[512];

static void keep_line(void *user, gumbel_log_level level, const char *line) {
    (void)user;
    assert_int_equal(level, GUMBEL_LOG_WARNING);
    snprintf(last_line, sizeof last_line, "%s", line);
}

/* The format that a directory with this tokenizer_config.json gets, whose template and vocabulary have these
 * texts in them. */
static const char *choose(const char *config, const char *template_text, const char *spellings) {
    static gb_byte_buffer bytes;
    char *end;
    bytes.size = 0;
    last_line[0] = 0;
    const char *path = temporary_path("checkpoint/tokenizer_config.json");
    write_text(path, config);
    char directory[512];
    snprintf(directory, sizeof directory, "%s", path);
    end = strrchr(directory, '/');
    *end = 0;
    const gb_blob templates = {(const uint8_t *)template_text, strlen(template_text)},
                  vocabulary = {(const uint8_t *)spellings, strlen(spellings)};
    assert_ok(gb_choose_reply_format(directory, &templates, &vocabulary, keep_line, NULL, &bytes, &error),
              &error);
    return bytes.size > 0 ? (const char *)bytes.data : "";
}

#define CHATML "{{ '<|im_start|>' + role }}"
#define HERMES CHATML "<tool_call>\n{\"name\": NAME, \"arguments\": {}}\n</tool_call>"
#define GEMMA "<|turn>model\n{{ '<|tool_call>call:' }}"
#define HARMONY "<|start|>assistant<|channel|>final<|message|> to=functions."
#define MUSE                                                                                                 \
    "<|start|>assistant to=self<|message|><atem:function_calls>\n<atem:invoke><atem:parameter name=\""
#define LLAMA "<|start_header_id|>assistant {\"name\": NAME, \"parameters\": {}}"

/* Marks of the template and tokens of the vocabulary say it. */
static void test_marks(void **state) {
    (void)state;
    static const struct {
        const char *text, *spellings, *name;
    } cases[] = {
        {GEMMA, "<|turn><turn|>", "gemma4"},
        {GEMMA, "<start_of_turn>", "plain"},
        {HERMES, "<|im_start|><|im_end|>", "qwen3"},
        {HERMES, "<|start_header_id|><|im_start|>", "qwen3"},
        {HERMES, "<im_start|>", "plain"},
        {HARMONY, "<|start|><|channel|>", "harmony"},
        {MUSE, "<|start|><|message|>", "muse_glimmer"},
        {MUSE, "<|im_start|>", "plain"},
        {HERMES "<function=F><parameter=P>", "<|im_start|><tool_call>", "qwen3_5"},
        {CHATML, "<|im_start|><|im_end|>", "plain"}, /* SmolLM2, an architecture llama */
        {LLAMA, "<|start_header_id|>", "llama3"},
        {"<|start_header_id|>assistant", "<|start_header_id|>", "plain"}, /* Llama 3 before its tools */
        {CHATML "{{ content.split('</think>') }}", "<|im_start|>", "think"},
        {"", "<|im_start|><|turn><|start_header_id|>", "plain"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(choose("{}", cases[i].text, cases[i].spellings),
                            gb_known_reply_format(cases[i].name));
}

static void test_choice(void **state) {
    (void)state;
    const char *own = "{\"response_template\": {\"start_anchor\": \"A\", \"fields\": {\"content\": {}}}}";
    assert_string_equal(choose("{}", GEMMA, "<|turn>"), gb_known_reply_format("gemma4"));
    assert_string_equal(last_line, "");
    assert_string_equal(choose(own, GEMMA, "<|turn>"),
                        "{\"start_anchor\":\"A\",\"fields\":{\"content\":{}}}");
    static const char calls[] =
        "{\"response_template\": {\"start_anchor\": \"A\", \"fields\": {\"tool_calls\": "
        "{\"open\": \"B\", \"close\": \"C\", \"content\": \"json\"}}}}";
    assert_non_null(
        strstr(choose(calls, GEMMA, "<|turn>"), "\"written\":{\"call\":\"<|tool_call>call:{name}"));
    assert_null(strstr(choose(calls, HERMES "<function=<parameter=", "<|im_start|>"), "written"));
    assert_null(strstr(choose(calls, CHATML, "<|im_start|>"), "written"));
    assert_string_equal(choose("{\"response_template\": {\"fields\": {}}}", GEMMA, "<|turn>"),
                        gb_known_reply_format("gemma4"));
    assert_non_null(strstr(last_line, "tokenizer_config.json: response_template: fields"));
}

/* ---- In a program -------------------------------------------------------------------------------------- */

typedef struct model {
    gumbel_program *program;
    gumbel_tokenizer *tokenizer;
} model;

static model open_model(const char *path) {
    model m;
    assert_ok(gumbel_program_open(path, &m.program, &error), &error);
    assert_ok(gumbel_tokenizer_create(m.program, &m.tokenizer, &error), &error);
    return m;
}

static void close_model(model *m) {
    gumbel_tokenizer_destroy(m->tokenizer);
    gumbel_program_close(m->program);
}

/* Lets the model answer, and gives what it generates to a reply to the same prompt. */
static gumbel_reply *answer(const model *m, const char *question) {
    gumbel_engine *engine;
    gumbel_session *session;
    gumbel_reply *reply;
    int32_t prompt[PROMPT_TOKENS];
    size_t count;
    const gumbel_message message = {.size = sizeof message, .role = "user", .content = question};
    gumbel_sampling greedy = {.size = sizeof greedy, .top_p = 1};
    const gumbel_generate_options options = {
        .size = sizeof options, .sampling = &greedy, .max_new_tokens = MOST_TOKENS};
    const gumbel_chat_options chat = {.size = sizeof chat, .thinking = GUMBEL_THINKING_ON};
    assert_ok(gumbel_engine_create(m->program, NULL, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    assert_ok(gumbel_chat_encode(m->tokenizer, &message, 1, &chat, prompt, PROMPT_TOKENS, &count, &error),
              &error);
    const gumbel_reply_options begun = {.size = sizeof begun, .prompt = prompt, .prompt_count = count};
    assert_ok(gumbel_reply_create(m->tokenizer, &begun, &reply, &error), &error);
    assert_ok(gumbel_generate(session, prompt, count, &options, &error), &error);
    gumbel_generated generated = {.size = sizeof generated};
    do {
        assert_ok(gumbel_next(session, &generated, &error), &error);
        assert_ok(gumbel_reply_add_token(reply, generated.token, &error), &error);
    } while (generated.finish == GUMBEL_FINISH_NONE);
    assert_ok(gumbel_reply_end(reply, &error), &error);
    gumbel_engine_destroy(engine);
    return reply;
}

/* The answer has parts of these types. */
static void check_answer(const char *name, const gumbel_part_type *types, size_t count) {
    const char *path = temporary_path("model.gumbel");
    export_model(name, path);
    model m = open_model(path);
    gumbel_reply *reply = answer(&m, "What is 3 + 4?");
    gumbel_reply_part part = {.size = sizeof part};
    assert_int_equal(gumbel_reply_part_count(reply), count);
    for (size_t i = 0; i < count; i++) {
        assert_ok(gumbel_reply_get_part(reply, i, &part, &error), &error);
        assert_int_equal(part.type, types[i]);
        assert_true(part.text_length > 0 && part.raw_length > part.text_length);
        assert_null(memchr(part.text, '<', part.text_length));
    }
    gumbel_reply_destroy(reply);
    close_model(&m);
}

/* It never thinks. */
static void test_gemma(void **state) {
    (void)state;
    const gumbel_part_type types[] = {GUMBEL_PART_CONTENT};
    check_answer("gemma4-tiny", types, 1);
}

static void test_qwen(void **state) {
    (void)state;
    const gumbel_part_type types[] = {GUMBEL_PART_REASONING, GUMBEL_PART_CONTENT};
    check_answer("qwen3_5-moe-tiny", types, 2);
}

static uint8_t *find(const program_file *file, const char *text) {
    for (uint64_t at = 0; at + strlen(text) <= file->size; at++)
        if (memcmp(file->bytes + at, text, strlen(text)) == 0)
            return file->bytes + at;
    return NULL;
}

/* A program whose format was changed has no tokenizer, and says why. */
static void test_damaged(void **state) {
    (void)state;
    const char *path = temporary_path("damaged.gumbel");
    gb_file_map map;
    export_model("qwen3_5-moe-tiny", path);
    assert_ok(gb_map_file(path, &map, &error), &error);
    program_file file = {.size = map.size, .bytes = gb_allocate_aligned(map.size, 1)};
    assert_non_null(file.bytes);
    memcpy(file.bytes, map.data, map.size);
    gb_unmap_file(&map);
    uint8_t *found = find(&file, "\"fields\"");
    assert_non_null(found);
    memcpy(found, "\"fjelds\"", 8);
    repair_checksums(&file);
    write_file(path, file.bytes, file.size);
    gb_free(file.bytes);
    gumbel_program *program;
    gumbel_tokenizer *tokenizer;
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    assert_fails(gumbel_tokenizer_create(program, &tokenizer, &error), GUMBEL_ERROR_FORMAT, &error,
                 "the program's reply_format: \"fjelds\" is not a key");
    assert_null(tokenizer);
    gumbel_program_close(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_choice), cmocka_unit_test(test_marks),
                                       cmocka_unit_test(test_gemma), cmocka_unit_test(test_qwen),
                                       cmocka_unit_test(test_damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
