/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of fields, and reading requests by it.
 */
#include "server/fields/fields.h"
#include "server/fields/neutral.h"
#include "server/fields/tools.h"

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
    const gb_byte_buffer body = {.text = (char *)(uintptr_t)text, .size = strlen(text)};
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

/* A name has one row, and each value is one of JSON, which is taken under each name. */
static void neutral_rows(void **state) {
    (void)state;
    for (const server_neutral *neutral = server_neutrals; neutral->names; neutral++)
        for (const char *name = neutral->names; next_name(&name) > 0; name += next_name(&name)) {
            char word[64];
            server_failure failure;
            snprintf(word, sizeof word, "%.*s", (int)next_name(&name), name);
            assert_ptr_equal(server_find_neutral(word), neutral);
            assert_true(server_take_neutral(neutral, word, json_null(), &failure));
            for (const char *value = neutral->values; next_name(&value) > 0; value += next_name(&value)) {
                json_t *parsed = json_loadb(value, next_name(&value), JSON_DECODE_ANY, NULL);
                assert_non_null(parsed);
                assert_true(server_take_neutral(neutral, word, parsed, &failure));
                json_decref(parsed);
            }
            json_t *other = json_string("other");
            assert_false(server_take_neutral(neutral, word, other, &failure));
            assert_string_equal(failure.param, word);
            assert_non_null(strstr(failure.message, ": only "));
            json_decref(other);
        }
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
        {SERVER_MESSAGES, "{\"n\":2}", "n"},
        {SERVER_RESPONSES, "{\"best_of\":1.5}", "best_of"},
        {SERVER_CHAT, "{\"mirostat\":2}", "mirostat"},
        {SERVER_CHAT, "{\"repeat_last_n\":64,\"repeat_penalty\":1.1}", "repeat_last_n"},
        {SERVER_CHAT, "{\"reasoning_format\":\"deepseek-legacy\"}", "reasoning_format"},
        {SERVER_CHAT, "{\"prompt_logprobs\":-1}", "prompt_logprobs"},
        {SERVER_CHAT, "{\"0\":0}", "0"},
        {SERVER_RENDER, "{\"mirostat\":null}", "mirostat"},
        {SERVER_CHAT, "{\"mirostat mirostat_tau\":null}", "mirostat mirostat_tau"},
        {SERVER_CHAT, "{\"max_tokens\":1e300}", "max_tokens"},
        {SERVER_CHAT, "{\"timings_per_token\":1}", "timings_per_token"},
        {SERVER_RESPONSES, "{\"tools\":[{\"type\":\"web_search\"}],\"tool_choice\":\"required\"}",
         "tool_choice"},
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
        {SERVER_CHAT, "{\"prompt_logprobs\":1,\"stream\":true}", "prompt_logprobs"},
        {SERVER_CHAT, "{\"max_tokens\":0}", "max_tokens"},
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

/* What clients send to every server, with values that change nothing. */
static void clients_of_others(void **state) {
    (void)state;
    static const struct {
        server_route route;
        const char *text;
    } cases[] = {
        {SERVER_CHAT, "{\"audio\":null,\"best_of\":1,\"typical_p\":1,\"prompt\":null,\"input\":null}"},
        {SERVER_CHAT,
         "{\"mirostat\":0.0,\"mirostat_tau\":5,\"dry_multiplier\":0,\"dry_base\":1.75,\"lora\":[],"
         "\"id_slot\":-1,\"repeat_last_n\":64,\"repeat_penalty\":1.0,\"logit_bias\":[],\"speculative.n_max\":"
         "16,\"reasoning_format\":\"auto\"}"},
        {SERVER_CHAT, "{\"use_beam_search\":false,\"length_penalty\":1.0,\"bad_words\":[],\"echo\":false,"
                      "\"spaces_between_special_tokens\":true,\"vllm_xargs\":{},\"request_id\":\"x\"}"},
        {SERVER_RESPONSES,
         "{\"client_metadata\":{\"a\":\"b\"},\"context_management\":[],\"conversation\":null}"},
        {SERVER_MESSAGES,
         "{\"context_management\":{\"edits\":[]},\"thread\":{\"id\":\"t\"},\"container\":null}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        server_request request = assert_taken(cases[i].route, cases[i].text);
        server_request_free(&request);
    }
}

/* Languages without integers write them as 4.0. */
static void whole_numbers(void **state) {
    (void)state;
    server_request request = assert_taken(
        SERVER_COMPLETIONS, "{\"max_tokens\":4.0,\"seed\":7.0,\"n\":2.0,\"best_of\":2,\"top_k\":3.0,"
                            "\"stop_token_ids\":[5.0],\"priority\":-1.0,\"min_tokens\":1e0}");
    assert_int_equal(request.max_new_tokens, 4);
    assert_true(request.has_seed && request.seed == 7);
    assert_int_equal(request.answers, 2);
    assert_int_equal(request.sampling.top_k, 3);
    assert_int_equal(request.stop_tokens[0], 5);
    assert_int_equal(request.priority, 1);
    server_request_free(&request);
    request = assert_taken(SERVER_CHAT, "{\"n_predict\":-1.0}");
    assert_int_equal(request.max_new_tokens, 0);
    server_request_free(&request);
}

static void stream_options(void **state) {
    (void)state;
    server_request request = assert_taken(
        SERVER_CHAT, "{\"stream_options\":{\"include_usage\":true,\"continuous_usage_stats\":true}}");
    assert_true(request.wants_usage && request.wants_all_usage);
    server_request_free(&request);
    request = assert_taken(SERVER_CHAT, "{\"stream_options\":{\"continuous_usage_stats\":true}}");
    assert_false(request.wants_all_usage);
    server_request_free(&request);
}

/* Functions stay, also those of namespaces; what a provider runs itself is left out. */
static void hosted_tools(void **state) {
    (void)state;
    static const struct {
        server_route route;
        const char *tools;
        size_t count;
        const char *left_out;
    } cases[] = {
        {SERVER_RESPONSES,
         "{\"type\":\"function\",\"name\":\"f\"},{\"type\":\"web_search\"},{\"type\":\"custom\"},"
         "{\"type\":\"web_search\"}",
         1, "web_search custom"},
        {SERVER_RESPONSES, "{\"type\":\"mcp\"}", 0, "mcp"},
        {SERVER_RESPONSES, "{\"type\":\"a\\r\\nb\"}", 0, ""},
        {SERVER_CHAT, "{\"type\":\"custom\"},{\"type\":\"function\",\"function\":{\"name\":\"f\"}}", 1,
         "custom"},
        {SERVER_MESSAGES,
         "{\"name\":\"f\"},{\"type\":\"custom\",\"name\":\"g\"},{\"type\":\"bash_20250124\"}", 2,
         "bash_20250124"},
        {SERVER_RESPONSES,
         "{\"type\":\"namespace\",\"name\":\"s\",\"tools\":[{\"type\":\"function\",\"name\":\"f\"},"
         "{\"type\":\"custom\",\"name\":\"g\"}]}",
         1, "custom"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, "{\"tools\":[%s]}", cases[i].tools);
        server_request request = assert_taken(cases[i].route, text);
        assert_int_equal(json_array_size(request.tools), cases[i].count);
        assert_string_equal(request.left_out, cases[i].left_out);
        server_request_free(&request);
    }
}

static void namespaces(void **state) {
    (void)state;
    const char *space, *name;
    server_request request = assert_taken(
        SERVER_RESPONSES,
        "{\"tools\":[{\"type\":\"namespace\",\"name\":\"mcp__a__\",\"tools\":[{\"type\":"
        "\"function\",\"name\":\"f\"}]},{\"type\":\"namespace\",\"name\":\"b\",\"tools\":[{\"type\":"
        "\"function\",\"name\":\"f\"}]}]}");
    assert_string_equal(json_string_value(json_object_get(json_array_get(request.tools, 0), "name")),
                        "mcp__a__f");
    assert_true(server_split_name(&request, "b__f", &space, &name));
    assert_string_equal(space, "b");
    assert_string_equal(name, "f");
    assert_false(server_split_name(&request, "f", &space, &name));
    server_request_free(&request);
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
        cmocka_unit_test(names_are_unique), cmocka_unit_test(wrong_values),
        cmocka_unit_test(odd_names),        cmocka_unit_test(deep_json),
        cmocka_unit_test(aliases),          cmocka_unit_test(defaults),
        cmocka_unit_test(biases),           cmocka_unit_test(grammars),
        cmocka_unit_test(neutral_rows),     cmocka_unit_test(clients_of_others),
        cmocka_unit_test(whole_numbers),    cmocka_unit_test(stream_options),
        cmocka_unit_test(hosted_tools),     cmocka_unit_test(namespaces),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
