/* SPDX-License-Identifier: Apache-2.0
 *
 * Assistants of Gemma 4 agree with transformers: given the hidden states, keys and values of a model that has
 * run a prompt but for its last token, the head's logits are those of tests/data/export/assistant, and so are
 * those of what it then guesses from its own hidden states. tests/oracle/make_assistant_goldens.py writes the
 * answers.
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

/* Of the largest absolute logit: of the first guess, and of those from rounded hidden states. A key too many
 * or too few makes 0.038 and more. */
static const double FIRST_TOLERANCE = 5e-3, TOLERANCE = 2e-2;
enum { MAX_TOKENS = 64 };

static gumbel_error error;

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

/* The configurations of a model and of its assistant, and what their weights are drawn from. */
typedef struct both_sources {
    gb_source target, assistant;
    uint64_t seed;
} both_sources;

static void open_source(const char *name, const char *ending, gb_source *source) {
    char path[512];
    snprintf(path, sizeof path, "%s/export/assistant/%s%s.json", test_data_folder, name, ending);
    assert_ok(gb_source_open(path, true, source, &error), &error);
}

static void write_graph(const both_sources *sources, bool is_head, const char *path) {
    const gb_model *model = NULL;
    const gb_config root = gb_config_root(sources->target.config),
                    assistant = gb_config_root(sources->assistant.config);
    const gb_model_options options = {
        .keep_hidden = true, .assistant = &assistant, .sampler = {.kind = GB_SAMPLER_NONE}};
    gb_writer *writer = NULL;
    gb_program *program = NULL;
    gb_weights *weights = gb_weights_create(NULL, GB_F32, sources->seed);
    gb_builder *builder = gb_builder_create();
    assert_ok(gb_model_find(&root, &model, &error), &error);
    assert_ok((is_head ? model->build_head : model->build)(&root, &options, builder, weights, &error),
              &error);
    gb_builder_metadata(builder)->architecture = model->name;
    assert_ok(gb_builder_finish(builder, &program, &error), &error);
    assert_ok(gb_writer_create(path, NULL, program, &writer, &error), &error);
    assert_ok(gb_write_weights(writer, program, weights, NULL, NULL, &error), &error);
    assert_ok(gb_writer_finish(writer, &error), &error);
    gb_program_destroy(program);
    gb_builder_destroy(builder);
    gb_weights_destroy(weights);
}

/* One of the two, ready to run. */
typedef struct runner {
    gumbel_program *program;
    gumbel_engine *engine;
    gumbel_session *session;
} runner;

static void start(runner *r, const both_sources *sources, bool is_head) {
    const char *path = temporary_path(is_head ? "head.gumbel" : "target.gumbel");
    const gumbel_engine_options options = {
        .size = sizeof options, .threads = 2, .backend = GUMBEL_TEST_BACKEND};
    write_graph(sources, is_head, path);
    assert_ok(gumbel_program_open(path, &r->program, &error), &error);
    assert_ok(gumbel_engine_create(r->program, &options, &r->engine, &error), &error);
    assert_ok(gumbel_session_create(r->engine, &r->session, &error), &error);
}

static void stop(runner *r) {
    gumbel_session_destroy(r->session);
    gumbel_engine_destroy(r->engine);
    gumbel_program_close(r->program);
}

static void run_prompt(const runner *target, const int32_t *tokens, size_t count) {
    const gumbel_request request = {
        .size = sizeof request, .session = target->session, .tokens = tokens, .token_count = count};
    assert_ok(gumbel_step(target->engine, &request, 1, &error), &error);
}

static uint32_t find_state(const gb_program *program, const char *name) {
    uint32_t at = 0;
    while (at < program->state_count && strcmp(program->states[at].name, name) != 0)
        at++;
    assert_true(at < program->state_count);
    return at;
}

/* Gives the head what the model has of its states after so many tokens; a ring as it lies there. */
static void take_states(const runner *head, const runner *target, uint32_t count) {
    const gumbel_engine *from = target->engine, *to = head->engine;
    for (uint32_t i = 0; i < to->program->state_count; i++) {
        const gb_state *state = &to->program->states[i];
        const bool is_ring = state->kind == GB_STATE_RING;
        const gb_rows_of_slot rows = {.backend = from->backend,
                                      .slot = target->session->slot,
                                      .state = find_state(from->program, state->name),
                                      .end = is_ring ? (uint32_t)state->type.shape.dims[0] : count};
        assert_ok(to->backend->functions->take_rows(to->backend, head->session->slot, i, &rows, &error),
                  &error);
    }
}

/* Logits of what follows one token, which stands at that position. */
static const float *run_head(const runner *head, int32_t token, int32_t position, int32_t last) {
    gumbel_engine *engine = head->engine;
    const gb_batch_arrays *arrays = &engine->arrays;
    gb_batch *batch = &engine->batch;
    arrays->tokens[0] = token;
    arrays->positions[0] = position;
    arrays->slots[0] = (int32_t)head->session->slot;
    arrays->last[0] = last;
    arrays->rows[0] = 0;
    arrays->generated[0] = true;
    arrays->draft[0] = false;
    gb_batch_clear_row(arrays, 0);
    batch->token_count = batch->row_count = 1;
    assert_ok(engine->backend->functions->step(engine->backend, batch, &error), &error);
    assert_non_null(batch->logits);
    return batch->logits;
}

/* ---- Comparing ----------------------------------------------------------------------------------------- */

static void compare_logits(const char *name, double tolerance, const float *logits, const json_t *expected) {
    double largest = 0, difference = 0;
    for (size_t i = 0; i < json_array_size(expected); i++) {
        const double value = json_number_value(json_array_get(expected, i));
        largest = fmax(largest, fabs(value));
        difference = fmax(difference, fabs(value - (double)logits[i]));
    }
    print_message("%s: largest difference %.2g of the largest logit\n", name, difference / largest);
    assert_true(largest > 0);
    assert_true(difference <= tolerance * largest);
}

static int32_t likeliest(const float *logits, size_t count) {
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        best = logits[i] > logits[best] ? i : best;
    return (int32_t)best;
}

/* Every guess is made from the position behind the model's last one. */
static void compare(const char *name, const runner *target, const runner *head, const json_t *golden) {
    const token_list prompt = read_tokens(golden, "prompt"), guesses = read_tokens(golden, "guesses");
    const int32_t last = (int32_t)prompt.count - 2;
    int32_t token = prompt.ids[prompt.count - 1];
    run_prompt(target, prompt.ids, prompt.count - 1);
    take_states(head, target, prompt.count - 1);
    for (uint32_t i = 0; i < guesses.count; i++) {
        const json_t *expected = json_array_get(json_object_get(golden, "logits"), i);
        const float *logits = run_head(head, token, last + 1 + (int32_t)i, last);
        compare_logits(name, i == 0 ? FIRST_TOLERANCE : TOLERANCE, logits, expected);
        token = likeliest(logits, json_array_size(expected));
        assert_int_equal(token, guesses.ids[i]);
    }
}

static void agrees(void **state) {
    const char *name = *state;
    char path[512];
    both_sources sources;
    runner target, head;
    snprintf(path, sizeof path, "%s/export/assistant/%s.golden.json", test_data_folder, name);
    json_t *golden = json_load_file(path, 0, NULL);
    assert_non_null(golden);
    sources.seed = (uint64_t)json_integer_value(json_object_get(golden, "weights_seed"));
    open_source(name, "", &sources.target);
    open_source(name, ".assistant", &sources.assistant);
    start(&target, &sources, false);
    start(&head, &sources, true);
    compare(name, &target, &head, golden);
    stop(&head);
    stop(&target);
    gb_source_close(&sources.assistant);
    gb_source_close(&sources.target);
    json_decref(golden);
}

#define AGREES(name)                                                                                         \
    { name, agrees, NULL, NULL, (void *)(uintptr_t)(name) }

int main(void) {
    const struct CMUnitTest tests[] = {
        AGREES("shared_keys"),
        AGREES("keys_are_values"),
        AGREES("unified"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
