/* SPDX-License-Identifier: Apache-2.0
 *
 * Recognizing chat templates. The templates here are short ones that write the formats of the releases; the
 * released ones themselves are compared in chat.json.
 */
#include "golden.h"

#include "export/text/chat_template.h"
#include "export/text/text_sections.h"
#include "support/assertions.h"
#include "support/temporary.h"

#include <stdlib.h>

/* Gemma 4's format in few lines; the macros below make its variants. */
#define STRIP                                                                                                \
    "{%- macro strip(text) -%}{%- set ns = namespace(out='') -%}"                                            \
    "{%- for part in text.split('<channel|>') -%}"                                                           \
    "{%- set ns.out = ns.out + part.split('<|channel>')[0] -%}{%- endfor -%}{{- ns.out | trim -}}"           \
    "{%- endmacro -%}"
#define SYSTEM(think)                                                                                        \
    "{{- bos_token -}}{%- set rest = messages -%}{%- set thinks = enable_thinking | default(false) -%}"      \
    "{%- if thinks or messages[0]['role'] == 'system' -%}{{- '<|turn>system\\n' -}}"                         \
    "{%- if thinks -%}{{- '" think "' -}}{%- endif -%}"                                                      \
    "{%- if messages[0]['role'] == 'system' -%}{{- messages[0]['content'] | trim -}}"                        \
    "{%- set rest = messages[1:] -%}{%- endif -%}{{- '<turn|>\\n' -}}{%- endif -%}"
#define TURNS(opening)                                                                                       \
    "{%- set ns = namespace(last='') -%}{%- for m in rest -%}"                                               \
    "{%- if m['role'] == 'assistant' -%}" opening "{{- strip(m['content']) -}}"                              \
    "{%- else -%}{{- '<|turn>' + m['role'] + '\\n' + m['content'] | trim -}}{%- endif -%}"                   \
    "{{- '<turn|>\\n' -}}{%- set ns.last = m['role'] -%}{%- endfor -%}"
#define JOINED "{%- if ns.last != 'assistant' -%}{{- '<|turn>model\\n' -}}{%- endif -%}"
#define SEPARATE "{{- '<|turn>model\\n' -}}"
#define PROMPT(off)                                                                                          \
    "{%- if add_generation_prompt -%}{{- '<|turn>model\\n' -}}"                                              \
    "{%- if not thinks -%}{{- '" off "' -}}{%- endif -%}{%- endif -%}"
#define EMPTY_THOUGHT "<|channel>thought\\n<channel|>"
#define LARGE STRIP SYSTEM("<|think|>\\n") TURNS(JOINED) PROMPT(EMPTY_THOUGHT)
#define SMALL_FIRST STRIP SYSTEM("<|think|>") TURNS(SEPARATE) PROMPT("")
#define UNKNOWN STRIP SYSTEM("<|think|>\\n") TURNS(JOINED) PROMPT("Well, ")

/* Qwen3.5's format; when is the condition of an empty thought. */
#define QWEN(when)                                                                                           \
    "{%- set ns = namespace(last=0) -%}{%- for m in messages -%}{%- if m.role == 'user' -%}"                 \
    "{%- set ns.last = loop.index0 -%}{%- endif -%}{%- endfor -%}"                                           \
    "{%- for m in messages -%}{%- set text = m.content | trim -%}{%- set thought = '' -%}"                   \
    "{%- if m.role == 'assistant' and '</think>' in text -%}"                                                \
    "{%- set thought = text.split('</think>')[0].split('<think>')[-1] | trim -%}"                            \
    "{%- set text = text.split('</think>')[-1].lstrip('\\n') -%}{%- endif -%}"                               \
    "{{- '<|im_start|>' + m.role + '\\n' -}}{%- if m.role == 'assistant' and loop.index0 > ns.last -%}"      \
    "{{- '<think>\\n' + thought + '\\n</think>\\n\\n' -}}{%- endif -%}{{- text + '<|im_end|>\\n' -}}"        \
    "{%- endfor -%}{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n<think>\\n' -}}"             \
    "{%- if " when " -%}{{- '\\n</think>\\n\\n' -}}{%- endif -%}{%- endif -%}"

static gumbel_status recognize(const char *text, json_t *special_tokens, gb_chat_format *format,
                               gumbel_error *error) {
    gb_chat_template chat = {.length = strlen(text), .source = "template", .special_tokens = special_tokens};
    chat.text = gb_copy_string(text, chat.length);
    gb_byte_buffer bytes = {0};
    gumbel_status status = gb_recognize_chat_template(&chat, &bytes, error);
    if (status == GUMBEL_OK)
        status = gb_chat_format_parse(&(gb_blob){bytes.data, bytes.size}, format, error);
    gb_buffer_free(&bytes);
    gb_chat_template_free(&chat);
    return status;
}

static void test_variants(void **state) {
    (void)state;
    gb_chat_format format;
    gumbel_error error;
    assert_ok(recognize(LARGE, NULL, &format, &error), &error);
    assert_string_equal(format.name, "gemma4");
    assert_string_equal(format.prefix, "<bos>");
    assert_string_equal(format.generation_thinking_off, "<|turn>model\n<|channel>thought\n<channel|>");
    assert_string_equal(format.system_thinking_on, "<|think|>\n");
    assert_true(format.joins_assistant_messages);
    gb_chat_format_free(&format);

    assert_ok(recognize(SMALL_FIRST, json_pack("{s:s}", "bos_token", "<s>"), &format, &error), &error);
    assert_string_equal(format.prefix, "<s>");
    assert_string_equal(format.generation_thinking_off, "<|turn>model\n");
    assert_string_equal(format.system_thinking_on, "<|think|>");
    assert_false(format.joins_assistant_messages);
    gb_chat_format_free(&format);
}

static void test_qwen(void **state) {
    (void)state;
    gb_chat_format format;
    gumbel_error error;
    json_t *unused_bos = json_pack("{s:s}", "bos_token", "<|endoftext|>");
    assert_ok(
        recognize(QWEN("enable_thinking is defined and not enable_thinking"), unused_bos, &format, &error),
        &error);
    assert_string_equal(format.name, "qwen3_5");
    assert_string_equal(format.prefix, "");
    assert_true(format.thinks_by_default);
    gb_chat_format_free(&format);
    assert_ok(recognize(QWEN("not enable_thinking"), NULL, &format, &error), &error);
    assert_false(format.thinks_by_default);
    assert_string_equal(format.answer_thought_before, "<think>\n");
    assert_string_equal(format.stop, "<|im_end|>");
    gb_chat_format_free(&format);
}

static void test_unknown(void **state) {
    (void)state;
    gb_chat_format format;
    gumbel_error error;
    assert_fails(recognize(UNKNOWN, NULL, &format, &error), GUMBEL_ERROR_UNSUPPORTED, &error,
                 "template: no known");
    assert_fails(recognize("{{ raise_exception('no') }}", NULL, &format, &error), GUMBEL_ERROR_UNSUPPORTED,
                 &error, "no");
    assert_fails(recognize("{% if %}", NULL, &format, &error), GUMBEL_ERROR_UNSUPPORTED, &error,
                 "template: ");
    assert_fails(recognize("", NULL, &format, &error), GUMBEL_ERROR_UNSUPPORTED, &error, "a question");
}

/* ---- A checkpoint's directory ---- */

static char warning[600];

static void keep_warning(void *user, gumbel_log_level level, const char *line) {
    (void)user;
    assert_int_equal(level, GUMBEL_LOG_WARNING);
    snprintf(warning, sizeof warning, "%s", line);
}

static void copy_tokenizer(void) {
    char *text;
    size_t size;
    empty_temporary_directory();
    warning[0] = 0;
    assert_int_equal(gb_read_file(DATA("gemma.tokenizer.json"), 1 << 24, &text, &size, NULL), GUMBEL_OK);
    write_file(temporary_path("tokenizer.json"), text, size);
    gb_free(text);
}

static void write_config(json_t *config) {
    char *text = json_dumps(config, 0);
    write_text(temporary_path("tokenizer_config.json"), text);
    free(text);
    json_decref(config);
}

static void read_sections(gb_text_sections *sections) {
    gumbel_error error;
    assert_ok(gb_read_text_sections(temporary_directory(), keep_warning, NULL, sections, &error), &error);
}

static void test_template_file(void **state) {
    (void)state;
    gb_text_sections sections;
    copy_tokenizer();
    write_text(temporary_path("chat_template.jinja"), LARGE);
    write_config(json_pack("{s:{s:s}, s:s}", "bos_token", "content", "<bos>", "chat_template", UNKNOWN));
    read_sections(&sections);
    assert_string_equal(warning, "");
    assert_true(sections.chat_format.size > 0);
    assert_int_equal(sections.bos_token, 2);
    assert_int_equal(sections.stop_token, 6);
    gb_text_sections_free(&sections);
}

static void test_template_in_config(void **state) {
    (void)state;
    gb_text_sections sections;
    copy_tokenizer();
    write_config(json_pack("{s:s, s:s}", "bos_token", "<bos>", "chat_template", SMALL_FIRST));
    read_sections(&sections);
    assert_true(sections.chat_format.size > 0);
    gb_text_sections_free(&sections);

    write_config(json_pack("{s:[{s:s, s:s}, {s:s, s:s}]}", "chat_template", "name", "tool_use", "template",
                           UNKNOWN, "name", "default", "template", LARGE));
    read_sections(&sections);
    assert_true(sections.chat_format.size > 0);
    assert_string_equal(warning, "");
    gb_text_sections_free(&sections);
}

/* As transformers writes what has no limit. */
static void test_long_integer(void **state) {
    (void)state;
    gb_text_sections sections;
    copy_tokenizer();
    write_text(temporary_path("tokenizer_config.json"),
               "{\"bos_token\": \"<bos>\", \"model_max_length\": 1000000000000000019884624838656}");
    read_sections(&sections);
    assert_int_equal(sections.bos_token, 2);
    gb_text_sections_free(&sections);
}

static void test_warnings(void **state) {
    (void)state;
    gb_text_sections sections;
    copy_tokenizer();
    write_text(temporary_path("chat_template.jinja"), UNKNOWN);
    read_sections(&sections);
    assert_int_equal(sections.chat_format.size, 0);
    assert_int_equal(sections.stop_token, -1);
    assert_non_null(strstr(warning, "chat_template.jinja: no known chat format"));
    assert_non_null(strstr(warning, "--chat-format FILE"));
    gb_text_sections_free(&sections);

    empty_temporary_directory();
    read_sections(&sections);
    assert_int_equal(sections.tokenizer.size, 0);
    assert_non_null(strstr(warning, "tokenizer.json"));
    gb_text_sections_free(&sections);
}

static void test_bad_config(void **state) {
    (void)state;
    gb_text_sections sections;
    gumbel_error error;
    copy_tokenizer();
    write_text(temporary_path("tokenizer_config.json"), "{\"chat_template\": 3}");
    assert_fails(gb_read_text_sections(temporary_directory(), NULL, NULL, &sections, &error),
                 GUMBEL_ERROR_FORMAT, &error, "chat_template");
    gb_text_sections_free(&sections);
    write_text(temporary_path("tokenizer_config.json"), "{");
    assert_fails(gb_read_text_sections(temporary_directory(), NULL, NULL, &sections, &error),
                 GUMBEL_ERROR_FORMAT, &error, "tokenizer_config.json");
    gb_text_sections_free(&sections);
}

static void test_export_tokenizer(void **state) {
    (void)state;
    gumbel_tokenizer *tokenizer;
    gumbel_message message = {"user", "the fox"};
    gumbel_error error;
    int32_t ids[64];
    size_t count;
    copy_tokenizer();
    write_text(temporary_path("chat_template.jinja"), LARGE);
    assert_ok(gumbel_export_tokenizer(temporary_directory(), &tokenizer, &error), &error);
    assert_ok(gumbel_chat_encode(tokenizer, &message, 1, NULL, ids, 64, &count, &error), &error);
    assert_int_equal(ids[0], gumbel_token_id(tokenizer, "<bos>"));
    assert_int_equal(ids[1], gumbel_token_id(tokenizer, "<|turn>"));
    gumbel_tokenizer_destroy(tokenizer);
    empty_temporary_directory();
    assert_fails(gumbel_export_tokenizer(temporary_directory(), &tokenizer, &error), GUMBEL_ERROR_IO, &error,
                 "tokenizer.json");
    assert_null(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variants),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_qwen),
        cmocka_unit_test(test_template_file),
        cmocka_unit_test(test_template_in_config),
        cmocka_unit_test(test_long_integer),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_bad_config),
        cmocka_unit_test(test_export_tokenizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
