/* SPDX-License-Identifier: Apache-2.0
 *
 * What gumbel run says of an answer: notes, and the report in JSON.
 */
#include "cli/fixture.h"

#include <jansson.h>

static const char *program;

static int set_up(void **state) {
    (void)state;
    program = export_program("model.gumbel", "256", false);
    return 0;
}

static void assert_no_errors(const command_result *result) {
    assert_string_equal(result->errors ? result->errors : "", "");
}

static void an_answer_says_why_it_ended(void **state) {
    (void)state;
#define ENDED(...)                                                                                           \
    GUMBEL(NULL, "run", program, "--tokens", "2,17", "--print-tokens", "--temp", "0", "--ignore-eos",        \
           __VA_ARGS__)
    command_result result = ENDED("-n", "1");
    assert_status(result, 0);
    assert_string_equal(result.errors, "gumbel: stopped at 1 token (-n)\n");
    free_result(&result);
    result = ENDED("-n", "-1", "-c", "9");
    assert_status(result, 0);
    assert_string_equal(result.errors, "gumbel: stopped: the context of 9 positions is full (-c)\n");
    free_result(&result);
    result = ENDED("-n", "-1", "-c", "9", "--stats");
    assert_status(result, 0);
    assert_has(result.errors, "\nfinish           context\n");
    free_result(&result);
}

static void quiet_leaves_notes_out(void **state) {
    (void)state;
    command_result result = GUMBEL(NULL, "run", program, "hi", "-n", "4", "-q", "-ngl", "99", "--ignore-eos");
    assert_status(result, 0);
    assert_no_errors(&result);
    free_result(&result);
    setenv("GUMBEL_QUIET", "on", 1);
    result = GUMBEL(NULL, "run", program, "hi", "-n", "4", "--jinja", "--ignore-eos");
    unsetenv("GUMBEL_QUIET");
    assert_status(result, 0);
    assert_no_errors(&result);
    free_result(&result);
    result = GUMBEL(NULL, "run", "/no/such.gumbel", "hi", "--quiet");
    assert_status(result, 1);
    assert_one_error_line(&result, "/no/such.gumbel");
    free_result(&result);
}

/* The object on standard output, which must be one line. */
static json_t *json_of(command_result result) {
    assert_status(result, 0);
    assert_int_equal(strcspn(result.output, "\n") + 1, result.output_length);
    json_error_t reason;
    json_t *object = json_loads(result.output, JSON_REJECT_DUPLICATES, &reason);
    if (!object)
        fail_msg("%s: %s", reason.text, result.output);
    free_result(&result);
    return object;
}

static void assert_setting(const json_t *object, const char *name, double value, const char *origin) {
    const json_t *setting = json_object_get(json_object_get(object, "settings"), name);
    assert_non_null(setting);
    assert_true(json_number_value(json_object_get(setting, "value")) == value);
    assert_string_equal(json_string_value(json_object_get(setting, "origin")), origin);
}

static const char *text_of(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    assert_non_null(text);
    return text;
}

/* The object has what the printed forms have, and enough to draw the answer again. */
static void json_has_the_whole_answer(void **state) {
    (void)state;
#define SAMPLED "--temp", "1.5", "-n", "24", "--ignore-eos"
    setenv("GUMBEL_TOP_K", "50", 1);
    json_t *object = json_of(GUMBEL(NULL, "run", program, "Tell me a story", SAMPLED, "--json"));
    unsetenv("GUMBEL_TOP_K");
    assert_setting(object, "temperature", 1.5, "flag");
    assert_setting(object, "top_k", 50, "environment");
    assert_setting(object, "min_p", 0, "default");
    assert_setting(object, "max_new_tokens", 24, "flag");
    const json_t *drawn = json_object_get(json_object_get(object, "settings"), "seed");
    assert_string_equal(text_of(drawn, "origin"), "drawn");
    const char *seed = text_of(drawn, "value");
    char *text =
        output_of(GUMBEL(NULL, "run", program, "Tell me a story", SAMPLED, "--seed", seed, "--top-k", "50"));
    char *ids = output_of(GUMBEL(NULL, "run", program, "Tell me a story", SAMPLED, "--seed", seed, "--top-k",
                                 "50", "--print-tokens"));
    assert_int_equal(strncmp(text_of(object, "text"), text, strlen(text)), 0);
    char listed[512] = "";
    size_t i;
    const json_t *id, *tokens = json_object_get(object, "tokens");
    json_array_foreach(tokens, i, id)
        sprintf(listed + strlen(listed), "%s%d", i ? "," : "", (int)json_integer_value(id));
    assert_string_equal(listed, ids);
    assert_string_equal(text_of(object, "finish_reason"), "length");
    assert_true(json_integer_value(json_object_get(object, "prompt_tokens")) > 3);
    const json_t *made_of = json_object_get(object, "program");
    assert_int_equal(strspn(text_of(made_of, "id"), "0123456789abcdef"), 32);
    assert_string_equal(text_of(made_of, "architecture"), "gemma4");
    assert_string_equal(text_of(made_of, "path"), program);
    assert_true(json_real_value(json_object_get(json_object_get(object, "timings"), "first_token_seconds")) >
                0);
    assert_null(json_object_get(object, "logprobs"));
    json_decref(object);
    free(text);
    free(ids);
}

static void json_has_logprobs(void **state) {
    (void)state;
    const char *path = temporary_path("top.gumbel");
    command_result exported = GUMBEL(NULL, "export", checkpoint_directory(), "--random-weights", "7", "-o",
                                     path, "--max-context", "64", "--top-logprobs-max", "5", "-q");
    assert_status(exported, 0);
    free_result(&exported);
    json_t *object = json_of(GUMBEL(NULL, "run", path, "--tokens", "2,17", "--temp", "0", "-n", "6", "--json",
                                    "--top-logprobs", "3", "--ignore-eos"));
    const json_t *logprobs = json_object_get(object, "logprobs"), *tokens = json_object_get(object, "tokens");
    assert_int_equal(json_array_size(logprobs), 6);
    for (size_t i = 0; i < 6; i++) {
        const json_t *entry = json_array_get(logprobs, i), *top = json_object_get(entry, "top_logprobs");
        json_int_t id = json_integer_value(json_array_get(tokens, i));
        assert_int_equal(json_integer_value(json_object_get(entry, "token")), id);
        assert_non_null(json_object_get(entry, "text"));
        assert_int_equal(json_array_size(top), 3);
        assert_int_equal(json_integer_value(json_object_get(json_array_get(top, 0), "token")), id);
        assert_true(json_real_value(json_object_get(entry, "logprob")) ==
                    json_real_value(json_object_get(json_array_get(top, 0), "logprob")));
    }
    json_decref(object);
    object = json_of(GUMBEL(NULL, "run", path, "--tokens", "2,17", "-n", "2", "--json", "--print-tokens"));
    assert_true(json_is_null(json_object_get(object, "text")));
    json_decref(object);
}

static json_t *answer_until(const char *stop) {
    return json_of(GUMBEL(NULL, "run", program, "hi", "--temp", "0", "-n", "60", "--ignore-eos", "--json",
                          stop ? "--stop" : "--quiet", stop ? stop : "--quiet"));
}

static void json_names_the_stop_string(void **state) {
    (void)state;
    json_t *whole = answer_until(NULL);
    assert_true(json_is_null(json_object_get(whole, "stop_string")));
    const char *text = json_string_value(json_object_get(whole, "text"));
    char stop[2] = {text[strcspn(text, "abcdefghijklmnopqrstuvwxyz")]};
    assert_true(stop[0]);
    json_t *stopped = answer_until(stop);
    assert_string_equal(json_string_value(json_object_get(stopped, "stop_string")), stop);
    assert_string_equal(json_string_value(json_object_get(stopped, "finish_reason")), "stop");
    assert_int_equal(json_string_length(json_object_get(stopped, "text")), strcspn(text, stop));
    json_decref(whole);
    json_decref(stopped);
}

/* Random bytes come out of random weights: whatever is drawn is JSON. */
static void json_is_always_utf8(void **state) {
    (void)state;
    for (int seed = 0; seed < 4; seed++) {
        char text[16];
        snprintf(text, sizeof text, "%d", seed);
        json_decref(
            json_of(GUMBEL(NULL, "run", program, "hi", "--temp", "10000", "--top-k", "0", "--top-p", "1",
                           "-n", "200", "--ignore-eos", "--seed", text, "--json", "--logprobs")));
    }
}

static void an_error_prints_no_json(void **state) {
    (void)state;
    command_result result = GUMBEL(NULL, "run", program, "--tokens", "9999999", "--json");
    assert_status(result, 1);
    assert_one_error_line(&result, "--tokens: 9999999");
    assert_int_equal(result.output_length, 0);
    free_result(&result);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_says_why_it_ended), cmocka_unit_test(quiet_leaves_notes_out),
        cmocka_unit_test(json_has_the_whole_answer),   cmocka_unit_test(json_has_logprobs),
        cmocka_unit_test(json_names_the_stop_string),  cmocka_unit_test(json_is_always_utf8),
        cmocka_unit_test(an_error_prints_no_json),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
