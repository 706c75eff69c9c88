/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversations in JSON.
 */
#include "cli/chat/messages.h"

#include "support/assertions.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static gumbel_status parse(const char *json, cli_messages *messages, gumbel_error *error) {
    return cli_messages_parse("chat.json", json, strlen(json), messages, error);
}

static void an_array_or_an_object_of_messages(void **state) {
    (void)state;
    cli_messages messages;
    gumbel_error error;
    assert_ok(parse("[{\"role\": \"user\", \"content\": [1.5, \"a\\u0000b\"]}]", &messages, &error), &error);
    assert_string_equal(messages.messages, "[{\"role\":\"user\",\"content\":[1.5,\"a\\u0000b\"]}]");
    assert_null(messages.tools);
    cli_messages_free(&messages);
    assert_ok(parse("{\"model\":\"m\",\"messages\":[{\"content\":\"\u00e9\"}],\"tools\":[{\"name\":\"f\"}]}",
                    &messages, &error),
              &error);
    assert_string_equal(messages.messages, "[{\"content\":\"\u00e9\"}]");
    assert_string_equal(messages.tools, "[{\"name\":\"f\"}]");
    cli_messages_free(&messages);
    assert_ok(parse("{\"messages\":[{}],\"tools\":null}", &messages, &error), &error);
    assert_null(messages.tools);
    cli_messages_free(&messages);
}

static void wrong_files_are_refused(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", "chat.json: line 1"},
        {"[{]", "chat.json: line 1"},
        {"[{\"role\":1,\"role\":1}]", "chat.json: line 1: duplicate"},
        {"[]", "chat.json: expected an array of messages"},
        {"\"text\"", "chat.json"},
        {"{\"message\":[]}", "expected an array of messages"},
        {"{\"messages\":[{}],\"tools\":{}}", "an array \"tools\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cli_messages messages;
        gumbel_error error;
        assert_fails(parse(cases[i][0], &messages, &error), GUMBEL_ERROR_FORMAT, &error, cases[i][1]);
        assert_null(messages.messages);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_or_an_object_of_messages),
        cmocka_unit_test(wrong_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
