/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions: slots, seeds, generation, cancel, snapshots, files.
 */
#include "support/backend.h"
#include "support/programs/random_program.h"
#include "support/test_arguments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <xxhash.h>

enum { VOCAB = 160, PROMPT = 40, GENERATED = 30, CONTEXT = 128 };

static gumbel_program *program;
static gumbel_engine *engine;
static gumbel_session *session;
static gumbel_error error;
static int32_t prompt[PROMPT];

static int set_up(void **state) {
    (void)state;
    gumbel_engine_options options = {
        .size = sizeof options, .slots = 2, .snapshots = true, .threads = 2, .backend = GUMBEL_TEST_BACKEND};
    random_tokens(4, VOCAB, prompt, PROMPT);
    if (!program)
        program = open_random_program("small.json", false);
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    gumbel_engine_destroy(engine);
    return 0;
}

static int close_program(void **state) {
    (void)state;
    gumbel_program_close(program);
    return 0;
}

static const gumbel_sampling warm = {.size = sizeof warm, .temperature = 1.3f, .top_p = 1.0f};

/* Generates into ids until a finish; returns how many, and the finish. */
static size_t generate(gumbel_session *which, const int32_t *tokens, size_t count, uint32_t max_new_tokens,
                       int32_t *ids, gumbel_finish *finish) {
    gumbel_generate_options options = {.size = sizeof options,
                                       .sampling = &warm,
                                       .max_new_tokens = max_new_tokens,
                                       .ignore_stop = true,
                                       .snapshot = true};
    gumbel_generated next = {.size = sizeof next};
    size_t made = 0;
    assert_ok(gumbel_generate(which, tokens, count, &options, &error), &error);
    while (!next.finish) {
        assert_ok(gumbel_next(which, &next, &error), &error);
        ids[made++] = next.token;
    }
    *finish = next.finish;
    return made;
}

static uint32_t generated_count(void) {
    return (uint32_t)shortened(GENERATED, 6);
}

static void test_slots(void **state) {
    (void)state;
    gumbel_session *second, *third;
    assert_ok(gumbel_session_create(engine, &second, &error), &error);
    assert_fails(gumbel_session_create(engine, &third, &error), GUMBEL_ERROR_LIMIT, &error, "2 slots");
    assert_null(third);
    gumbel_session_destroy(second);
    assert_ok(gumbel_session_create(engine, &third, &error), &error);
    assert_int_equal(gumbel_session_position(third, NULL), 0);
}

static void test_seed_schedule(void **state) {
    (void)state;
    const uint32_t count = generated_count();
    int32_t first[GENERATED], again[GENERATED], other[GENERATED];
    gumbel_finish finish;
    uint64_t seed;
    gumbel_session_set_seed(session, 77);
    assert_int_equal(generate(session, prompt, PROMPT, count, first, &finish), count);
    assert_int_equal(finish, GUMBEL_FINISH_LENGTH);
    assert_ok(gumbel_session_get_seed(session, &seed, &error), &error);
    assert_int_equal(seed, 77 + count); /* prompt tokens do not count */

    gumbel_session_reset(session);
    gumbel_session_set_seed(session, 77);
    generate(session, prompt, PROMPT, count, again, &finish);
    assert_memory_equal(first, again, count * sizeof *first);

    gumbel_session_reset(session);
    gumbel_session_set_seed(session, 78);
    generate(session, prompt, PROMPT, count, other, &finish);
    assert_memory_not_equal(first, other, count * sizeof *first);
}

static void test_seed_wraps_and_is_drawn(void **state) {
    (void)state;
    int32_t ids[4];
    gumbel_finish finish;
    uint64_t seed, drawn;
    gumbel_session *second;
    gumbel_session_set_seed(session, UINT64_MAX);
    generate(session, prompt, 3, 4, ids, &finish);
    assert_ok(gumbel_session_get_seed(session, &seed, &error), &error);
    assert_int_equal(seed, 3);
    assert_ok(gumbel_session_create(engine, &second, &error), &error);
    assert_ok(gumbel_session_get_seed(second, &drawn, &error), &error);
    gumbel_session_destroy(second);
    assert_ok(gumbel_session_create(engine, &second, &error), &error);
    assert_ok(gumbel_session_get_seed(second, &seed, &error), &error);
    assert_int_not_equal(seed, drawn); /* a new session has a seed of its own */
}

/* Generating by hand with steps gives what the loop gives. */
static void test_loop_equals_steps(void **state) {
    (void)state;
    const uint32_t count = generated_count();
    int32_t ids[GENERATED];
    gumbel_finish finish;
    gumbel_session_set_seed(session, 5);
    generate(session, prompt, PROMPT, count, ids, &finish);
    gumbel_session_reset(session);
    gumbel_session_set_seed(session, 5);
    assert_ok(gumbel_session_append(session, prompt, PROMPT - 1, &error), &error);
    gumbel_result result = {.size = sizeof result};
    gumbel_request request = {.size = sizeof request,
                              .session = session,
                              .tokens = &prompt[PROMPT - 1],
                              .token_count = 1,
                              .result = &result,
                              .sampling = &warm};
    for (size_t i = 0; i < count; i++) {
        assert_ok(gumbel_step(engine, &request, 1, &error), &error);
        assert_int_equal(result.token, ids[i]);
        assert_int_equal(result.seed, 5 + i);
        request.tokens = &ids[i];
    }
}

/* A second prompt after a generation runs the token that is still due, as one long prompt would. */
static void test_turns(void **state) {
    (void)state;
    int32_t ids[8], more[8], whole[PROMPT + 8 + 5], again[8];
    gumbel_finish finish;
    const int32_t *history;
    gumbel_session_set_seed(session, 9);
    generate(session, prompt, PROMPT, 8, ids, &finish);
    assert_int_equal(gumbel_session_position(session, NULL), PROMPT + 7);
    generate(session, prompt, 5, 8, more, &finish);
    assert_int_equal(gumbel_session_position(session, &history), PROMPT + 8 + 5 + 7);
    memcpy(whole, prompt, sizeof prompt);
    memcpy(whole + PROMPT, ids, sizeof ids);
    memcpy(whole + PROMPT + 8, prompt, 5 * sizeof *whole);
    assert_memory_equal(history, whole, sizeof whole);
    gumbel_session_reset(session);
    gumbel_session_set_seed(session, 9 + 8); /* the counter goes on across turns */
    generate(session, whole, PROMPT + 8 + 5, 8, again, &finish);
    assert_memory_equal(more, again, sizeof more);
}

static void test_context_end(void **state) {
    (void)state;
    int32_t ids[CONTEXT];
    gumbel_finish finish;
    const size_t before = is_short_run() ? 2 * PROMPT : 0;
    for (size_t i = 0; i < before; i += PROMPT)
        assert_ok(gumbel_session_append(session, prompt, PROMPT, &error), &error);
    size_t made = generate(session, prompt, PROMPT, 0, ids, &finish);
    assert_int_equal(finish, GUMBEL_FINISH_CONTEXT);
    assert_int_equal(made, CONTEXT - before - PROMPT + 1); /* the last one is drawn but cannot be run */
    assert_fails(gumbel_session_append(session, prompt, 1, &error), GUMBEL_ERROR_LIMIT, &error, "128");
    assert_fails(gumbel_generate(session, prompt, 1, NULL, &error), GUMBEL_ERROR_LIMIT, &error, "128");
}

static void test_cancel(void **state) {
    (void)state;
    gumbel_generate_options options = {.size = sizeof options, .ignore_stop = true};
    gumbel_generated next = {.size = sizeof next};
    gumbel_session_cancel(session);
    assert_fails(gumbel_session_append(session, prompt, PROMPT, &error), GUMBEL_ERROR_CANCELLED, &error,
                 "cancelled");
    assert_int_equal(gumbel_session_position(session, NULL), 0);
    assert_ok(gumbel_session_append(session, prompt, PROMPT, &error), &error);
    assert_ok(gumbel_generate(session, prompt, 3, &options, &error), &error);
    assert_ok(gumbel_next(session, &next, &error), &error);
    gumbel_session_cancel(session);
    assert_fails(gumbel_next(session, &next, &error), GUMBEL_ERROR_CANCELLED, &error, "cancelled");
    assert_fails(gumbel_next(session, &next, &error), GUMBEL_ERROR_ARGUMENT, &error, "gumbel_generate");
}

static void test_save_and_load(void **state) {
    (void)state;
    int32_t ids[8], expected[8], loaded[8];
    gumbel_finish finish;
    gumbel_session *second;
    char path[300];
    snprintf(path, sizeof path, "%s.session", random_program_path());
    gumbel_session_set_seed(session, 21);
    generate(session, prompt, PROMPT, 8, ids, &finish);
    assert_ok(gumbel_session_save(session, path, &error), &error);
    generate(session, prompt, 4, 8, expected, &finish);
    assert_ok(gumbel_session_create(engine, &second, &error), &error);
    assert_ok(gumbel_session_load(second, path, &error), &error);
    assert_int_equal(gumbel_session_position(second, NULL), PROMPT + 7);
    generate(second, prompt, 4, 8, loaded, &finish);
    assert_memory_equal(expected, loaded, sizeof loaded);

    /* far behind the ring: the loaded session starts over and gives the same */
    assert_ok(gumbel_session_rewind(second, 6, &error), &error);
    assert_ok(gumbel_session_rewind(session, 6, &error), &error);
    gumbel_session_set_seed(session, 1);
    gumbel_session_set_seed(second, 1);
    generate(session, prompt + 6, 20, 8, expected, &finish);
    generate(second, prompt + 6, 20, 8, loaded, &finish);
    assert_memory_equal(expected, loaded, sizeof loaded);
    unlink(path);
}

static char *read_all(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *data = malloc(*size);
    assert_int_equal(fread(data, 1, *size, file), *size);
    fclose(file);
    return data;
}

static void write_all(const char *path, const char *data, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    fclose(file);
}

/* A file whose checksum is right, and that holds back more tokens than it has. */
static void assert_bad_held(const char *path, char *data, size_t size) {
    enum { HELD_AT = 64, SUM = sizeof(uint64_t) };
    const uint32_t held = 21;
    memcpy(data + HELD_AT, &held, sizeof held);
    const uint64_t checksum = XXH3_64bits(data, size - SUM);
    memcpy(data + size - SUM, &checksum, SUM);
    write_all(path, data, size);
    assert_fails(gumbel_session_load(session, path, &error), GUMBEL_ERROR_FORMAT, &error,
                 "21 of 20 tokens are to be run");
}

static void test_bad_session_files(void **state) {
    (void)state;
    char path[300];
    size_t size;
    snprintf(path, sizeof path, "%s.session", random_program_path());
    assert_ok(gumbel_session_append(session, prompt, 20, &error), &error);
    assert_ok(gumbel_session_save(session, path, &error), &error);
    char *data = read_all(path, &size);
    for (size_t length = 0; length < size; length += 1 + length / 7) {
        write_all(path, data, length);
        assert_fails(gumbel_session_load(session, path, &error), GUMBEL_ERROR_FORMAT, &error, path);
    }
    for (size_t i = 0; i < size; i += 1 + size / 200) {
        data[i] ^= 0x10;
        write_all(path, data, size);
        assert_fails(gumbel_session_load(session, path, &error), GUMBEL_ERROR_FORMAT, &error, path);
        data[i] ^= 0x10;
    }
    assert_bad_held(path, data, size);
    assert_int_equal(gumbel_session_position(session, NULL), 20); /* refused files change nothing */
    unlink(path);
    assert_fails(gumbel_session_load(session, path, &error), GUMBEL_ERROR_IO, &error, "No such file");
    assert_fails(gumbel_session_save(session, "/nonexistent/folder/file", &error), GUMBEL_ERROR_IO, &error,
                 "/nonexistent");
    assert_fails(gumbel_session_save(session, random_program_path(), &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "is one of the files that are read");
    free(data);
}

static void test_wrong_calls(void **state) {
    (void)state;
    gumbel_generated next = {.size = sizeof next};
    gumbel_sampling hot = {.size = sizeof hot, .temperature = 1e5f, .top_p = 1};
    gumbel_generate_options options = {.size = sizeof options, .sampling = &hot};
    assert_fails(gumbel_next(session, &next, &error), GUMBEL_ERROR_ARGUMENT, &error, "gumbel_generate");
    assert_fails(gumbel_generate(session, NULL, 0, NULL, &error), GUMBEL_ERROR_ARGUMENT, &error, "no tokens");
    assert_fails(gumbel_generate(session, prompt, 3, &options, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "temperature 100000");
    assert_fails(gumbel_session_rewind(session, 1, &error), GUMBEL_ERROR_ARGUMENT, &error, "rewind");
    int32_t outside = VOCAB;
    assert_fails(gumbel_session_append(session, &outside, 1, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "token 160");
}

#define each(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* Greedily behind a token. */
static gumbel_result step_behind(gumbel_session *which, int32_t token) {
    const gumbel_sampling greedy = {.size = sizeof greedy, .temperature = 0, .top_p = 1};
    gumbel_result result = {.size = sizeof result};
    const gumbel_request request = {.size = sizeof request,
                                    .session = which,
                                    .tokens = &token,
                                    .token_count = 1,
                                    .sampling = &greedy,
                                    .wants_logprob = true,
                                    .result = &result};
    assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    return result;
}

/* Going back farther than rings have slack runs more of the answer again than they have room for at once. */
static void test_answer_run_again(void **state) {
    (void)state;
    enum { BACK_TO = 15 };
    int32_t ids[GENERATED], again[GENERATED];
    gumbel_session *other;
    gumbel_finish finish;
    assert_ok(gumbel_session_create(engine, &other, &error), &error);
    gumbel_session_set_seed(session, 5);
    gumbel_session_set_seed(other, 5);
    assert_int_equal(generate(session, prompt, PROMPT, GENERATED, ids, &finish), GENERATED);
    assert_int_equal(generate(other, prompt, PROMPT, BACK_TO + 1, again, &finish), BACK_TO + 1);
    assert_memory_equal(again, ids, (BACK_TO + 1) * sizeof *ids);
    assert_ok(gumbel_session_rewind(session, PROMPT + BACK_TO, &error), &error);
    const gumbel_result found = step_behind(session, ids[BACK_TO]),
                        expected = step_behind(other, ids[BACK_TO]);
    assert_int_equal(found.token, expected.token);
    assert_memory_equal(&found.logprob, &expected.logprob, sizeof found.logprob);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        each(test_slots),
        each(test_seed_schedule),
        each(test_seed_wraps_and_is_drawn),
        each(test_loop_equals_steps),
        each(test_turns),
        each(test_answer_run_again),
        each(test_context_end),
        each(test_cancel),
        each(test_save_and_load),
        each(test_bad_session_files),
        each(test_wrong_calls),
    };
    return cmocka_run_group_tests(tests, NULL, close_program);
}
