/* SPDX-License-Identifier: Apache-2.0
 *
 * The section with a program's chat templates: written and read, chosen by name, and damaged.
 */
#include "text/chat/chat_section.h"

#include "base/memory.h"
#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static gumbel_error error;

static gb_chat_section new_section(void) {
    gb_chat_section section;
    assert_ok(gb_chat_section_create(&section, &error), &error);
    return section;
}

static void add_template(gb_chat_section *section, const char *name, const char *text) {
    assert_ok(gb_chat_section_add_template(section, name, text, strlen(text), &error), &error);
}

static gb_byte_buffer bytes_of_example(void) {
    gb_chat_section section = new_section();
    gb_byte_buffer bytes = {0};
    add_template(&section, "default", "{{ bos_token }}");
    add_template(&section, "tool_use", "{{ tools }}\n");
    assert_ok(gb_chat_section_add_token(&section, "bos_token", "<s>", 3, &error), &error);
    gb_chat_section_write(&section, &bytes);
    gb_chat_section_free(&section);
    return bytes;
}

static void what_is_written_is_read(void **state) {
    (void)state;
    gb_byte_buffer bytes = bytes_of_example(), again = {0};
    gb_chat_section section;
    assert_ok(gb_chat_section_parse(&(gb_blob){bytes.data, bytes.size}, &section, &error), &error);
    assert_int_equal(json_object_size(section.templates), 2);
    assert_string_equal(json_string_value(json_object_get(section.templates, "tool_use")), "{{ tools }}\n");
    assert_string_equal(json_string_value(json_object_get(section.special_tokens, "bos_token")), "<s>");
    gb_chat_section_write(&section, &again);
    assert_int_equal(again.size, bytes.size);
    assert_memory_equal(again.data, bytes.data, bytes.size);
    gb_chat_section_free(&section);
    gb_buffer_free(&bytes);
    gb_buffer_free(&again);
}

static void templates_are_chosen_as_transformers_does(void **state) {
    (void)state;
    gb_chat_section section = new_section();
    const char *text;
    assert_fails(gb_chat_section_choose(&section, NULL, false, &text, &error), GUMBEL_ERROR_UNSUPPORTED,
                 &error, "--chat-template-file");
    add_template(&section, "rag", "R");
    assert_ok(gb_chat_section_choose(&section, NULL, true, &text, &error), &error);
    assert_string_equal(text, "R"); /* the only one */
    add_template(&section, "tool_use", "T");
    assert_fails(gb_chat_section_choose(&section, NULL, false, &text, &error), GUMBEL_ERROR_UNSUPPORTED,
                 &error, "rag, tool_use");
    add_template(&section, "default", "D");
    assert_ok(gb_chat_section_choose(&section, NULL, false, &text, &error), &error);
    assert_string_equal(text, "D");
    assert_ok(gb_chat_section_choose(&section, NULL, true, &text, &error), &error);
    assert_string_equal(text, "T");
    assert_ok(gb_chat_section_choose(&section, "rag", true, &text, &error), &error);
    assert_string_equal(text, "R");
    assert_fails(gb_chat_section_choose(&section, "none", true, &text, &error), GUMBEL_ERROR_UNSUPPORTED,
                 &error, "\"none\"; there are: rag, tool_use, default");
    gb_chat_section_free(&section);
}

static void bad_texts_are_refused(void **state) {
    (void)state;
    gb_chat_section section = new_section();
    char long_name[GB_MAX_CHAT_NAME + 2];
    memset(long_name, 'n', sizeof long_name);
    long_name[sizeof long_name - 1] = 0;
    add_template(&section, "a", "A");
    assert_fails(gb_chat_section_add_template(&section, "a", "B", 1, &error), GUMBEL_ERROR_FORMAT, &error,
                 "two chat templates \"a\"");
    assert_fails(gb_chat_section_add_template(&section, "", "B", 1, &error), GUMBEL_ERROR_FORMAT, &error,
                 "name");
    assert_fails(gb_chat_section_add_template(&section, long_name, "B", 1, &error), GUMBEL_ERROR_FORMAT,
                 &error, "name");
    assert_fails(gb_chat_section_add_template(&section, "b", "\xFF", 1, &error), GUMBEL_ERROR_FORMAT, &error,
                 "UTF-8");
    assert_fails(gb_chat_section_add_template(&section, "b", "a\0b", 3, &error), GUMBEL_ERROR_FORMAT, &error,
                 "zero byte");
    assert_fails(gb_chat_section_add_token(&section, "b", long_name, sizeof long_name - 1, &error),
                 GUMBEL_ERROR_LIMIT, &error, "at most 128");
    assert_int_equal(json_object_size(section.templates), 1);
    gb_chat_section_free(&section);
}

static gumbel_status parse(const uint8_t *data, size_t size) {
    gb_chat_section section;
    gumbel_status status = gb_chat_section_parse(&(gb_blob){data, size}, &section, &error);
    if (status == GUMBEL_OK)
        gb_chat_section_free(&section);
    else
        assert_non_null(strstr(error.message, "chat section"));
    return status;
}

/* Flipped and cut sections give an error or some section, and never a crash. */
static void damaged_sections_do_no_harm(void **state) {
    (void)state;
    gb_byte_buffer bytes = bytes_of_example();
    for (size_t i = 0; i < bytes.size; i++) {
        for (int flip = 1; flip < 256; flip += flip) {
            bytes.data[i] ^= (uint8_t)flip;
            parse(bytes.data, bytes.size);
            bytes.data[i] ^= (uint8_t)flip;
        }
        uint8_t *cut = gb_allocate(i, 1); /* of its own size, so that reading past the end shows */
        memcpy(cut, bytes.data, i);
        parse(cut, i);
        gb_free(cut);
    }
    gb_buffer_free(&bytes);
}

static void newer_sections_are_refused(void **state) {
    (void)state;
    const uint8_t version[] = {3, 0, 0, 0};
    const uint8_t record[] = {2, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 'a', 1, 0, 0, 0, 'b'};
    assert_int_equal(parse(version, sizeof version), GUMBEL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "version 3"));
    assert_int_equal(parse(record, sizeof record), GUMBEL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "kind 9"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(templates_are_chosen_as_transformers_does),
        cmocka_unit_test(bad_texts_are_refused),
        cmocka_unit_test(damaged_sections_do_no_harm),
        cmocka_unit_test(newer_sections_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
