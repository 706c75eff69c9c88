/* SPDX-License-Identifier: Apache-2.0
 *
 * What each protocol makes of an answer with a thought, text and a call of a tool, whole and streamed, and of
 * answers that fail: over HTTP, from a generator that says what the test wants.
 */
#include "fake_generator.h"
#include "server/server.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER                                                                                               \
    "I look it up.\n</think>\n\nOne moment.\n\n<tool_call>\n<function=weather>\n<parameter=town>\nBree\n"    \
    "</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call><|im_end|>"
#define ASK "\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]"
#define SCHEMA                                                                                               \
    "{\"type\":\"object\",\"properties\":{\"town\":{\"type\":\"string\"},\"days\":{\"type\":\"integer\"}}}"
#define TOOLS                                                                                                \
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"weather\",\"parameters\":" SCHEMA "}}]"
#define ARGUMENTS "{\"town\":\"Bree\",\"days\":3}"

static fake_generator fake;
static server_model model;
static server *running;

static int set_up(void **state) {
    (void)state;
    static server_options options = {.host = "127.0.0.1",
                                     .max_body_bytes = 1 << 20,
                                     .max_connections = 16,
                                     .max_stream_bytes = 1 << 20,
                                     .max_stored_bytes = 1 << 20};
    gumbel_error error;
    model = fake_model("qwen3_5-moe-tiny", &fake);
    const server_models models = server_models_of(&model);
    return server_create(&options, &models, &running, &error) == GUMBEL_OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    server_drain(running);
    server_destroy(running);
    return 0;
}

/* ---- Requests ------------------------------------------------------------------------------------------ */

static char reply_text[1 << 20];

static int connect_to_server(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(server_port(running))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int connection = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(connection, (struct sockaddr *)&address, sizeof address), 0);
    return connection;
}

/* The body of the reply; *status of HTTP. Chunks are joined. */
static const char *post(const char *path, const char *body, int *status) {
    const int connection = connect_to_server();
    /* HTTP/1.0 replies have no chunks. */
    dprintf(connection, "POST %s HTTP/1.0\r\nContent-Length: %zu\r\n\r\n%s", path, strlen(body), body);
    size_t length = 0;
    for (ssize_t count; (count = read(connection, reply_text + length, sizeof reply_text - 1 - length)) > 0;)
        length += (size_t)count;
    close(connection);
    reply_text[length] = '\0';
    const char *begin = strstr(reply_text, "\r\n\r\n");
    assert_non_null(begin);
    assert_int_equal(sscanf(reply_text, "HTTP/1.%*d %d", status), 1);
    return begin + 4;
}

static json_t *post_json(const char *path, const char *body, int expected) {
    int status;
    const char *text = post(path, body, &status);
    if (status != expected)
        fail_msg("status %d: %s", status, text);
    json_t *value = json_loads(text, 0, NULL);
    assert_non_null(value);
    fake_join(&fake);
    return value;
}

/* The value at a path such as "choices.0.message". */
static json_t *at(json_t *value, const char *path) {
    char part[64];
    while (value && *path) {
        const size_t length = strcspn(path, ".");
        snprintf(part, sizeof part, "%.*s", (int)length, path);
        value =
            json_is_array(value) ? json_array_get(value, (size_t)atoi(part)) : json_object_get(value, part);
        path += length + (path[length] == '.');
    }
    return value;
}

static void assert_text(json_t *value, const char *path, const char *expected) {
    const char *found = json_string_value(at(value, path));
    if (!found || strcmp(found, expected) != 0)
        fail_msg("%s is %s, expected %s", path, found ? found : "no string", expected);
}

/* The event number `index` of a stream, or the last one but -index - 1. NULL: there is none. */
static json_t *event_at(const char *stream, int index) {
    const char *found[512];
    int count = 0;
    for (const char *next = stream; (next = strstr(next, "data: {")) && count < 512; next += 6)
        found[count++] = next + 6;
    index = index < 0 ? count + index : index;
    return index >= 0 && index < count ? json_loadb(found[index], strcspn(found[index], "\n"), 0, NULL)
                                       : NULL;
}

/* Joins the strings at path of all events. */
static void join_events(const char *stream, const char *path, char *joined) {
    json_t *event;
    joined[0] = '\0';
    for (int i = 0; (event = event_at(stream, i)); i++) {
        const char *text = json_string_value(at(event, path));
        strcat(joined, text ? text : "");
        json_decref(event);
    }
}

/* ---- Chats --------------------------------------------------------------------------------------------- */

static void a_chat(void **state) {
    (void)state;
    fake_say(&fake, ANSWER);
    json_t *reply = post_json("/v1/chat/completions", "{" ASK "," TOOLS ",\"seed\":5}", 200);
    assert_text(reply, "choices.0.message.reasoning_content", "I look it up.");
    assert_text(reply, "choices.0.message.content", "One moment.");
    assert_text(reply, "choices.0.message.tool_calls.0.type", "function");
    assert_text(reply, "choices.0.message.tool_calls.0.function.name", "weather");
    assert_text(reply, "choices.0.message.tool_calls.0.function.arguments", ARGUMENTS);
    assert_text(reply, "choices.0.finish_reason", "tool_calls");
    assert_text(reply, "choices.0.seed", "5");
    assert_int_equal(json_integer_value(at(reply, "usage.prompt_tokens_details.cached_tokens")), 1);
    assert_true(json_number_value(at(reply, "timings.prompt_ms")) == 500);
    json_decref(reply);
}

/* Each delta of a call has its index, id, type and name. */
static void a_streamed_chat(void **state) {
    (void)state;
    int status, calls = 0;
    char joined[4096];
    fake_say(&fake, ANSWER);
    const char *stream = post("/v1/chat/completions", "{" ASK "," TOOLS ",\"stream\":true}", &status);
    fake_join(&fake);
    assert_int_equal(status, 200);
    join_events(stream, "choices.0.delta.reasoning_content", joined);
    assert_string_equal(joined, "I look it up.");
    join_events(stream, "choices.0.delta.content", joined);
    assert_string_equal(joined, "One moment.");
    json_t *event;
    for (int i = 0; (event = event_at(stream, i)); i++) {
        if (at(event, "choices.0.delta.tool_calls")) {
            calls++;
            assert_int_equal(json_integer_value(at(event, "choices.0.delta.tool_calls.0.index")), 0);
            assert_text(event, "choices.0.delta.tool_calls.0.type", "function");
            assert_text(event, "choices.0.delta.tool_calls.0.function.name", "weather");
            assert_text(event, "choices.0.delta.tool_calls.0.function.arguments", ARGUMENTS);
            assert_true(json_string_length(at(event, "choices.0.delta.tool_calls.0.id")) > 4);
        }
        json_decref(event);
    }
    assert_int_equal(calls, 1);
    json_t *last = event_at(stream, -1);
    assert_text(last, "choices.0.finish_reason", "tool_calls");
    assert_non_null(at(last, "timings"));
    json_decref(last);
    assert_non_null(strstr(stream, "\n\ndata: [DONE]\n\n"));
}

/* Texts around a call are joined alike, whole and streamed. */
static void texts_around_a_call(void **state) {
    (void)state;
    int status;
    char joined[4096];
    static const char answer[] =
        "</think>\n\nLet me see. <tool_call>\n<function=weather>\n</function>\n</tool_call> Done.<|im_end|>";
    fake_say(&fake, answer);
    json_t *reply = post_json("/v1/chat/completions", "{" ASK "," TOOLS "}", 200);
    assert_text(reply, "choices.0.message.content", "Let me see.\n\nDone.");
    json_decref(reply);
    fake_say(&fake, answer);
    const char *stream = post("/v1/chat/completions", "{" ASK "," TOOLS ",\"stream\":true}", &status);
    fake_join(&fake);
    join_events(stream, "choices.0.delta.content", joined);
    assert_string_equal(joined, "Let me see.\n\nDone.");
}

/* Stop strings hold for the answer, whose leading white space is not part of it. */
static void stop_strings(void **state) {
    (void)state;
    static const struct {
        const char *fields, *reasoning, *content;
    } cases[] = {
        {"\"stop\":[\"\\n\\n\"]", "One.\n\nTwo.", "Three \xF0\x9F\x98\x80 four."},
        {"\"stop\":[\"\xF0\x9F\x98\x8A\"]", "One.\n\nTwo.", "Three \xF0\x9F\x98\x80 four.\n\nFive"},
        {"\"stop\":\"Five\"", "One.\n\nTwo.", "Three \xF0\x9F\x98\x80 four."},
        {"\"stop\":\"Two\",\"stop_in_reasoning\":true", "One.", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char body[256], joined[4096];
        int status;
        fake_say(&fake, "One.\n\nTwo.\n</think>\n\nThree \xF0\x9F\x98\x80 four.\n\nFive "
                        "\xF0\x9F\x98\x8A six.<|im_end|>");
        snprintf(body, sizeof body, "{" ASK ",%s}", cases[i].fields);
        json_t *reply = post_json("/v1/chat/completions", body, 200);
        assert_text(reply, "choices.0.message.reasoning_content", cases[i].reasoning);
        assert_text(reply, "choices.0.message.content", cases[i].content);
        json_decref(reply);
        snprintf(body, sizeof body, "{" ASK ",%s,\"stream\":true}", cases[i].fields);
        const char *stream = post("/v1/chat/completions", body, &status);
        fake_join(&fake);
        join_events(stream, "choices.0.delta.content", joined);
        assert_string_equal(joined, cases[i].content);
    }
}

/* Without tools nothing is a call. */
static void a_chat_without_tools(void **state) {
    (void)state;
    static const char call[] = "<tool_call>\n<function=weather>\n</function>\n</tool_call>";
    char answer[256];
    snprintf(answer, sizeof answer, "</think>\n\n%s<|im_end|>", call);
    static const char *const bodies[] = {"{" ASK "}", "{" ASK "," TOOLS ",\"tool_choice\":\"none\"}"};
    for (size_t i = 0; i < 2; i++) {
        fake_say(&fake, answer);
        json_t *reply = post_json("/v1/chat/completions", bodies[i], 200);
        assert_text(reply, "choices.0.message.content", call);
        assert_text(reply, "choices.0.finish_reason", "stop");
        json_decref(reply);
    }
}

/* llama.cpp's reasoning_format none: thoughts are content as they were written, calls are calls. */
static void thoughts_as_text(void **state) {
    (void)state;
    fake_say(&fake, ANSWER);
    json_t *reply =
        post_json("/v1/chat/completions", "{" ASK "," TOOLS ",\"reasoning_format\":\"none\"}", 200);
    assert_null(at(reply, "choices.0.message.reasoning_content"));
    assert_text(reply, "choices.0.message.content", "I look it up.\n</think>\n\nOne moment.");
    assert_text(reply, "choices.0.message.tool_calls.0.function.name", "weather");
    json_decref(reply);
}

/* ---- Messages and responses ---------------------------------------------------------------------------- */

#define ANTHROPIC_TOOLS "\"tools\":[{\"name\":\"weather\",\"input_schema\":" SCHEMA "}]"

static void a_message(void **state) {
    (void)state;
    fake_say(&fake, ANSWER);
    json_t *reply = post_json("/v1/messages", "{" ASK "," ANTHROPIC_TOOLS ",\"max_tokens\":99}", 200);
    assert_text(reply, "content.0.thinking", "I look it up.");
    assert_text(reply, "content.1.text", "One moment.");
    assert_text(reply, "content.2.type", "tool_use");
    assert_text(reply, "content.2.input.town", "Bree");
    assert_int_equal(json_integer_value(at(reply, "content.2.input.days")), 3);
    assert_text(reply, "stop_reason", "tool_use");
    assert_int_equal(json_integer_value(at(reply, "usage.cache_read_input_tokens")), 1);
    json_decref(reply);
}

static void a_streamed_message(void **state) {
    (void)state;
    int status;
    char joined[4096];
    fake_say(&fake, ANSWER);
    const char *stream =
        post("/v1/messages", "{" ASK "," ANTHROPIC_TOOLS ",\"max_tokens\":99,\"stream\":true}", &status);
    fake_join(&fake);
    join_events(stream, "delta.partial_json", joined);
    assert_string_equal(joined, ARGUMENTS);
    join_events(stream, "delta.thinking", joined);
    assert_string_equal(joined, "I look it up.");
    join_events(stream, "content_block.type", joined);
    assert_string_equal(joined, "thinkingtexttool_use");
    join_events(stream, "delta.stop_reason", joined);
    assert_string_equal(joined, "tool_use");
}

#define FLAT_TOOLS "\"tools\":[{\"type\":\"function\",\"name\":\"weather\",\"parameters\":" SCHEMA "}]"

static void a_response(void **state) {
    (void)state;
    fake_say(&fake, ANSWER);
    json_t *reply = post_json("/v1/responses", "{\"input\":\"Hi\"," FLAT_TOOLS "}", 200);
    assert_text(reply, "output.0.content.0.text", "I look it up.");
    assert_text(reply, "output.1.content.0.text", "One moment.");
    assert_text(reply, "output.2.type", "function_call");
    assert_text(reply, "output.2.arguments", ARGUMENTS);
    char body[512];
    snprintf(
        body, sizeof body,
        "{\"previous_response_id\":\"%s\",\"input\":[{\"type\":\"function_call_output\",\"call_id\":\"%s\","
        "\"output\":\"rain\"}]}",
        json_string_value(at(reply, "id")), json_string_value(at(reply, "output.2.call_id")));
    json_decref(reply);
    /* The bundled template knows no tools, and says so only by leaving them out or refusing. */
    int status;
    post("/v1/responses", body, &status);
    fake_join(&fake);
    assert_true(status == 200 || status == 400);
}

static void a_streamed_response(void **state) {
    (void)state;
    int status;
    char joined[4096];
    fake_say(&fake, ANSWER);
    const char *stream = post("/v1/responses", "{\"input\":\"Hi\"," FLAT_TOOLS ",\"stream\":true}", &status);
    fake_join(&fake);
    join_events(stream, "item.type", joined);
    assert_string_equal(joined, "reasoningreasoningmessagemessagefunction_callfunction_call");
    json_t *last = event_at(stream, -1);
    assert_text(last, "type", "response.completed");
    assert_text(last, "response.output.2.arguments", ARGUMENTS);
    assert_int_equal(json_integer_value(at(last, "sequence_number")) > 10, true);
    json_decref(last);
}

/* ---- Failures ------------------------------------------------------------------------------------------ */

/* ---- Grammars ------------------------------------------------------------------------------------------ */

static void submit(const char *path, const char *body, bool is_held, bool reasons) {
    fake_say(&fake, "Yes<|im_end|>");
    json_decref(post_json(path, body, 200));
    if ((fake.last.grammar != NULL) != is_held || fake.last.reasons != reasons)
        fail_msg("%s: a grammar: %d, reasons: %d", body, fake.last.grammar != NULL, fake.last.reasons);
}

/* Answers think first where the template has thinking on. Plain completions never do. */
static void a_grammar(void **state) {
    (void)state;
#define FORMAT "\"format\":{\"type\":\"json_schema\",\"schema\":{}}"
    submit("/v1/chat/completions", "{" ASK "}", false, false);
    submit("/v1/chat/completions", "{" ASK ",\"response_format\":{\"type\":\"text\"}}", false, false);
    submit("/v1/chat/completions", "{" ASK ",\"response_format\":{\"type\":\"json_object\"}}", true, true);
    submit("/v1/chat/completions", "{" ASK ",\"guided_regex\":\"a\",\"reasoning_effort\":\"low\"}", true,
           true);
    submit("/v1/chat/completions", "{" ASK ",\"guided_regex\":\"a\",\"reasoning_effort\":\"none\"}", true,
           false);
    submit("/v1/chat/completions",
           "{" ASK ",\"guided_regex\":\"a\",\"chat_template_kwargs\":{\"enable_thinking\":false}}", true,
           false);
    submit("/v1/chat/completions", "{" ASK ",\"guided_regex\":\"a\",\"chat_template\":\"Hi\"}", true, false);
    submit("/v1/completions", "{\"prompt\":\"Hi\",\"guided_regex\":\"a\"}", true, false);
    submit("/v1/responses", "{\"input\":\"Hi\",\"text\":{" FORMAT "}}", true, true);
    submit("/v1/messages", "{" ASK ",\"max_tokens\":9,\"output_config\":{" FORMAT "}}", true, true);
}

/* ---- Failures ------------------------------------------------------------------------------------------ */

static void a_full_queue(void **state) {
    (void)state;
    fake.refuses = GUMBEL_ERROR_LIMIT;
    json_t *reply = post_json("/v1/chat/completions", "{" ASK ",\"stream\":true}", 429);
    assert_text(reply, "error.code", "queue_full");
    assert_non_null(strstr(reply_text, "Retry-After: 1\r\n"));
    json_decref(reply);
    reply = post_json("/v1/messages", "{" ASK ",\"max_tokens\":1}", 429);
    assert_text(reply, "error.type", "rate_limit_error");
    json_decref(reply);
    fake.refuses = GUMBEL_OK;
}

/* What fails before its first token has a status of its own, also as a stream. */
static void an_early_failure(void **state) {
    (void)state;
    fake.count = 0;
    fake.fails = GUMBEL_ERROR_NUMERIC;
    static const char *const bodies[] = {"{" ASK "}", "{" ASK ",\"stream\":true}"};
    for (size_t i = 0; i < 2; i++) {
        json_t *reply = post_json("/v1/chat/completions", bodies[i], 500);
        assert_text(reply, "error.message", "a row has a NaN");
        json_decref(reply);
    }
    fake.fails = GUMBEL_OK;
}

/* Later it is an event, and the stream ends as it should. */
static void a_late_failure(void **state) {
    (void)state;
    int status;
    fake_say(&fake, "Hello there");
    fake.fails = GUMBEL_ERROR_NUMERIC;
    const char *stream = post("/v1/chat/completions", "{" ASK ",\"stream\":true}", &status);
    fake_join(&fake);
    assert_int_equal(status, 200);
    json_t *last = event_at(stream, -1);
    assert_text(last, "error.message", "a row has a NaN");
    assert_non_null(strstr(stream, "data: [DONE]\n\n"));
    assert_null(strstr(stream, "\"finish_reason\":\"stop\""));
    json_decref(last);
    stream = post("/v1/messages", "{" ASK ",\"max_tokens\":9,\"stream\":true}", &status);
    fake_join(&fake);
    assert_non_null(strstr(stream, "event: error\n"));
    stream = post("/v1/responses", "{\"input\":\"Hi\",\"stream\":true}", &status);
    fake_join(&fake);
    assert_non_null(strstr(stream, "event: response.failed\n"));
    fake.fails = GUMBEL_OK;
}

/* A device that fails is nothing that the request could change. */
static void a_failed_device(void **state) {
    (void)state;
    fake.count = 0;
    fake.fails = GUMBEL_ERROR_BACKEND;
    static const char *const bodies[] = {"{" ASK ",\"max_tokens\":9}",
                                         "{" ASK ",\"max_tokens\":9,\"stream\":true}"};
    for (size_t i = 0; i < 2; i++) {
        json_t *reply = post_json("/v1/chat/completions", bodies[i], 503);
        assert_text(reply, "error.type", "server_error");
        json_decref(reply);
        reply = post_json("/v1/messages", bodies[i], 503);
        assert_text(reply, "type", "error");
        json_decref(reply);
    }
    fake.fails = GUMBEL_OK;
    fake.refuses = GUMBEL_ERROR_BACKEND;
    json_decref(post_json("/v1/chat/completions", bodies[0], 503));
    fake.refuses = GUMBEL_OK;
}

/* Connections that are there are still answered; the last test, since nothing comes after that. */
static void an_engine_that_is_given_up(void **state) {
    (void)state;
    char text[4096];
    const int asking[] = {connect_to_server(), connect_to_server(), connect_to_server()};
    static const char *const requests[] = {
        "GET /health HTTP/1.0\r\n\r\n", "GET /ready HTTP/1.0\r\n\r\n",
        "POST /v1/chat/completions HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}"};
    json_decref(post_json("/v1/chat/completions", "{" ASK "}", 200)); /* those are accepted, then */
    server_give_up(running);
    for (size_t i = 0; i < 3; i++) {
        dprintf(asking[i], "%s", requests[i]);
        const ssize_t length = read(asking[i], text, sizeof text - 1);
        text[length < 0 ? 0 : length] = '\0';
        assert_non_null(strstr(text, " 503 "));
        close(asking[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chat),
        cmocka_unit_test(a_streamed_chat),
        cmocka_unit_test(texts_around_a_call),
        cmocka_unit_test(a_chat_without_tools),
        cmocka_unit_test(stop_strings),
        cmocka_unit_test(thoughts_as_text),
        cmocka_unit_test(a_message),
        cmocka_unit_test(a_streamed_message),
        cmocka_unit_test(a_response),
        cmocka_unit_test(a_streamed_response),
        cmocka_unit_test(a_full_queue),
        cmocka_unit_test(an_early_failure),
        cmocka_unit_test(a_late_failure),
        cmocka_unit_test(a_failed_device),
        cmocka_unit_test(a_grammar),
        cmocka_unit_test(an_engine_that_is_given_up),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
