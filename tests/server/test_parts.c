/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts that stand by themselves: keys, stored responses, metrics, names of models.
 */
#include "server/http/access.h"
#include "server/metrics.h"
#include "server/models.h"
#include "server/protocols/responses_store.h"

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
    server_text text = {0};
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
    const char *all = server_text_string(&text);
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
    server_text_clear(&text);
    server_print_metrics(&counted, &gauges, 1, false, &text);
    assert_null(strstr(server_text_string(&text), "vllm:"));
    server_text_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys), cmocka_unit_test(names),
                                       cmocka_unit_test(stored_responses), cmocka_unit_test(metrics)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
