/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench_report.h"

#include <inttypes.h>
#include <jansson.h>

static json_t *average_json(const cli_average *average) {
    if (average->count == 0)
        return json_null();
    return json_pack("{s:f, s:f, s:i}", "mean", average->mean, "sd", cli_average_deviation(average), "count",
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

static json_t *test_json(const cli_bench_test *test, const cli_profile *profile) {
    static const char *const kinds[] = {"prompt", "decode", "answer"};
    char name[CLI_BENCH_NAME];
    const char *limit;
    double fraction = cli_bench_fraction(test, &limit);
    json_t *object =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:f, s:f}", "test", kinds[test->kind], "name",
                  cli_bench_name(test, name), "prompt_tokens", (json_int_t)test->prompt, "new_tokens",
                  (json_int_t)test->tokens, "depth", (json_int_t)test->depth, "sequences",
                  (json_int_t)(test->kind == CLI_BENCH_DECODE ? test->batch : 1), "tokens_per_second",
                  average_json(&test->rate), "seconds", average_json(&test->seconds), "read_bytes",
                  test->read_bytes, "int8_products", test->int8_products);
    if (test->kind == CLI_BENCH_ANSWER)
        json_object_set_new(object, "decode_tokens_per_second", average_json(&test->decode_rate));
    json_object_set_new(object, "read_bytes_per_second", average_json(&test->read_rate));
    json_object_set_new(object, "int8_products_per_second", average_json(&test->int8_rate));
    json_object_set_new(object, "limit", *limit ? json_string(limit) : json_null());
    json_object_set_new(object, "fraction_of_limit", *limit ? json_real(fraction) : json_null());
    if (profile && profile->count > 0)
        json_object_set_new(object, "profile", profile_json(profile));
    return object;
}

void cli_bench_print_json(const cli_bench_results *r, FILE *file) {
    const gumbel_program_info *info = &r->bench->model.info;
    json_t *tests = json_array();
    for (size_t i = 0; i < r->test_count; i++)
        json_array_append_new(tests, test_json(&r->tests[i], r->profiles ? &r->profiles[i] : NULL));
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:I, s:o, s:o, s:o, s:o, s:f, s:f, s:o}", "gumbel", gumbel_version(),
        "program", r->program, "architecture", info->architecture, "engine",
        gumbel_engine_description(r->bench->model.engine), "sampling", sampling_json(&r->bench->sampling),
        "weight_bytes", (json_int_t)info->weight_bytes, "read_bytes_per_second", average_json(&r->read_rate),
        "int8_products_per_second", average_json(&r->int8_rate), "load_seconds",
        average_json(&r->load_seconds), "load_and_first_token_seconds", average_json(&r->first_token_seconds),
        "first_load_and_first_token_seconds", r->cold_first_token_seconds, "peak_megabytes",
        r->peak_megabytes, "tests", tests);
    json_dumpf(object, file, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    fprintf(file, "\n");
    json_decref(object);
}
