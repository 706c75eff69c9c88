/* SPDX-License-Identifier: Apache-2.0
 *
 * Draft heads agree with their equations: behind hidden states of a prompt that the model has kept, the
 * head's logits are those of tests/data/export/draft_head, and so is what it then guesses from its own.
 * tests/oracle/make_head_goldens.py writes the answers.
 */
#include "export/models/model.h"
#include "export/source.h"
#include "export/write_weights.h"
#include "run/handles.h"
#include "support/assertions.h"
#include "support/backend.h"
#include "support/paths.h"
#include "support/temporary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

static const double TOLERANCE = 2e-3; /* of the largest absolute logit: hidden states are bfloat16 */
enum { MAX_TOKENS = 64 };

typedef struct token_list {
    int32_t ids[MAX_TOKENS];
    uint32_t count;
} token_list;

static token_list read_tokens(const json_t *json, const char *key) {
    const json_t *array = json_object_get(json, key);
    token_list list = {.count = (uint32_t)json_array_size(array)};
    assert_true(list.count > 0 && list.count <= MAX_TOKENS);
    for (size_t i = 0; i < list.count; i++)
        list.ids[i] = (int32_t)json_integer_value(json_array_get(array, i));
    return list;
}

/* ---- Programs ------------------------------------------------------------------------------------------ */

static gumbel_status write_graph(const gb_source *source, bool is_head, uint64_t seed, const char *path,
                                 gumbel_error *error) {
    const gb_model *model = NULL;
    const gb_model_options options = {.keep_hidden = !is_head, .sampler = {.kind = GB_SAMPLER_NONE}};
    gb_config root = gb_config_root(source->config);
    gb_dtype dtype = GB_DTYPE_NONE;
    gb_writer *writer = NULL;
    gb_program *program = NULL;
    GB_TRY(gb_model_find(&root, &model, error));
    GB_TRY(gb_source_dtype(source, &dtype, error));
    gb_weights *weights = gb_weights_create(NULL, dtype, seed);
    gb_builder *builder = gb_builder_create();
    GB_TRY((is_head ? model->build_head : model->build)(&root, &options, builder, weights, error));
    gb_builder_metadata(builder)->architecture = model->name;
    GB_TRY(gb_builder_finish(builder, &program, error));
    GB_TRY(gb_writer_create(path, NULL, program, &writer, error));
    GB_TRY(gb_write_weights(writer, program, weights, NULL, NULL, error));
    GB_TRY(gb_writer_finish(writer, error));
    gb_program_destroy(program);
    gb_builder_destroy(builder);
    gb_weights_destroy(weights);
    return GUMBEL_OK;
}

/* One of the two, ready to run. */
typedef struct runner {
    gumbel_program *program;
    gumbel_engine *engine;
    gumbel_session *session;
} runner;

static void start(runner *r, const gb_source *source, bool is_head, uint64_t seed) {
    const char *path = temporary_path(is_head ? "head.gumbel" : "target.gumbel");
    const gumbel_engine_options options = {
        .size = sizeof options, .threads = 2, .backend = GUMBEL_TEST_BACKEND};
    gumbel_error error;
    assert_ok(write_graph(source, is_head, seed, path, &error), &error);
    assert_ok(gumbel_program_open(path, &r->program, &error), &error);
    assert_ok(gumbel_engine_create(r->program, &options, &r->engine, &error), &error);
    assert_ok(gumbel_session_create(r->engine, &r->session, &error), &error);
}

static void stop(runner *r) {
    gumbel_session_destroy(r->session);
    gumbel_engine_destroy(r->engine);
    gumbel_program_close(r->program);
}

static const float *run_tokens(const runner *r, const int32_t *tokens, size_t count) {
    gumbel_error error;
    gumbel_result result = {.size = sizeof result};
    const gumbel_request request = {.size = sizeof request,
                                    .session = r->session,
                                    .tokens = tokens,
                                    .token_count = count,
                                    .result = &result};
    assert_ok(gumbel_step(r->engine, &request, 1, &error), &error);
    assert_non_null(result.logits);
    return result.logits;
}

static void take_hidden(const runner *head, const runner *target, uint32_t count) {
    const gumbel_engine *from = target->engine, *to = head->engine;
    const gb_rows_of_slot rows = {.backend = from->backend,
                                  .slot = target->session->slot,
                                  .state = gb_hidden_state(from->program),
                                  .end = count};
    gumbel_error error;
    assert_ok(to->backend->functions->take_rows(to->backend, head->session->slot,
                                                gb_hidden_state(to->program), &rows, &error),
              &error);
}

/* ---- Comparing ----------------------------------------------------------------------------------------- */

static void compare_logits(const char *name, const float *logits, const json_t *expected) {
    double largest = 0, difference = 0;
    for (size_t i = 0; i < json_array_size(expected); i++) {
        const double value = json_number_value(json_array_get(expected, i));
        largest = fmax(largest, fabs(value));
        difference = fmax(difference, fabs(value - (double)logits[i]));
    }
    print_message("%s: largest difference %.2g of the largest logit\n", name, difference / largest);
    assert_true(largest > 0);
    assert_true(difference <= TOLERANCE * largest);
}

static int32_t likeliest(const float *logits, size_t count) {
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        best = logits[i] > logits[best] ? i : best;
    return (int32_t)best;
}

static void compare(const char *name, const runner *target, const runner *head, const json_t *golden) {
    const json_t *expected = json_object_get(golden, "logits");
    const token_list prompt = read_tokens(golden, "prompt"), guesses = read_tokens(golden, "guesses");
    run_tokens(target, prompt.ids, prompt.count);
    take_hidden(head, target, prompt.count);
    const float *logits = run_tokens(head, prompt.ids + 1, prompt.count - 1);
    compare_logits(name, logits, expected);
    for (uint32_t i = 0; i < guesses.count; i++) {
        assert_int_equal(likeliest(logits, json_array_size(expected)), guesses.ids[i]);
        logits = run_tokens(head, &guesses.ids[i], 1);
    }
}

static void agrees(void **state) {
    const char *name = *state;
    char path[512], config[512];
    gb_source source;
    gumbel_error error;
    runner target, head;
    snprintf(path, sizeof path, "%s/export/draft_head/%s.golden.json", test_data_folder, name);
    snprintf(config, sizeof config, "%s/export/agreement/%s.json", test_data_folder, name);
    json_t *golden = json_load_file(path, 0, NULL);
    assert_non_null(golden);
    const uint64_t seed = (uint64_t)json_integer_value(json_object_get(golden, "weights_seed"));
    assert_ok(gb_source_open(config, true, &source, &error), &error);
    start(&target, &source, false, seed);
    start(&head, &source, true, seed);
    compare(name, &target, &head, golden);
    stop(&head);
    stop(&target);
    gb_source_close(&source);
    json_decref(golden);
}

#define AGREES(name)                                                                                         \
    { name, agrees, NULL, NULL, (void *)(uintptr_t)(name) }

int main(void) {
    const struct CMUnitTest tests[] = {
        AGREES("qwen_released"),
        AGREES("qwen_dense_text"),
        AGREES("qwen_odd_sizes"),
        AGREES("next_released"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
