/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers held to a schema, a regular expression or a grammar by the flags of run and chat.
 */
#include "cli/fixture.h"
#include "support/paths.h"

#include <jansson.h>

static const char *model, *minimal, *bare;

static const char *export_model(const char *name, const char *flag, const char *value) {
    static char paths[2][4096];
    static size_t next;
    char *path = paths[next++ % 2];
    snprintf(path, sizeof paths[0], "%s", temporary_path(name));
    free(output_of(GUMBEL(NULL, "export", bundled_model("gemma4-tiny"), "-o", path, "--quiet", flag, value)));
    return path;
}

static int set_up(void **state) {
    (void)state;
    static char path[4096];
    model = export_model("model.gumbel", NULL, NULL);
    minimal = export_model("minimal.gumbel", "--sampler", "minimal");
    snprintf(path, sizeof path, "%s", temporary_path("bare.gumbel"));
    free(output_of(
        GUMBEL(NULL, "export", test_data("run/small.json"), "--random-weights", "1", "-o", path, "--quiet")));
    bare = path;
    return 0;
}

#define ANSWER(program, ...)                                                                                 \
    GUMBEL(NULL, "run", program, "Invent a person.", "-n", "300", "--temperature", "1.2", "--seed", "6",     \
           "-q", __VA_ARGS__)

static const char town[] =
    "{\"type\": \"object\", \"properties\": {\"b\": {\"type\": \"boolean\"}, \"a\": {\"enum\": "
    "[\"x\", \"y\"]}}, \"required\": [\"b\", \"a\"], \"additionalProperties\": false}";

static void check_town(char *answer) {
    json_t *value = json_loads(answer, JSON_REJECT_DUPLICATES, NULL);
    assert_true(json_is_boolean(json_object_get(value, "b")) && json_is_string(json_object_get(value, "a")));
    assert_int_equal(json_object_size(value), 2);
    json_decref(value);
    free(answer);
}

static void schemas_are_texts_or_files(void **state) {
    (void)state;
    const char *path = temporary_path("town.json");
    write_text(path, town);
    check_town(output_of(ANSWER(model, "--json-schema", town)));
    check_town(output_of(ANSWER(model, "-j", path)));
    char *compact = output_of(ANSWER(model, "-j", town, "--json-in-order", "--json-compact"));
    assert_int_equal(strncmp(compact, "{\"b\":", 5), 0);
    check_town(compact);
}

static void expressions_and_grammars_hold(void **state) {
    (void)state;
    char *digits = output_of(ANSWER(model, "--regex", "\\d{3}-\\d{2}")),
         *word = output_of(ANSWER(model, "--grammar", "root ::= \"yes\" | \"no\"")),
         *object = output_of(ANSWER(model, "--json-object", "-n", "1"));
    assert_true(strlen(digits) == 6 && strspn(digits, "0123456789") == 3 && digits[3] == '-');
    assert_true(strcmp(word, "yes") == 0 || strcmp(word, "no") == 0);
    assert_int_equal(object[0], '{');
    free(digits), free(word), free(object);
}

static void chats_are_held_and_set_free(void **state) {
    (void)state;
    command_result result = GUMBEL("/set temperature 0\nHi\n/set regex [xyz]{4}\nHi\n", "chat", model, "-n",
                                   "20", "--regex", "[abc]{5}");
    char *replies = output_of(result);
    const size_t first = strcspn(replies, "\n");
    assert_true(first == 5 && strspn(replies, "abc") == 5);
    assert_int_equal(strspn(replies + first + strspn(replies + first, "\n"), "xyz"), 4);
    free(replies);
}

static const char tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"clock\", \"strict\": true}},"
    " {\"name\": \"dice\", \"parameters\": {\"type\": \"object\", \"properties\": {\"sides\":"
    " {\"enum\": [4, 6]}}, \"required\": [\"sides\"]}}]";

/* The message's calls in JSON, which the caller releases. */
static json_t *calls_of(char *line) {
    json_t *answer = json_loads(line, 0, NULL);
    json_t *calls = json_incref(json_object_get(json_object_get(answer, "message"), "tool_calls"));
    json_decref(answer);
    free(line);
    return calls;
}

static void tools_are_called(void **state) {
    (void)state;
    const char *path = temporary_path("tools.json");
    write_text(path, tools);
    json_t *calls =
        calls_of(output_of(ANSWER(model, "--tools", path, "--tool-choice", "dice", "--json", "--no-think")));
    const json_t *call = json_object_get(json_array_get(calls, 0), "function");
    const char *arguments = json_string_value(json_object_get(call, "arguments"));
    assert_int_equal(json_array_size(calls), 1);
    assert_string_equal(json_string_value(json_object_get(call, "name")), "dice");
    assert_true(strcmp(arguments, "{\"sides\":4}") == 0 || strcmp(arguments, "{\"sides\":6}") == 0);
    json_decref(calls);
    calls = calls_of(output_of(ANSWER(model, "--tools", path, "--tool-choice", "none", "--json")));
    assert_null(calls);
    calls = calls_of(output_of(ANSWER(minimal, "--tools", path, "--json")));
    json_decref(calls);
}

/* A thought that the prompt has opened ends at once. */
static void thoughts_have_a_budget(void **state) {
    (void)state;
    char *free_answer = output_of(GUMBEL(NULL, "run", bundled_model("qwen3_5-moe-tiny"), "What is 3 + 4?",
                                         "--think", "--json", "--temperature", "0", "-q"));
    char *short_answer =
        output_of(GUMBEL(NULL, "run", bundled_model("qwen3_5-moe-tiny"), "What is 3 + 4?", "--think",
                         "--json", "--temperature", "0", "-q", "--reasoning-budget", "0"));
    assert_non_null(strstr(free_answer, "reasoning_content"));
    assert_null(strstr(short_answer, "reasoning_content"));
    free(free_answer), free(short_answer);
}

static void check_refusal(command_result result, int status, const char *part) {
    assert_status(result, status);
    assert_one_error_line(&result, part);
    free_result(&result);
}

static void bad_grammars_are_refused(void **state) {
    (void)state;
    const char *path = temporary_path("bad.gbnf");
    write_text(path, "root ::= (\n");
    check_refusal(ANSWER(model, "--regex", "a", "--json-object"), 1, "takes one of --json-schema");
    check_refusal(ANSWER(model, "-j", "{\"type\": \"strnig\"}"), 1, "\"type\" at #/type");
    check_refusal(ANSWER(model, "-j", "nowhere.json"), 1, "nowhere.json: No such file");
    check_refusal(ANSWER(model, "--grammar", path), 1, "bad.gbnf: grammar, line");
    check_refusal(ANSWER(minimal, "--regex", "a"), 1, "export it again");
    check_refusal(ANSWER(minimal, "--reasoning-budget", "3"), 1, "export it again");
    check_refusal(ANSWER(model, "--tool-choice", "required"), 1, "--tool-choice needs --tools");
    write_text(path, tools);
    check_refusal(ANSWER(model, "--tools", path, "--tool-choice", "moon"), 1, "none of them is \"moon\"");
    check_refusal(GUMBEL(NULL, "run", bare, "--tokens", "2,3", "--print-tokens", "--regex", "a"), 1,
                  "the program has no tokenizer");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schemas_are_texts_or_files),  cmocka_unit_test(expressions_and_grammars_hold),
        cmocka_unit_test(chats_are_held_and_set_free), cmocka_unit_test(tools_are_called),
        cmocka_unit_test(thoughts_have_a_budget),      cmocka_unit_test(bad_grammars_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
