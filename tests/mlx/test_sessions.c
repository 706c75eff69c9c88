/* SPDX-License-Identifier: Apache-2.0
 *
 * The same conversation on both backends: whatever interrupts a generation, whose next step MLX has begun
 * already, the tokens that follow are the CPU's. A session that one saves the other goes on with. Inputs are
 * not rounded, which would make a last bit a larger one.
 */
#include "support/programs/random_program.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 160, PROMPT = 21, SIDES = 2, LOGGED = 512, STOP_TOKEN = 1 };

static gumbel_error error;
static gumbel_program *program;
static int32_t prompt[PROMPT];

/* An engine, its sessions, and all tokens that it has drawn. */
typedef struct side {
    gumbel_engine *engine;
    gumbel_session *session, *other;
    int32_t tokens[LOGGED];
    size_t count;
} side;

static side sides[SIDES];

/* A program, and what its caches hold. */
typedef struct choice {
    const char *config, *cache;
} choice;

static void open_sides(const choice *chosen) {
    static const char *const backends[SIDES] = {"cpu", "mlx"};
    const gumbel_export_options exported = {.activations = "none", .cache = chosen->cache};
    program = export_random_program(chosen->config, exported);
    random_tokens(8, VOCAB, prompt, PROMPT);
    memset(sides, 0, sizeof sides);
    for (size_t i = 0; i < SIDES; i++) {
        gumbel_engine_options options = {
            .size = sizeof options, .slots = 3, .snapshots = true, .backend = backends[i]};
        assert_ok(gumbel_engine_create(program, &options, &sides[i].engine, &error), &error);
        assert_ok(gumbel_session_create(sides[i].engine, &sides[i].session, &error), &error);
        assert_ok(gumbel_session_create(sides[i].engine, &sides[i].other, &error), &error);
        gumbel_session_set_seed(sides[i].session, 31);
        gumbel_session_set_seed(sides[i].other, 32);
    }
}

static void close_sides(void) {
    assert_true(sides[0].count > 0);
    assert_int_equal(sides[0].count, sides[1].count);
    for (size_t n = 0; n < sides[0].count; n++)
        if (sides[0].tokens[n] != sides[1].tokens[n])
            fail_msg("token %zu is %d, on the cpu %d", n, sides[1].tokens[n], sides[0].tokens[n]);
    for (size_t i = 0; i < SIDES; i++)
        gumbel_engine_destroy(sides[i].engine);
    gumbel_program_close(program);
}

static const gumbel_sampling warm = {.size = sizeof warm, .temperature = 1.2f, .top_k = 40, .top_p = 0.95f};
static const gumbel_sampling penalized = {.size = sizeof penalized,
                                          .temperature = 0.9f,
                                          .top_p = 1,
                                          .min_p = 0.02f,
                                          .repetition_penalty = 1.2f,
                                          .frequency_penalty = 0.3f};

static void begin(gumbel_session *session, size_t from, size_t count, const gumbel_sampling *sampling,
                  bool snapshot) {
    gumbel_generate_options options = {
        .size = sizeof options, .sampling = sampling, .ignore_stop = true, .snapshot = snapshot};
    assert_ok(gumbel_generate(session, prompt + from, count, &options, &error), &error);
}

static void draw(side *s, gumbel_session *session, size_t count) {
    for (size_t i = 0; i < count; i++) {
        gumbel_generated next = {.size = sizeof next};
        assert_ok(gumbel_next(session, &next, &error), &error);
        assert_true(s->count < LOGGED);
        s->tokens[s->count++] = next.token;
    }
}

/* Two sessions in turn, and every way of leaving a generation in its middle. */
static void interrupt(side *s) {
    gumbel_session *copy;
    begin(s->session, 0, 12, &warm, true);
    draw(s, s->session, 5);
    begin(s->other, 3, 9, &penalized, false);
    for (int turn = 0; turn < 6; turn++) {
        draw(s, s->session, 1);
        draw(s, s->other, 2);
    }
    assert_ok(gumbel_session_fork(s->session, &copy, &error), &error);
    gumbel_session_set_seed(copy, 5);
    begin(copy, 2, 1, &warm, false);
    draw(s, copy, 4);
    draw(s, s->session, 3);
    assert_ok(gumbel_session_append(s->session, prompt, 3, &error), &error);
    begin(s->session, 0, 2, &warm, false);
    draw(s, s->session, 4);
    assert_ok(gumbel_session_rewind(s->session, gumbel_session_position(s->session, NULL) - 3, &error),
              &error);
    begin(s->session, 4, 1, &penalized, false);
    draw(s, s->session, 4);
    assert_ok(gumbel_session_rewind(s->session, 11, &error), &error);
    begin(s->session, 11, 10, &warm, false);
    draw(s, s->session, 6);
    gumbel_session_reset(s->other);
    begin(s->other, 0, PROMPT, &penalized, false);
    draw(s, s->other, 20);
    draw(s, s->session, 2);
}

static void test_interrupted(void **state) {
    open_sides(*state);
    for (size_t i = 0; i < SIDES; i++)
        interrupt(&sides[i]);
    close_sides();
}

/* Draws up to a stop token: what the backend has begun beyond it must not show. */
static void draw_to_stop(side *s, const gumbel_sampling *sampling, size_t from, size_t count) {
    gumbel_generate_options options = {.size = sizeof options, .sampling = sampling};
    gumbel_generated next = {.size = sizeof next};
    uint64_t seed;
    assert_ok(gumbel_session_get_seed(s->session, &seed, &error), &error);
    uint32_t position = gumbel_session_position(s->session, NULL);
    size_t drawn = s->count;
    assert_ok(gumbel_generate(s->session, prompt + from, count, &options, &error), &error);
    while (!next.finish) {
        assert_ok(gumbel_next(s->session, &next, &error), &error);
        assert_true(s->count < LOGGED);
        s->tokens[s->count++] = next.token;
    }
    drawn = s->count - drawn;
    assert_int_equal(next.finish, GUMBEL_FINISH_STOP);
    assert_in_range(drawn, 2, 60);
    uint64_t seed_after;
    assert_ok(gumbel_session_get_seed(s->session, &seed_after, &error), &error);
    assert_int_equal(seed_after, seed + drawn);
    /* the stop token has not been run, nor anything after it */
    assert_in_range(gumbel_session_position(s->session, NULL), position + count + drawn - 1,
                    position + count + drawn);
    assert_fails(gumbel_next(s->session, &next, &error), GUMBEL_ERROR_ARGUMENT, &error, "gumbel_generate");
}

static void stop_and_cancel(side *s) {
    static const gumbel_bias likely_stop = {.token = STOP_TOKEN, .value = 2.5f};
    gumbel_sampling stopping = warm;
    stopping.bias = &likely_stop;
    stopping.bias_count = 1;
    draw_to_stop(s, &stopping, 0, 8);
    begin(s->session, 8, 3, &warm, false); /* the session goes on behind the stop token */
    draw(s, s->session, 5);
    draw_to_stop(s, &stopping, 2, 2);

    gumbel_generated next = {.size = sizeof next};
    begin(s->session, 11, 2, &warm, false);
    draw(s, s->session, 4);
    gumbel_session_cancel(s->session);
    assert_fails(gumbel_next(s->session, &next, &error), GUMBEL_ERROR_CANCELLED, &error, "cancel");
    begin(s->session, 13, 2, &warm, false);
    draw(s, s->session, 4);
    s->tokens[s->count++] = (int32_t)gumbel_session_position(s->session, NULL);
}

static void test_stopped(void **state) {
    open_sides(*state);
    for (size_t i = 0; i < SIDES; i++)
        stop_and_cancel(&sides[i]);
    close_sides();
}

/* Saved in the middle of a generation, by each side for the other one. */
static void test_saved(void **state) {
    open_sides(*state);
    const char *paths[SIDES] = {temporary_path("cpu.session"), temporary_path("mlx.session")};
    for (size_t i = 0; i < SIDES; i++) {
        begin(sides[i].session, 0, PROMPT, &warm, false);
        draw(&sides[i], sides[i].session, 9);
        assert_ok(gumbel_session_save(sides[i].session, paths[i], &error), &error);
    }
    for (size_t i = 0; i < SIDES; i++) {
        assert_ok(gumbel_session_load(sides[i].other, paths[1 - i], &error), &error);
        begin(sides[i].other, 0, 5, &warm, false);
        draw(&sides[i], sides[i].other, 12);
        begin(sides[i].session, 0, 5, &warm, false);
        draw(&sides[i], sides[i].session, 12);
        assert_memory_equal(sides[i].tokens + 9, sides[i].tokens + 21, 12 * sizeof *sides[i].tokens);
    }
    close_sides();
}

static void keep_notice(void *user, gumbel_log_level level, const char *line) {
    (void)level;
    snprintf(user, 256, "%s", line);
}

/* A step of one row and one of several have different bits there. */
static void test_drafts_are_left_out(void **state) {
    gumbel_engine *engine;
    char notice[256] = "";
    gumbel_engine_options options = {
        .size = sizeof options, .backend = "mlx", .draft_tokens = 4, .log = keep_notice, .log_user = notice};
    gumbel_engine_info info = {.size = sizeof info};
    program = open_random_program(((const choice *)*state)->config, false);
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    assert_ok(gumbel_engine_get_info(engine, &info, &error), &error);
    assert_int_equal(info.draft_tokens, 0);
    assert_string_equal(notice, "no drafts: mlx gives a row other bits in a step of several");
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

/* A last bit that differs can make the next code of a cache, and so, of many, another token: those of
 * qwen_wide.json are few. */
static choice small = {"small.json", NULL}, qwen = {"qwen.json", NULL}, qwen_q8 = {"qwen_wide.json", "q8"},
              qwen_q4 = {"qwen_wide.json", "q4"};

#define ON(test, choice)                                                                                     \
    { #test " " #choice, test, NULL, NULL, &(choice) }

int main(void) {
    const struct CMUnitTest tests[] = {ON(test_interrupted, small),   ON(test_interrupted, qwen),
                                       ON(test_interrupted, qwen_q8), ON(test_interrupted, qwen_q4),
                                       ON(test_stopped, small),       ON(test_stopped, qwen),
                                       ON(test_saved, small),         ON(test_saved, qwen),
                                       ON(test_saved, qwen_q4),       ON(test_drafts_are_left_out, small)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
