/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts that stand by themselves: keys, heads of requests, addresses, stored responses, metrics, names of
 * models.
 */
#include "server/http/access.h"
#include "server/http/head.h"
#include "server/http/peers.h"
#include "server/metrics.h"
#include "server/models.h"
#include "server/protocols/responses_store.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void keys(void **state) {
    (void)state;
    static const char *const others[] = {"", "k", "ke", "keyy", "kez", "keykey", "KEY"};
    assert_true(server_is_same_key("key", "key"));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(server_is_same_key("key", others[i]));
        assert_false(server_is_same_key(others[i], "key"));
    }
}

/* ---- Heads of requests --------------------------------------------------------------------------------- */

static void heads(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int status; /* 0: it is whole; until then each part of it is a part */
    } all[] = {{"GET / HTTP/1.1\r\n\r\n", 0},
               {"\r\n\r\nGET / HTTP/1.0\nHost: x\n\n", 0},
               {"POST /a?b HTTP/1.1\r\nX:\ty \xc3\xa4\r\n\r\n", 0},
               {"GET /\r\n", 400},
               {"GET\n", 400},
               {" / HTTP/1.1\r\n", 400},
               {"GET  HTTP/1.1\r\n", 400},
               {"GET / HTTP/1.1 \r\n", 400},
               {"GET / http/1.1\r\n", 400},
               {"GET / HTTP/2.0\r\n", 505},
               {"GET / HTTP/1.1\r\nX: \x01", 400},
               {"GET / HTTP/1.1\r\nX: a\rb", 400}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const size_t length = strlen(all[i].text);
        server_failure failure = {0};
        for (size_t part = 0; part < length; part++)
            assert_int_equal(server_check_head(all[i].text, part, &failure), SERVER_HEAD_PART);
        assert_int_equal(server_check_head(all[i].text, length, &failure),
                         all[i].status ? SERVER_HEAD_BAD : SERVER_HEAD_WHOLE);
        assert_int_equal(failure.status, all[i].status);
    }
}

static void large_heads(void **state) {
    (void)state;
    static const char line[] = "GET / HTTP/1.1\r\n";
    static char bytes[SERVER_HEAD_BYTES];
    server_failure failure;
    memset(bytes, 'x', sizeof bytes);
    assert_int_equal(server_check_head(bytes, sizeof bytes - 1, &failure), SERVER_HEAD_PART);
    assert_int_equal(server_check_head(bytes, sizeof bytes, &failure), SERVER_HEAD_BAD);
    assert_int_equal(failure.status, 414);
    memcpy(bytes, line, sizeof line - 1);
    assert_int_equal(server_check_head(bytes, sizeof bytes, &failure), SERVER_HEAD_BAD);
    assert_int_equal(failure.status, 431);
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, "GET / HTTP/1.1\r\n\r\n", 18); /* what is behind a head is a body's */
    assert_int_equal(server_check_head(bytes, sizeof bytes, &failure), SERVER_HEAD_WHOLE);
}

/* ---- Addresses ----------------------------------------------------------------------------------------- */

static server_address address(const char *text) {
    struct sockaddr_storage peer = {0};
    struct sockaddr_in *four = (struct sockaddr_in *)(void *)&peer;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)&peer;
    peer.ss_family = strchr(text, ':') ? AF_INET6 : *text ? AF_INET : AF_UNIX;
    if (*text)
        assert_int_equal(inet_pton(peer.ss_family, text,
                                   peer.ss_family == AF_INET ? (void *)&four->sin_addr : &six->sin6_addr),
                         1);
    return server_address_of(&peer);
}

static void addresses(void **state) {
    (void)state;
    static const struct {
        const char *one, *other;
        bool is_same;
    } all[] = {{"10.0.0.1", "10.0.0.1", true},
               {"10.0.0.1", "10.0.0.2", false},
               {"10.0.0.1", "::ffff:10.0.0.1", true},
               {"2001:db8::1", "2001:db8::ffff:1", true},
               {"2001:db8::1", "2001:db8:0:1::1", false},
               {"::1", "10.0.0.1", false},
               {"", "", false}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const server_address one = address(all[i].one), other = address(all[i].other);
        assert_int_equal(server_is_same_address(&one, &other), all[i].is_same);
        assert_int_equal(server_is_same_address(&other, &one), all[i].is_same);
    }
}

static void names(void **state) {
    (void)state;
    const server_model model = {.names = "one,two,ORG/three"};
    char id[SERVER_MODEL_ID];
    assert_string_equal(server_model_id(&model, id), "one");
    assert_true(server_is_named(model.names, "two") && server_is_named(model.names, "ORG/three"));
    assert_false(server_is_named(model.names, "tw") || server_is_named(model.names, "one,two") ||
                 server_is_named(model.names, ""));
}

/* The oldest give way to new ones. */
static void stored_responses(void **state) {
    (void)state;
    server_responses responses;
    json_t *messages, *response;
    server_responses_init(&responses, 1000);
    char id[24];
    for (int i = 0; i < 200; i++) {
        snprintf(id, sizeof id, "resp_%d", i);
        server_responses_add(&responses, id, json_pack("[s]", "a message"), json_pack("{s:i}", "number", i));
        assert_in_range(responses.bytes, 1, 1000);
    }
    assert_false(server_responses_find(&responses, "resp_0", NULL, NULL));
    assert_true(server_responses_find(&responses, "resp_199", &messages, &response));
    assert_int_equal(json_integer_value(json_object_get(response, "number")), 199);
    json_decref(messages);
    json_decref(response);
    assert_true(server_responses_remove(&responses, "resp_199"));
    assert_false(server_responses_remove(&responses, "resp_199"));
    json_t *large = json_array();
    for (int i = 0; i < 1000; i++)
        json_array_append_new(large, json_integer(i));
    server_responses_add(&responses, "large", large, json_object());
    assert_false(server_responses_find(&responses, "large", NULL, NULL));
    server_responses_free(&responses);
}

/* ---- Metrics ------------------------------------------------------------------------------------------- */

static double value_of(const char *text, const char *name) {
    char line[128];
    double value = -1;
    snprintf(line, sizeof line, "\n%s ", name);
    const char *found = strstr(text, line);
    if (!found)
        fail_msg("there is no %s", name);
    assert_int_equal(sscanf(found + strlen(line), "%lf", &value), 1);
    return value;
}

static void metrics(void **state) {
    (void)state;
    static server_metrics counted;
    gb_byte_buffer text = {0};
    const gumbel_usage usage = {.size = sizeof usage,
                                .prompt_tokens = 5,
                                .queue_seconds = 0.02,
                                .prompt_seconds = 0.04,
                                .generated_tokens = 3,
                                .answer_seconds = 400};
    const server_gauges gauges = {
        "a\"b\\c", {.queued = 3, .running_bytes = 25, .state_bytes = 100, .failed = 7, .cancelled = 5}};
    server_count_answer(&counted, &usage, true, GUMBEL_FINISH_STOP);
    server_count_answer(&counted, &usage, false, GUMBEL_FINISH_NONE);
    server_print_metrics(&counted, &gauges, 1, true, &text);
    const char *all = gb_buffer_string(&text);
    assert_true(value_of(all, "gumbel_requests_waiting{model_name=\"a\\\"b\\\\c\"}") == 3);
    assert_true(value_of(all, "vllm:num_requests_waiting{model_name=\"a\\\"b\\\\c\"}") == 3);
    assert_true(value_of(all, "gumbel_answers_failed_total{model_name=\"a\\\"b\\\\c\"}") == 2);
    assert_true(value_of(all, "gumbel_answers_cancelled_total{model_name=\"a\\\"b\\\\c\"}") == 5);
    assert_true(value_of(all, "vllm:kv_cache_usage_perc{model_name=\"a\\\"b\\\\c\"}") == 0.25);
    assert_true(value_of(all, "gumbel_answers_total{reason=\"stop\"}") == 1);
    assert_true(value_of(all, "gumbel_answers_total{reason=\"error\"}") == 1);
    assert_true(value_of(all, "gumbel_queue_seconds_bucket{le=\"0.01\"}") == 0);
    assert_true(value_of(all, "gumbel_queue_seconds_bucket{le=\"0.025\"}") == 1);
    assert_true(value_of(all, "gumbel_answer_seconds_bucket{le=\"250\"}") == 0);
    assert_true(value_of(all, "gumbel_answer_seconds_bucket{le=\"+Inf\"}") == 1);
    assert_true(value_of(all, "gumbel_answer_seconds_sum") == 400);
    assert_true(value_of(all, "gumbel_prompt_size_tokens_bucket{le=\"4\"}") == 0);
    assert_true(value_of(all, "gumbel_prompt_size_tokens_bucket{le=\"8\"}") == 1);
    gb_buffer_clear(&text);
    server_print_metrics(&counted, &gauges, 1, false, &text);
    assert_null(strstr(gb_buffer_string(&text), "vllm:"));
    gb_buffer_free(&text);
}

static void cache_use(void **state) {
    (void)state;
    static const server_metrics counted;
    gb_byte_buffer text = {0};
    const server_gauges gauges[] = {
        {"short", {.running = 6, .slots = 8, .running_bytes = 25, .state_bytes = 100}},
        {"long", {.running = 1, .slots = 8, .running_bytes = 25, .state_bytes = 100}},
        {"outgrown", {.running = 1, .slots = 8, .running_bytes = 101, .state_bytes = 100}},
        {"unknown", {0}}};
    server_print_metrics(&counted, gauges, sizeof gauges / sizeof *gauges, true, &text);
    const char *all = gb_buffer_string(&text);
    assert_true(value_of(all, "gumbel_cache_use{model_name=\"short\"}") == 0.75);
    assert_true(value_of(all, "vllm:kv_cache_usage_perc{model_name=\"short\"}") == 0.75);
    assert_true(value_of(all, "gumbel_cache_use{model_name=\"long\"}") == 0.25);
    assert_true(value_of(all, "gumbel_cache_use{model_name=\"outgrown\"}") == 1);
    assert_true(value_of(all, "gumbel_cache_use{model_name=\"unknown\"}") == 0);
    gb_buffer_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys),        cmocka_unit_test(heads),
                                       cmocka_unit_test(large_heads), cmocka_unit_test(addresses),
                                       cmocka_unit_test(names),       cmocka_unit_test(stored_responses),
                                       cmocka_unit_test(metrics),     cmocka_unit_test(cache_use)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
