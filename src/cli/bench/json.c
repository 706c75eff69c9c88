/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench/json.h"

#include "cli/base/json.h"

#include <inttypes.h>
#include <string.h>

/* Without numbers mean and deviation are null. */
static json_t *average_json(const cli_average *average) {
    const bool is_empty = average->count == 0;
    return json_pack("{s:o, s:o, s:i}", "mean", is_empty ? json_null() : json_real(average->mean), "sd",
                     is_empty ? json_null() : json_real(cli_average_deviation(average)), "count",
                     (int)average->count);
}

/* The seed is text, since it may be larger than an integer of JSON is here. */
static json_t *sampling_json(const cli_sampling *sampling) {
    json_t *object = json_object();
    const gumbel_setting *setting;
    for (size_t i = 0; (setting = gumbel_setting_at(i)); i++) {
        const double value = gumbel_setting_get(setting, &sampling->values);
        json_object_set_new(object, setting->name,
                            setting->type == GUMBEL_SETTING_INT32 ? json_integer((json_int_t)value)
                                                                  : json_real(value));
    }
    char seed[24];
    snprintf(seed, sizeof seed, "%" PRIu64, sampling->seed);
    json_object_set_new(object, "biases", json_integer((json_int_t)sampling->values.bias_count));
    json_object_set_new(object, "seed", json_string(seed));
    return object;
}

static json_t *profile_json(const cli_profile *profile) {
    json_t *list = json_array();
    for (size_t i = 0; i < profile->count; i++) {
        const cli_profile_entry *entry = &profile->entries[i];
        json_array_append_new(list, json_pack("{s:s, s:f, s:f}", "op", entry->name, "seconds", entry->seconds,
                                              "calls", entry->calls));
    }
    return list;
}

/* Of a test without drafts they are null, or means of nothing. */
static void add_drafts(json_t *object, const cli_bench_test *test) {
    json_object_set_new(object, "draft_acceptance",
                        test->kind == CLI_BENCH_DRAFTED ? json_real(test->acceptance / 100.0) : json_null());
    json_object_set_new(object, "drafts", average_json(&test->drafts));
    json_object_set_new(object, "draft_tokens", average_json(&test->guesses));
    json_object_set_new(object, "accepted_tokens", average_json(&test->accepted));
}

static json_t *test_json(const cli_bench_test *test, const cli_profile *profile) {
    static const char *const kinds[] = {"prompt", "decode", "answer", "drafted"};
    char name[CLI_BENCH_NAME];
    const char *limit;
    double fraction = cli_bench_fraction(test, &limit);
    json_t *object =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:f, s:f}", "test", kinds[test->kind],
                  "name", cli_bench_name(test, name), "prompt_tokens", (json_int_t)test->prompt, "new_tokens",
                  (json_int_t)test->tokens, "depth", (json_int_t)test->depth, "sequences",
                  (json_int_t)(test->kind == CLI_BENCH_DECODE ? test->batch : 1), "rows",
                  (json_int_t)(test->rows > 0 ? test->rows : 1), "tokens_per_second",
                  average_json(&test->rate), "seconds", average_json(&test->seconds), "read_bytes",
                  test->read_bytes, "int8_products", test->int8_products);
    json_object_set_new(object, "decode_tokens_per_second", average_json(&test->decode_rate));
    add_drafts(object, test);
    json_object_set_new(object, "read_bytes_per_second", average_json(&test->read_rate));
    json_object_set_new(object, "int8_products_per_second", average_json(&test->int8_rate));
    json_object_set_new(object, "limit", *limit ? json_string(limit) : json_null());
    json_object_set_new(object, "fraction_of_limit", *limit ? json_real(fraction) : json_null());
    if (profile && profile->count > 0)
        json_object_set_new(object, "profile", profile_json(profile));
    return object;
}

/* What holds for all tests. */
static json_t *program_json(const cli_bench_results *r) {
    const gumbel_program_info *info = &r->bench->model.info;
    gumbel_engine_info engine = {.size = sizeof engine};
    gumbel_engine_get_info(r->bench->model.engine, &engine, NULL); /* it cannot fail */
    return json_pack("{s:s, s:o, s:o, s:s, s:s, s:I, s:I, s:o, s:I, s:o, s:o, s:o, s:o, s:f, s:f}", "gumbel",
                     gumbel_version(), "program", cli_json_text(r->program, strlen(r->program)),
                     "architecture", cli_json_text(info->architecture, strlen(info->architecture)), "engine",
                     gumbel_engine_description(r->bench->model.engine), "backend", engine.backend, "threads",
                     (json_int_t)engine.threads, "step_tokens", (json_int_t)engine.step_tokens, "sampling",
                     sampling_json(&r->bench->sampling), "weight_bytes", (json_int_t)info->weight_bytes,
                     "read_bytes_per_second", average_json(&r->read_rate), "int8_products_per_second",
                     average_json(&r->int8_rate), "load_seconds", average_json(&r->load_seconds),
                     "load_and_first_token_seconds", average_json(&r->first_token_seconds),
                     "first_load_and_first_token_seconds", r->cold_first_token_seconds, "peak_megabytes",
                     r->peak_megabytes);
}

static json_t *test_at(const cli_bench_results *r, size_t i) {
    return test_json(&r->tests[i], r->profiles ? &r->profiles[i] : NULL);
}

json_t *cli_bench_json(const cli_bench_results *r) {
    json_t *object = program_json(r), *tests = json_array();
    for (size_t i = 0; i < r->test_count; i++)
        json_array_append_new(tests, test_at(r, i));
    json_object_set_new(object, "tests", tests);
    return object;
}

/* Sets the object's values in a record; those of an object within it under both names. */
static void flatten(json_t *object, const char *prefix, json_t *record) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        char name[96];
        snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "_" : "", key);
        if (json_is_object(value))
            flatten(value, name, record);
        else
            json_object_set(record, name, value);
    }
}

json_t *cli_bench_record(const cli_bench_results *r, size_t test) {
    json_t *record = json_object(), *program = program_json(r), *own = test_at(r, test);
    flatten(program, "", record);
    flatten(own, "", record); /* its limits, in place of the means of all tests' */
    json_decref(program);
    json_decref(own);
    return record;
}
