/* SPDX-License-Identifier: Apache-2.0
 *
 * Chat templates of a checkpoint's directory: which files they are read from, and the tokens that end and
 * begin turns in them.
 */
#include "golden.h"

#include "export/text/text_sections.h"
#include "support/assertions.h"
#include "support/temporary.h"
#include "text/chat/chat_section.h"

#include <stdlib.h>

#define TURNS                                                                                                \
    "{{ bos_token }}{% for m in messages %}<|turn>{{ m.role }}\n{{ m.content }}<turn|>\n{% endfor %}"
#define OTHER "{% for m in messages %}[{{ m.content }}]{% endfor %}"

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

static void assert_template(const gb_text_sections *sections, const char *name, const char *expected) {
    gb_chat_section chat;
    gumbel_error error;
    const char *text;
    assert_ok(gb_chat_section_parse(&(gb_blob){sections->chat.data, sections->chat.size}, &chat, &error),
              &error);
    assert_ok(gb_chat_section_choose(&chat, name, false, &text, &error), &error);
    assert_string_equal(text, expected);
    gb_chat_section_free(&chat);
}

static void test_template_file(void **state) {
    (void)state;
    gb_text_sections sections;
    copy_tokenizer();
    write_text(temporary_path("chat_template.jinja"), TURNS);
    write_config(json_pack("{s:{s:s}, s:s}", "bos_token", "content", "<bos>", "chat_template", OTHER));
    read_sections(&sections);
    assert_string_equal(warning, "");
    assert_template(&sections, NULL, TURNS);
    assert_int_equal(sections.bos_token, 2);
    assert_int_equal(sections.stop_token, 6);
    gb_text_sections_free(&sections);
}

static void test_template_in_config(void **state) {
    (void)state;
    gb_text_sections sections;
    copy_tokenizer();
    write_config(json_pack("{s:s, s:s}", "bos_token", "<bos>", "chat_template", TURNS));
    read_sections(&sections);
    assert_template(&sections, NULL, TURNS);
    gb_text_sections_free(&sections);

    write_config(json_pack("{s:[{s:s, s:s}, {s:s, s:s}]}", "chat_template", "name", "tool_use", "template",
                           OTHER, "name", "default", "template", TURNS));
    read_sections(&sections);
    assert_template(&sections, NULL, TURNS);
    assert_template(&sections, "tool_use", OTHER);
    assert_string_equal(warning, "");
    gb_text_sections_free(&sections);
}

/* Templates in a folder beside the default one; what is no template there is left alone. */
static void test_additional_templates(void **state) {
    (void)state;
    gb_text_sections sections;
    copy_tokenizer();
    write_text(temporary_path("chat_template.jinja"), TURNS);
    write_text(temporary_path("additional_chat_templates/tool_use.jinja"), OTHER);
    write_text(temporary_path("additional_chat_templates/rag.jinja"), "rag");
    write_text(temporary_path("additional_chat_templates/notes.txt"), "notes");
    read_sections(&sections);
    assert_template(&sections, NULL, TURNS);
    assert_template(&sections, "default", TURNS);
    assert_template(&sections, "tool_use", OTHER);
    assert_template(&sections, "rag", "rag");
    gb_text_sections_free(&sections);
    write_text(temporary_path("additional_chat_templates/default.jinja"), OTHER);
    gumbel_error error;
    assert_fails(gb_read_text_sections(temporary_directory(), keep_warning, NULL, &sections, &error),
                 GUMBEL_ERROR_FORMAT, &error, "default.jinja");
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

/* What a template lacks is told, and it is kept; one that ends turns by no special token has no stop. */
static void test_warnings(void **state) {
    (void)state;
    gb_text_sections sections;
    copy_tokenizer();
    write_text(temporary_path("chat_template.jinja"), OTHER);
    read_sections(&sections);
    assert_string_equal(warning, "");
    assert_template(&sections, NULL, OTHER);
    assert_int_equal(sections.stop_token, -1);
    gb_text_sections_free(&sections);

    write_text(temporary_path("chat_template.jinja"), "\n{% include 'x' %}");
    read_sections(&sections);
    assert_template(&sections, NULL, "\n{% include 'x' %}");
    assert_int_equal(sections.stop_token, -1);
    assert_non_null(strstr(warning, "line 2: the statement \"include\" is not known here (\"default\")"));
    assert_non_null(strstr(warning, "--chat-template-file FILE"));
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
    write_text(temporary_path("tokenizer_config.json"), "{\"chat_template\": [{\"name\": \"a\"}]}");
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
    gumbel_message message = {.size = sizeof message, .role = "user", .content = "the fox"};
    gumbel_error error;
    int32_t ids[64];
    size_t count;
    copy_tokenizer();
    write_text(temporary_path("chat_template.jinja"), TURNS);
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
        cmocka_unit_test(test_template_file),
        cmocka_unit_test(test_template_in_config),
        cmocka_unit_test(test_additional_templates),
        cmocka_unit_test(test_long_integer),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_bad_config),
        cmocka_unit_test(test_export_tokenizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
