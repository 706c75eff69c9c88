/* SPDX-License-Identifier: Apache-2.0
 *
 * Real models beside what other programs make of them, as tests/oracle/make_model_facts.py recorded it: the
 * ids of more than a megabyte of text, greedy tokens, and perplexity. Skipped where the model's file is not.
 */
#include "text/golden.h"

#include "support/assertions.h"
#include "support/temporary.h"
#include "support/test_arguments.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_IDS = 1 << 20, MOST_PROMPT = 64, MOST_TEXT = 1 << 14, CONTEXT = 256 };

typedef struct model {
    char *path;
    json_t *facts;
    gumbel_program *program;
    gumbel_tokenizer *tokenizer;
    gumbel_engine *engine;
    gumbel_session *session;
    uint32_t vocabulary;
} model;

static const char *name; /* of the model */

static double number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

/* Products in float32, as those who recorded the facts compute. */
static void open_model(model *m) {
    const gumbel_export_options options = {
        .size = sizeof options, .activations = "none", .cache = "float32", .max_context = CONTEXT};
    const char *program = temporary_path("model.gumbel");
    gumbel_error error;
    assert_ok(gumbel_export(m->path, program, &options, &error), &error);
    assert_ok(gumbel_program_open(program, &m->program, &error), &error);
    gumbel_program_info info = {.size = sizeof info};
    assert_ok(gumbel_program_get_info(m->program, &info, &error), &error);
    m->vocabulary = info.vocab_size;
    assert_ok(gumbel_tokenizer_create(m->program, &m->tokenizer, &error), &error);
    assert_ok(gumbel_engine_create(m->program, NULL, &m->engine, &error), &error);
    assert_ok(gumbel_session_create(m->engine, &m->session, &error), &error);
}

static int set_up(void **state) {
    static model m;
    char path[1024];
    const char *folder = getenv("GUMBEL_REAL_MODELS");
    snprintf(path, sizeof path, "models/%s.json", name);
    m.facts = load_json(test_data(path));
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "",
             json_string_value(json_object_get(m.facts, "file")));
    FILE *file = folder && folder[0] ? fopen(path, "rb") : NULL;
    if (!file) {
        print_message("%s: the model is not here; tools/models.sh fetches it\n", path);
        exit(77);
    }
    fclose(file);
    m.path = strdup(path);
    open_model(&m);
    *state = &m;
    return 0;
}

static int tear_down(void **state) {
    model *m = *state;
    gumbel_engine_destroy(m->engine);
    gumbel_tokenizer_destroy(m->tokenizer);
    gumbel_program_close(m->program);
    json_decref(m->facts);
    free(m->path);
    empty_temporary_directory();
    return 0;
}

/* ---- Tokens -------------------------------------------------------------------------------------------- */

static void make_text(size_t strings, gb_byte_buffer *text) {
    json_t *pieces = load_json(DATA("byte_pieces.json"));
    gb_byte_buffer one = {0};
    for (size_t i = 0; i < strings; i++) {
        make_string(pieces, i, &one);
        gb_buffer_append(text, one.data, one.size);
    }
    gb_buffer_free(&one);
    json_decref(pieces);
}

static void encodes_as_others_do(void **state) {
    const model *m = *state;
    const json_t *facts = json_object_get(m->facts, "tokens");
    int32_t *ids = gb_allocate(MOST_IDS, sizeof *ids);
    gb_byte_buffer text = {0};
    gumbel_error error;
    size_t count;
    make_text((size_t)number(facts, "strings"), &text);
    assert_int_equal(text.size, number(facts, "bytes"));
    assert_ok(
        gumbel_encode(m->tokenizer, (const char *)text.data, text.size, NULL, ids, MOST_IDS, &count, &error),
        &error);
    assert_int_equal(count, number(facts, "count"));
    assert_int_equal(hash_ids(ids, count), number(facts, "hash"));
    gb_buffer_free(&text);
    gb_free(ids);
}

/* ---- Greedy tokens ------------------------------------------------------------------------------------- */

/* Runs tokens; their last logits, valid until the next step. */
static const float *run(const model *m, const int32_t *tokens, size_t count) {
    gumbel_sampling greedy = {.size = sizeof greedy, .top_p = 1};
    gumbel_result result = {.size = sizeof result};
    gumbel_request request = {.size = sizeof request,
                              .session = m->session,
                              .tokens = tokens,
                              .token_count = (uint32_t)count,
                              .result = &result,
                              .sampling = &greedy};
    gumbel_error error;
    assert_ok(gumbel_step(m->engine, &request, 1, &error), &error);
    assert_non_null(result.logits);
    return result.logits;
}

static int32_t best_of(const float *logits, uint32_t count) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++)
        best = logits[i] > logits[best] ? i : best;
    return (int32_t)best;
}

static void check_prompt(const model *m, const json_t *fact) {
    const char *prompt = json_string_value(json_object_get(fact, "prompt"));
    const json_t *expected = json_object_get(fact, "ids"), *answer = json_object_get(fact, "answer");
    const gumbel_encode_options options = {.size = sizeof options, .add_special = true};
    const uint32_t vocabulary = m->vocabulary;
    int32_t ids[MOST_PROMPT];
    size_t count;
    assert_int_equal(
        gumbel_encode(m->tokenizer, prompt, strlen(prompt), &options, ids, MOST_PROMPT, &count, NULL),
        GUMBEL_OK);
    assert_int_equal(count, json_array_size(expected));
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ids[i], json_integer_value(json_array_get(expected, i)));
    gumbel_session_reset(m->session);
    int32_t token = best_of(run(m, ids, count), vocabulary);
    for (size_t i = 0; i < (size_t)number(fact, "near"); i++) {
        if (token != json_integer_value(json_array_get(answer, i)))
            fail_msg("%s: token %zu is %d, expected %lld", prompt, i, token,
                     (long long)json_integer_value(json_array_get(answer, i)));
        token = best_of(run(m, &token, 1), vocabulary);
    }
}

static void answers_as_others_do(void **state) {
    const model *m = *state;
    const json_t *facts = json_object_get(m->facts, "greedy");
    const size_t count = (size_t)shortened((int)json_array_size(facts), 6);
    for (size_t i = 0; i < count; i++)
        check_prompt(m, json_array_get(facts, i));
}

/* ---- Perplexity ---------------------------------------------------------------------------------------- */

static double surprise(const float *logits, uint32_t count, int32_t token) {
    const double largest = (double)logits[best_of(logits, count)];
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += exp((double)logits[i] - largest);
    return largest + log(sum) - (double)logits[token];
}

/* The tokens of the text, and bos: the token before an empty text, or -1. */
static size_t encode_text(const model *m, int32_t ids[MOST_TEXT], int32_t *bos) {
    const gumbel_encode_options options = {.size = sizeof options, .add_special = true};
    char *text;
    size_t size, count;
    assert_int_equal(gb_read_file(test_data("models/text.txt"), 1 << 20, &text, &size, NULL), GUMBEL_OK);
    assert_int_equal(gumbel_encode(m->tokenizer, "", 0, &options, bos, 1, &count, NULL), GUMBEL_OK);
    assert_int_equal(gumbel_encode(m->tokenizer, text, size, &options, ids, MOST_TEXT, &count, NULL),
                     GUMBEL_OK);
    gb_free(text);
    return count;
}

/* The second half of a window, as llama-perplexity scores it. */
static double score_window(const model *m, const int32_t *ids, size_t window, int32_t bos) {
    const uint32_t vocabulary = m->vocabulary;
    double sum = 0;
    int32_t first[CONTEXT];
    memcpy(first, ids, window / 2 * sizeof *ids);
    first[0] = bos >= 0 ? bos : ids[0];
    gumbel_session_reset(m->session);
    run(m, first, window / 2);
    for (size_t i = window / 2; i + 1 < window; i++)
        sum += surprise(run(m, &ids[i], 1), vocabulary, ids[i + 1]);
    return sum;
}

/* llama.cpp's over the file widened to float32, within 0.5 %. */
static void predicts_as_others_do(void **state) {
    const model *m = *state;
    const json_t *facts = json_object_get(m->facts, "perplexity");
    const json_t *expected = json_object_get(facts, "float32");
    const size_t window = (size_t)number(facts, "window");
    const size_t windows = (size_t)shortened((int)json_array_size(expected), 2);
    static int32_t ids[MOST_TEXT];
    int32_t bos = -1;
    double sum = 0;
    const size_t count = encode_text(m, ids, &bos);
    assert_true(windows > 0 && count >= windows * window);
    for (size_t i = 0; i < windows; i++)
        sum += score_window(m, ids + i * window, window, bos);
    const double perplexity = exp(sum / (double)(windows * (window - window / 2 - 1)));
    const double theirs = json_number_value(json_array_get(expected, windows - 1));
    print_message("%s: perplexity %.4f, llama.cpp %.4f\n", name, perplexity, theirs);
    assert_true(fabs(perplexity - theirs) < 0.005 * theirs);
}

int main(int argument_count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes_as_others_do),
        cmocka_unit_test(answers_as_others_do),
        cmocka_unit_test(predicts_as_others_do),
    };
    if (argument_count < 2) {
        fprintf(stderr, "usage: %s MODEL [NAMES [short]]\n", arguments[0]);
        return 2;
    }
    name = arguments[1];
    read_test_arguments(argument_count - 1, arguments + 1);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
