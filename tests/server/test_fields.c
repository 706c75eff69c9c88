/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of fields, and reading requests by it.
 */
#include "server/fields/fields.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static server_model model = {.names = "tiny"};

static const server_model *find_model(void *user, const char *name, server_request *request,
                                      server_failure *failure) {
    (void)user, (void)request;
    if (!name || strcmp(name, "tiny") == 0)
        return &model;
    server_fail(failure, 404, "no such model");
    return NULL;
}

static int set_up(void **state) {
    (void)state;
    model.sampling.size = sizeof model.sampling;
    return gumbel_sampling_defaults(NULL, &model.sampling, NULL) == GUMBEL_OK ? 0 : -1;
}

static bool read(server_route route, const char *text, server_request *request, server_failure *failure) {
    const server_model *found;
    const server_text body = {.bytes = (char *)(uintptr_t)text, .length = strlen(text)};
    json_t *value = server_parse_body(&body, failure);
    *request = (server_request){0};
    return value && server_read_request(route, value, find_model, NULL, request, &found, failure);
}

static void assert_refused(server_route route, const char *text, const char *param) {
    server_request request;
    server_failure failure;
    if (read(route, text, &request, &failure))
        fail_msg("%s was taken", text);
    if (strcmp(failure.param, param) != 0 || failure.status != 400)
        fail_msg("%s: status %d of \"%s\": %s", text, failure.status, failure.param, failure.message);
    server_request_free(&request);
}

static server_request assert_taken(server_route route, const char *text) {
    server_request request;
    server_failure failure;
    if (!read(route, text, &request, &failure))
        fail_msg("%s: %s", text, failure.message);
    return request;
}

/* ---- The table ----------------------------------------------------------------------------------------- */

static size_t next_name(const char **names) {
    *names += strspn(*names, " ");
    return strcspn(*names, " ");
}

/* On one route a name is of one field, and no setting's. */
static void names_are_unique(void **state) {
    (void)state;
    for (const server_field *field = server_fields; field->names; field++)
        for (const char *name = field->names; next_name(&name) > 0; name += next_name(&name)) {
            char word[64];
            snprintf(word, sizeof word, "%.*s", (int)next_name(&name), name);
            unsigned routes = 0;
            for (const server_field *other = server_fields; other->names; other++)
                if (server_has_word(other->names, word)) {
                    assert_int_equal(routes & other->routes, 0);
                    routes |= other->routes;
                }
            const gumbel_setting *setting;
            for (size_t i = 0; (setting = gumbel_setting_at(i)); i++)
                assert_string_not_equal(setting->name, word);
        }
    size_t count = 0;
    while (server_fields[count].names)
        count++;
    assert_in_range(count, 1, SERVER_MOST_FIELDS);
}

/* ---- Values -------------------------------------------------------------------------------------------- */

static void wrong_values(void **state) {
    (void)state;
    static const struct {
        server_route route;
        const char *text, *param;
    } cases[] = {
        {SERVER_CHAT, "{\"banana\":1}", "banana"},
        {SERVER_CHAT, "{\"banana\":null}", "banana"},
        {SERVER_CHAT, "{\"prompt\":\"x\"}", "prompt"},
        {SERVER_COMPLETIONS, "{\"messages\":[]}", "messages"},
        {SERVER_MESSAGES, "{\"n\":1}", "n"},
        {SERVER_RESPONSES, "{\"stop_token\":[1]}", "stop_token"},
        {SERVER_CHAT, "{\"max_tokens max_completion_tokens\":1}", "max_tokens max_completion_tokens"},
        {SERVER_CHAT, "{\"max_tokens\":0}", "max_tokens"},
        {SERVER_CHAT, "{\"max_tokens\":1.5}", "max_tokens"},
        {SERVER_CHAT, "{\"max_tokens\":2147483648}", "max_tokens"},
        {SERVER_CHAT, "{\"temperature\":\"1\"}", "temperature"},
        {SERVER_CHAT, "{\"top_k\":1.5}", "top_k"},
        {SERVER_CHAT, "{\"top_p\":2}", "top_p"},
        {SERVER_CHAT, "{\"seed\":1.5}", "seed"},
        {SERVER_CHAT, "{\"seed\":\"-1\"}", "seed"},
        {SERVER_CHAT, "{\"seed\":\"18446744073709551616\"}", "seed"},
        {SERVER_CHAT, "{\"n\":129}", "n"},
        {SERVER_CHAT, "{\"stop\":[1]}", "stop"},
        {SERVER_CHAT, "{\"stop\":\"a\\u0000b\"}", "stop"},
        {SERVER_CHAT, "{\"logit_bias\":{\"1x\":1}}", "logit_bias"},
        {SERVER_CHAT, "{\"logit_bias\":{\"1\":true}}", "logit_bias"},
        {SERVER_CHAT, "{\"logprobs\":1}", "logprobs"},
        {SERVER_COMPLETIONS, "{\"logprobs\":true}", "logprobs"},
        {SERVER_COMPLETIONS, "{\"logprobs\":1,\"echo\":true}", "echo"},
        {SERVER_CHAT, "{\"stream\":1}", "stream"},
        {SERVER_CHAT, "{\"stream_options\":{\"x\":true}}", "stream_options"},
        {SERVER_CHAT, "{\"reasoning_effort\":\"low medium\"}", "reasoning_effort"},
        {SERVER_CHAT, "{\"messages\":{}}", "messages"},
        {SERVER_CHAT, "{\"messages\":[]}", "messages"},
        {SERVER_RESPONSES, "{\"text\":{\"format\":{\"type\":\"json\"}}}", "text.format"},
        {SERVER_RESPONSES, "{\"text\":{\"format\":{\"type\":\"json_schema\"}}}", "text.format"},
        {SERVER_RESPONSES, "{\"text\":{\"form\":{}}}", "text"},
        {SERVER_MESSAGES, "{\"output_config\":{\"format\":[]}}", "output_config.format"},
        {SERVER_MESSAGES, "{\"output_config\":{\"summary\":\"auto\"}}", "output_config"},
        {SERVER_RENDER, "{\"response_format\":{\"type\":\"json_object\"}}", "response_format"},
        {SERVER_CHAT, "{\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":true}}}",
         "response_format"},
        {SERVER_CHAT, "{\"response_format\":{\"type json_schema\":1}}", "response_format"},
        {SERVER_CHAT, "{\"tool_choice\":\"required\"}", "tool_choice"},
        {SERVER_CHAT, "{\"tool_choice\":\"perhaps\",\"tools\":[{}]}", "tool_choice"},
        {SERVER_CHAT, "{\"tool_choice\":{\"type\":\"function\"},\"tools\":[{}]}", "tool_choice"},
        {SERVER_MESSAGES, "{\"tool_choice\":{\"type\":\"any\",\"disable_parallel_tool_use\":1}}",
         "tool_choice"},
        {SERVER_CHAT, "{\"parallel_tool_calls\":\"no\"}", "parallel_tool_calls"},
        {SERVER_CHAT, "{\"reasoning_budget\":-2}", "reasoning_budget"},
        {SERVER_CHAT, "{\"thinking_token_budget\":\"few\"}", "thinking_token_budget"},
        {SERVER_MESSAGES, "{\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1.5}}",
         "thinking.budget_tokens"},
        {SERVER_CHAT, "{\"grammar\":\"a\",\"guided_regex\":\"a\"}", "guided_regex"},
        {SERVER_CHAT, "{\"structured_outputs\":{\"regex\":\"a\\u0000\"}}", "structured_outputs.regex"},
        {SERVER_CHAT, "{\"structured_outputs\":{\"regex\":\"a\",\"choice\":[\"a\"]}}",
         "structured_outputs.choice"},
        {SERVER_CHAT, "{\"structured_outputs\":{\"whitespace_pattern\":\"\"}}", "structured_outputs"},
        {SERVER_RENDER, "{\"temperature\":1}", "temperature"},
        {SERVER_CHAT, "{\"max_tokens\":1,\"n_predict\":2}", "n_predict"},
        {SERVER_CHAT, "[]", ""},
        {SERVER_CHAT, "{\"n\":1,\"n\":1}", ""},
        {SERVER_CHAT, "{\"n\":1e400}", ""},
        {SERVER_CHAT, "{", ""},
        {SERVER_CHAT, "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(cases[i].route, cases[i].text, cases[i].param);
}

/* A name that could command a terminal, or is long, is not repeated so. */
static void odd_names(void **state) {
    (void)state;
    assert_refused(SERVER_CHAT, "{\"a\\u001b[2Jb\":1}", "a?[2Jb");
    assert_refused(SERVER_CHAT,
                   "{\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\":1}",
                   "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
}

/* Arrays of brackets do not end the stack. */
static void deep_json(void **state) {
    (void)state;
    static char text[200001];
    memset(text, '[', sizeof text - 1);
    assert_refused(SERVER_CHAT, text, "");
}

static void aliases(void **state) {
    (void)state;
    static const char *const limits[] = {"{\"max_tokens\":9}", "{\"max_completion_tokens\":9}",
                                         "{\"n_predict\":9}",
                                         "{\"max_tokens\":9,\"max_completion_tokens\":9}"};
    for (size_t i = 0; i < 4; i++) {
        server_request request = assert_taken(SERVER_CHAT, limits[i]);
        assert_int_equal(request.max_new_tokens, 9);
        server_request_free(&request);
    }
    server_request request =
        assert_taken(SERVER_CHAT, "{\"repeat_penalty\":1.5,\"n_predict\":-1,\"temp\":0.25}");
    assert_true(request.sampling.repetition_penalty == 1.5f && request.sampling.temperature == 0.25f);
    assert_int_equal(request.max_new_tokens, 0);
    server_request_free(&request);
}

/* null is as if the field were missing; -1 draws a seed; a seed has 64 bits. */
static void defaults(void **state) {
    (void)state;
    server_request request =
        assert_taken(SERVER_CHAT, "{\"seed\":null,\"temperature\":null,\"stop\":null,\"model\":null}");
    assert_false(request.has_seed);
    assert_int_equal(request.answers, 1);
    assert_null(request.origins[0]);
    server_request_free(&request);
    request = assert_taken(SERVER_CHAT, "{\"seed\":-1}");
    assert_false(request.has_seed);
    server_request_free(&request);
    request = assert_taken(SERVER_CHAT, "{\"seed\":\"18446744073709551615\",\"temperature\":0.5}");
    assert_true(request.has_seed && request.seed == UINT64_MAX);
    assert_string_equal(request.origins[0], "request");
    server_request_free(&request);
}

static void biases(void **state) {
    (void)state;
    server_request request =
        assert_taken(SERVER_CHAT, "{\"logit_bias\":{\"7\":1.5,\"8\":-100,\"9\":false,\"10\":-99}}");
    assert_int_equal(request.sampling.bias_count, 4);
    assert_true(request.sampling.bias[0].token == 7 && request.sampling.bias[0].value == 1.5f);
    assert_true(request.sampling.bias[1].value == -HUGE_VALF && request.sampling.bias[2].value == -HUGE_VALF);
    assert_true(request.sampling.bias[3].value == -99.0f);
    server_request_free(&request);
}

static void grammars(void **state) {
    (void)state;
    static const struct {
        server_route route;
        const char *text;
        gumbel_grammar_kind kind;
        const char *field, *grammar;
        bool is_compact;
    } cases[] = {
        {SERVER_CHAT, "{\"response_format\":{\"type\":\"text\"},\"grammar\":null}", 0, NULL, NULL, false},
        {SERVER_CHAT, "{\"response_format\":{\"type\":\"json_object\"}}", GUMBEL_GRAMMAR_JSON,
         "response_format", NULL, false},
        {SERVER_COMPLETIONS,
         "{\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"n\",\"strict\":true,"
         "\"schema\":{\"b\":1,\"a\":[2]}}}}",
         GUMBEL_GRAMMAR_JSON_SCHEMA, "response_format", "{\"b\":1,\"a\":[2]}", false},
        {SERVER_RESPONSES, "{\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"n\",\"schema\":{}}}}",
         GUMBEL_GRAMMAR_JSON_SCHEMA, "text.format", "{}", false},
        {SERVER_MESSAGES, "{\"output_config\":{\"format\":{\"type\":\"json_schema\",\"schema\":{}}}}",
         GUMBEL_GRAMMAR_JSON_SCHEMA, "output_config.format", "{}", false},
        {SERVER_CHAT, "{\"structured_outputs\":{\"json\":\"{ }\",\"regex\":null,\"json_object\":false}}",
         GUMBEL_GRAMMAR_JSON_SCHEMA, "structured_outputs.json", "{ }", false},
        {SERVER_CHAT, "{\"structured_outputs\":{\"json_object\":true,\"disable_any_whitespace\":true}}",
         GUMBEL_GRAMMAR_JSON, "structured_outputs.json_object", NULL, true},
        {SERVER_CHAT, "{\"guided_choice\":[\"a\",\"b\"]}", GUMBEL_GRAMMAR_CHOICES, "guided_choice",
         "[\"a\",\"b\"]", false},
        {SERVER_CHAT, "{\"guided_regex\":\"a+\"}", GUMBEL_GRAMMAR_REGEX, "guided_regex", "a+", false},
        {SERVER_MESSAGES, "{\"grammar\":\"root ::= x\"}", GUMBEL_GRAMMAR_GBNF, "grammar", "root ::= x",
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        server_request request = assert_taken(cases[i].route, cases[i].text);
        assert_int_equal(request.grammar.kind, cases[i].kind);
        assert_int_equal(request.grammar.compact, cases[i].is_compact);
        if (cases[i].field)
            assert_string_equal(request.grammar_field, cases[i].field);
        if (cases[i].grammar)
            assert_string_equal(request.grammar.text, cases[i].grammar);
        else
            assert_null(request.grammar.text);
        server_request_free(&request);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_unique), cmocka_unit_test(wrong_values), cmocka_unit_test(odd_names),
        cmocka_unit_test(deep_json),        cmocka_unit_test(aliases),      cmocka_unit_test(defaults),
        cmocka_unit_test(biases),           cmocka_unit_test(grammars),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
