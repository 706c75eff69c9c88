/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversations in JSON.
 */
#include "cli/chat/messages.h"

#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static gumbel_status parse(const char *json, cli_messages *messages, gumbel_error *error) {
    return cli_messages_parse("chat.json", json, strlen(json), messages, error);
}

static void both_forms_of_content(void **state) {
    (void)state;
    cli_messages messages;
    gumbel_error error;
    assert_ok(parse("[{\"role\":\"system\",\"content\":\"Be brief.\"},"
                    "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"One\\n\"},"
                    "{\"type\":\"text\",\"text\":\"two\"}]},{\"role\":\"assistant\",\"content\":[]}]",
                    &messages, &error),
              &error);
    assert_int_equal(messages.count, 3);
    assert_string_equal(messages.items[0].role, "system");
    assert_string_equal(messages.items[0].content, "Be brief.");
    assert_string_equal(messages.items[1].content, "One\ntwo");
    assert_string_equal(messages.items[2].content, "");
    cli_messages_free(&messages);
}

static void an_object_with_messages(void **state) {
    (void)state;
    cli_messages messages;
    gumbel_error error;
    assert_ok(
        parse("{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"é\"}]}", &messages, &error),
        &error);
    assert_int_equal(messages.count, 1);
    assert_string_equal(messages.items[0].content, "é");
    cli_messages_free(&messages);
}

static void developer_is_system(void **state) {
    (void)state;
    cli_messages messages;
    gumbel_error error;
    assert_ok(parse("[{\"role\":\"developer\",\"content\":\"a\",\"tool_calls\":[]}]", &messages, &error),
              &error);
    assert_string_equal(messages.items[0].role, "system");
    cli_messages_free(&messages);
}

static void wrong_files_are_refused(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", "chat.json: line 1"},
        {"[{]", "chat.json: line 1"},
        {"[]", "expected an array of messages"},
        {"\"text\"", "chat.json"},
        {"{\"message\":[]}", "expected an array of messages"},
        {"[3]", "message 0: expected an object with a string \"role\""},
        {"[{\"content\":\"a\"}]", "message 0: expected an object with a string \"role\""},
        {"[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"user\"}]", "message 1: expected \"content\""},
        {"[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{}]}]", "message 0: \"tool_calls\""},
        {"[{\"role\":\"user\",\"content\":7}]", "message 0: expected \"content\""},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":\"x\"}]}]",
         "message 0: expected \"content\""},
        {"[{\"role\":\"user\",\"content\":\"a\\u0000b\"}]", "chat.json: line 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cli_messages messages;
        gumbel_error error;
        assert_fails(parse(cases[i][0], &messages, &error), GUMBEL_ERROR_FORMAT, &error, cases[i][1]);
        assert_null(messages.items);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms_of_content),
        cmocka_unit_test(an_object_with_messages),
        cmocka_unit_test(developer_is_system),
        cmocka_unit_test(wrong_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
