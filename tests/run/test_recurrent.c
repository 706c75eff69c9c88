/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions of a program with recurrent states, which cannot be truncated: their states, how much is run again
 * when a session goes back, and what a failed step leaves.
 */
#include "program/file/reader.h"
#include "run/handles.h"
#include "support/backend.h"
#include "support/programs/random_program.h"
#include "support/temporary.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { VOCAB = 160, WIDTH = 48, PROMPT = 40, GENERATED = 12 };

static gumbel_error error;
static int32_t prompt[PROMPT];

static gumbel_engine *make_engine(const gumbel_program *program) {
    gumbel_engine *engine;
    gumbel_engine_options options = {
        .size = sizeof options, .slots = 2, .threads = 2, .snapshots = true, .backend = GUMBEL_TEST_BACKEND};
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    return engine;
}

static gumbel_session *make_session(gumbel_engine *engine) {
    gumbel_session *session;
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    return session;
}

/* Runs a token and gives the logits after it. */
static void step(gumbel_session *session, int32_t token, float logits[VOCAB]) {
    gumbel_result result = {.size = sizeof result};
    gumbel_request request = {
        .size = sizeof request, .session = session, .tokens = &token, .token_count = 1, .result = &result};
    assert_ok(gumbel_step(session->engine, &request, 1, &error), &error);
    memcpy(logits, result.logits, VOCAB * sizeof *logits);
}

/* ---- Counting ------------------------------------------------------------------------------------------ */

/* The engine's backend, with steps that count their tokens. */
static const gb_backend_functions *uncounted;
static gb_backend_functions counted;
static uint32_t tokens_run;

static gumbel_status count_step(gb_backend *backend, gb_batch *batch, gumbel_error *told) {
    tokens_run += batch->token_count;
    return uncounted->step(backend, batch, told);
}

static void count_tokens(gumbel_engine *engine) {
    uncounted = engine->backend->functions;
    counted = *uncounted;
    counted.step = count_step;
    engine->backend->functions = &counted;
    tokens_run = 0;
}

static void assert_tokens_run(uint32_t expected) {
    assert_int_equal(tokens_run, expected);
    tokens_run = 0;
}

/* ---- Tests --------------------------------------------------------------------------------------------- */

static size_t read_file(const char *path, char **data) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    *data = malloc(size);
    assert_int_equal(fread(*data, 1, size, file), size);
    fclose(file);
    return size;
}

/* The session in the file goes on as this one does. */
static void assert_loads(gumbel_session *session, const char *path) {
    float found[VOCAB], expected[VOCAB];
    gumbel_session *loaded = make_session(session->engine);
    assert_ok(gumbel_session_append(loaded, prompt + 3, 5, &error), &error); /* what is replaced */
    assert_ok(gumbel_session_load(loaded, path, &error), &error);
    step(loaded, 7, found);
    step(session, 7, expected);
    assert_memory_equal(found, expected, sizeof found);
    gumbel_session_destroy(loaded);
}

static void states_do_not_depend_on_pieces(void **state) {
    gumbel_engine *engine = make_engine(*state);
    static const size_t pieces[] = {1, 7, PROMPT};
    char *expected = NULL, *found;
    size_t size = 0;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        gumbel_session *session = make_session(engine);
        const char *path = temporary_path("recurrent.session");
        for (size_t at = 0; at < PROMPT; at += pieces[i]) {
            size_t count = PROMPT - at < pieces[i] ? PROMPT - at : pieces[i];
            assert_ok(gumbel_session_append(session, prompt + at, count, &error), &error);
        }
        assert_ok(gumbel_session_save(session, path, &error), &error);
        assert_loads(session, path);
        gumbel_session_destroy(session);
        size_t found_size = read_file(path, &found);
        if (!expected) {
            expected = found;
            size = found_size;
            continue;
        }
        assert_int_equal(found_size, size);
        assert_memory_equal(found, expected, size);
        free(found);
    }
    free(expected);
    gumbel_engine_destroy(engine);
}

/* Generates after tokens, greedily, with a snapshot before the last one. */
static void generate(gumbel_session *session, const int32_t *tokens, size_t count, int32_t *ids) {
    const gumbel_sampling greedy = {.size = sizeof greedy, .top_p = 1};
    gumbel_generate_options options = {.size = sizeof options,
                                       .sampling = &greedy,
                                       .max_new_tokens = GENERATED,
                                       .ignore_stop = true,
                                       .snapshot = true};
    assert_ok(gumbel_generate(session, tokens, count, &options, &error), &error);
    for (size_t i = 0; i < GENERATED; i++) {
        gumbel_generated next = {.size = sizeof next};
        assert_ok(gumbel_next(session, &next, &error), &error);
        ids[i] = next.token;
    }
}

/* A turn, its repetition, and a next turn after another reply than the one that was generated. */
static void going_back_runs_only_what_is_new(void **state) {
    gumbel_engine *engine = make_engine(*state);
    gumbel_session *session = make_session(engine), *fresh = make_session(engine);
    int32_t ids[GENERATED], again[GENERATED];
    float found[VOCAB], expected[VOCAB];
    count_tokens(engine);
    generate(session, prompt, PROMPT - 10, ids);
    assert_tokens_run(PROMPT - 10 + GENERATED - 1);

    assert_ok(gumbel_session_rewind(session, PROMPT - 11, &error), &error);
    assert_tokens_run(0);
    generate(session, prompt + PROMPT - 11, 1, again);
    assert_memory_equal(again, ids, sizeof ids);
    assert_tokens_run(GENERATED);

    assert_ok(gumbel_session_rewind(session, PROMPT - 10, &error), &error);
    assert_tokens_run(1); /* behind the snapshot */
    assert_ok(gumbel_session_append(session, prompt + PROMPT - 10, 9, &error), &error);
    assert_tokens_run(9);
    step(session, prompt[PROMPT - 1], found);
    assert_ok(gumbel_session_append(fresh, prompt, PROMPT - 1, &error), &error);
    step(fresh, prompt[PROMPT - 1], expected);
    assert_memory_equal(found, expected, sizeof found);
    gumbel_engine_destroy(engine);
}

/* Makes the embedding of a token NaN in the file of the program opened last. */
static void poison_token(int32_t token) {
    gb_program *read;
    assert_ok(gb_program_read(random_program_path(), &read, &error), &error);
    uint64_t offset = 0;
    for (uint32_t i = 0; i < read->constant_count; i++)
        if (strstr(read->constants[i].name, "embed_tokens"))
            offset = read->constants[i].offset + (uint64_t)token * WIDTH * sizeof(uint16_t);
    gb_program_destroy(read);
    assert_int_not_equal(offset, 0);
    static const uint16_t nan_bf16 = 0x7fc0;
    int file = open(random_program_path(), O_WRONLY);
    assert_int_equal(pwrite(file, &nan_bf16, sizeof nan_bf16, (off_t)offset), sizeof nan_bf16);
    close(file);
}

/* Two sessions in a step that fails for one of them: neither has moved, and both go on as if it had not been.
 */
static void a_failed_step_moves_nobody(void **state) {
    enum { BAD = 3, BEFORE = 20, SNAPSHOT = 9 };
    (void)state;
    gumbel_program *program = open_random_program("qwen.json", false);
    gumbel_program_close(program);
    poison_token(BAD);
    assert_ok(gumbel_program_open(random_program_path(), &program, &error), &error);
    gumbel_engine *engine = make_engine(program);
    gumbel_session *sessions[2] = {make_session(engine), make_session(engine)};
    int32_t tokens[2][BEFORE + 1];
    float expected[2][VOCAB], found[VOCAB];
    for (int i = 0; i < 2; i++) {
        random_tokens(20 + (uint32_t)i, BAD, tokens[i], BEFORE + 1); /* all below the bad one */
        assert_ok(gumbel_session_append(sessions[i], tokens[i], BEFORE, &error), &error);
        step(sessions[i], tokens[i][BEFORE], expected[i]);
        gumbel_session_reset(sessions[i]);
        assert_ok(gumbel_session_append(sessions[i], tokens[i], SNAPSHOT, &error), &error);
        if (i == 0) /* the other one starts over from nothing */
            assert_ok(gumbel_session_snapshot(sessions[i], &error), &error);
        assert_ok(gumbel_session_append(sessions[i], tokens[i] + SNAPSHOT, BEFORE - SNAPSHOT, &error),
                  &error);
    }
    const int32_t fine = 5, bad = BAD;
    gumbel_result result = {.size = sizeof result};
    gumbel_request requests[2] = {{.size = sizeof *requests,
                                   .session = sessions[0],
                                   .tokens = &fine,
                                   .token_count = 1,
                                   .result = &result},
                                  {.size = sizeof *requests,
                                   .session = sessions[1],
                                   .tokens = &bad,
                                   .token_count = 1,
                                   .result = &result}};
    assert_fails(gumbel_step(engine, requests, 2, &error), GUMBEL_ERROR_NUMERIC, &error, "request 1");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gumbel_session_position(sessions[i], NULL), BEFORE);
        step(sessions[i], tokens[i][BEFORE], found);
        assert_memory_equal(found, expected[i], sizeof found);
    }
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

static int set_up(void **state) {
    random_tokens(4, VOCAB, prompt, PROMPT);
    *state = open_random_program("qwen.json", false);
    return 0;
}

static int tear_down(void **state) {
    gumbel_program_close(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(states_do_not_depend_on_pieces, set_up, tear_down),
        cmocka_unit_test_setup_teardown(going_back_runs_only_what_is_new, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failed_step_moves_nobody, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
