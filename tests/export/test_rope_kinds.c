/* SPDX-License-Identifier: Apache-2.0
 *
 * Scalings of rotary embedding that a family does not have are refused by name, wherever they stand in its
 * config.json.
 */
#include "export/checkpoint/json.h"
#include "export/models/dense_config.h"
#include "export/models/gemma4_config.h"
#include "export/models/model.h"
#include "export/models/qwen3_5_config.h"
#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static gumbel_status read_gemma4(const gb_config *root, gumbel_error *error) {
    gb_gemma4_config config;
    gumbel_status status = gb_gemma4_config_read(root, &config, error);
    gb_gemma4_config_free(&config);
    return status;
}

static gumbel_status read_qwen3_5(const gb_config *root, gumbel_error *error) {
    gb_qwen3_5_config config;
    gumbel_status status = gb_qwen3_5_config_read(root, &config, error);
    gb_qwen3_5_config_free(&config);
    return status;
}

static gumbel_status read_dense(const gb_config *root, gumbel_error *error) {
    gb_dense_config config;
    gumbel_status status = gb_dense_config_read(root, &config, error);
    gb_dense_config_free(&config);
    return status;
}

#define GRANITE4                                                                                             \
    ",\"num_hidden_layers\":1,\"layer_types\":[\"attention\"],\"num_local_experts\":0,"                      \
    "\"position_embedding_type\":\"rope\""

static const struct family {
    const char *wrapper, *text, *more; /* wrapper NULL: there is none; more: members of the text's object */
    gumbel_status (*read)(const gb_config *root, gumbel_error *error);
} families[] = {{"gemma4", "gemma4_text", ",\"hidden_size_per_layer_input\":0", read_gemma4},
                {"qwen3_5", "qwen3_5_text", "", read_qwen3_5},
                {"qwen3_5_moe", "qwen3_5_moe_text", "", read_qwen3_5},
                {"mistral3", "mistral", "", read_dense},
                {"gemma3", "gemma3_text", "", read_dense},
                {NULL, "llama", "", read_dense},
                {NULL, "qwen2", "", read_dense},
                {NULL, "qwen3", "", read_dense},
                {NULL, "qwen3_moe", "", read_dense},
                {NULL, "smollm3", "", read_dense},
                {NULL, "granite", "", read_dense},
                {NULL, "granitemoehybrid", GRANITE4, read_dense}};
enum { FAMILIES = sizeof families / sizeof *families };

static gumbel_status read_text(const struct family *family, const char *text, gumbel_error *error) {
    gb_config_file *file = NULL;
    json_t *json = NULL;
    const gb_model *model;
    assert_ok(gb_parse_json("config.json", text, strlen(text), &json, error), error);
    assert_ok(gb_config_from_json("config.json", json, &file, error), error);
    json_decref(json);
    gb_config root = gb_config_root(file);
    gumbel_status status = gb_model_find(&root, &model, error);
    if (status == GUMBEL_OK)
        status = family->read(&root, error);
    gb_config_close(file);
    return status;
}

/* Members of the text's object and of its wrapper. */
static gumbel_status read_members(const struct family *family, const char *inner, const char *outer,
                                  gumbel_error *error) {
    char text[1024];
    if (family->wrapper)
        snprintf(text, sizeof text, "{\"model_type\":\"%s\"%s,\"text_config\":{\"model_type\":\"%s\"%s%s}}",
                 family->wrapper, outer, family->text, family->more, inner);
    else
        snprintf(text, sizeof text, "{\"model_type\":\"%s\"%s%s}", family->text, family->more, inner);
    return read_text(family, text, error);
}

static void refuses(const struct family *family, const char *inner, const char *outer, const char *part) {
    gumbel_error error;
    if (read_members(family, inner, outer, &error) != GUMBEL_ERROR_UNSUPPORTED ||
        !strstr(error.message, part))
        fail_msg("%s: \"%s\", expected \"%s\"", family->text, error.message, part);
}

static void refuses_kinds_it_does_not_have(void **state) {
    (void)state;
    static const char *const kinds[] = {"longrope", "dynamic", "su"}, *const keys[] = {"rope_type", "type"};
    for (size_t f = 0; f < FAMILIES; f++)
        for (size_t i = 0; i < 6; i++) {
            char inner[160], part[80];
            snprintf(inner, sizeof inner, ",\"rope_scaling\":{\"%s\":\"%s\",\"factor\":4}", keys[i % 2],
                     kinds[i / 2]);
            snprintf(part, sizeof part, "type: \"%s\"", kinds[i / 2]);
            refuses(&families[f], inner, "", "rope_scaling.");
            refuses(&families[f], inner, "", part);
            snprintf(inner, sizeof inner, ",\"rope_parameters\":{\"%s\":\"%s\",\"rope_theta\":1e6}",
                     keys[i % 2], kinds[i / 2]);
            refuses(&families[f], inner, "", "rope_parameters.");
        }
}

/* transformers has one of both; where both stand, neither is ignored. */
static void refuses_a_second_scaling(void **state) {
    (void)state;
    static const char both[] = ",\"rope_scaling\":{\"rope_type\":\"default\"},\"rope_parameters\":"
                               "{\"rope_type\":\"longrope\",\"rope_theta\":1e6}";
    for (size_t f = 0; f < FAMILIES; f++)
        refuses(&families[f], both, "", "rope_parameters.rope_type: ");
}

#define LLAMA3                                                                                               \
    "{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,"                   \
    "\"original_max_position_embeddings\":8192,\"rope_theta\":5e5}"
#define OF_KINDS(full)                                                                                       \
    "{\"full_attention\":" full ",\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":1e4}}"
#define LINEAR "{\"rope_type\":\"linear\",\"factor\":8,\"rope_theta\":1e6}"
#define PROPORTIONAL "{\"rope_type\":\"proportional\",\"partial_rotary_factor\":0.25,\"rope_theta\":1e6}"

static const struct family *find_family(const char *text) {
    for (size_t f = 0; f < FAMILIES; f++)
        if (strcmp(families[f].text, text) == 0)
            return &families[f];
    fail_msg("no family %s", text);
    return NULL;
}

/* Some versions of transformers write both. */
static void accepts_a_scaling_that_stands_twice(void **state) {
    (void)state;
    static const struct {
        const char *family, *object;
    } cases[] = {{"llama", LLAMA3},
                 {"mistral", LLAMA3},
                 {"qwen3_5_text", "{\"rope_type\":\"default\",\"rope_theta\":5e5}"},
                 {"gemma3_text", OF_KINDS(LINEAR)},
                 {"gemma4_text", OF_KINDS(PROPORTIONAL)}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char inner[640];
        gumbel_error error;
        snprintf(inner, sizeof inner, ",\"rope_scaling\":%s,\"rope_parameters\":%s", cases[i].object,
                 cases[i].object);
        assert_ok(read_members(find_family(cases[i].family), inner, "", &error), &error);
    }
}

static void refuses_two_scalings_that_differ(void **state) {
    (void)state;
    static const char thetas[] = ",\"rope_scaling\":{\"rope_type\":\"default\"},\"rope_parameters\":"
                                 "{\"rope_type\":\"default\",\"rope_theta\":12345}";
    static const char factors[] = ",\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":8},"
                                  "\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":4}";
    static const char kinds[] = ",\"rope_scaling\":{},\"rope_parameters\":" OF_KINDS(LINEAR);
    static const char proportional[] =
        ",\"rope_scaling\":" OF_KINDS(LINEAR) ",\"rope_parameters\":" OF_KINDS(PROPORTIONAL);
    refuses(find_family("llama"), factors, "", "rope_parameters.rope_type: \"linear\"");
    refuses(find_family("llama"), thetas, "", "rope_parameters.rope_theta: 12345 stands beside rope_scaling");
    refuses(find_family("qwen3_5_text"), thetas, "", "rope_parameters.rope_theta: 12345 stands beside");
    refuses(find_family("gemma3_text"), kinds, "", "rope_scaling: stands beside rope_parameters");
    refuses(find_family("gemma4_text"), proportional, "",
            "rope_scaling.full_attention.rope_type: \"linear\"");
}

static void refuses_scalings_of_the_wrapper(void **state) {
    (void)state;
    static const char scaling[] = ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4}";
    static const char plain[] = ",\"rope_scaling\":{\"type\":\"default\"}";
    for (size_t f = 0; f < FAMILIES; f++) {
        gumbel_error error;
        if (families[f].wrapper)
            refuses(&families[f], "", scaling, "config.json: rope_scaling.type: \"yarn\"");
        assert_ok(read_members(&families[f], "", plain, &error), &error);
        assert_ok(read_members(&families[f], ",\"rope_scaling\":null", ",\"rope_scaling\":null", &error),
                  &error);
    }
    gumbel_error error; /* the text's own, said twice */
    const char *const linear = ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":4}";
    assert_ok(read_members(&families[3], linear, linear, &error), &error);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_kinds_it_does_not_have),
        cmocka_unit_test(refuses_a_second_scaling),
        cmocka_unit_test(accepts_a_scaling_that_stands_twice),
        cmocka_unit_test(refuses_two_scalings_that_differ),
        cmocka_unit_test(refuses_scalings_of_the_wrapper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
