/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs on the CUDA backend: tokens and logits beside the CPU's, and the promise of same bits: a token
 * does not depend on how its prompt was cut, on the batch or on the neighbours. Sessions move between
 * backends.
 */
#include "support/assertions.h"
#include "support/paths.h"
#include "support/programs/random_program.h"
#include "support/temporary.h"
#include "support/test_arguments.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 160, PROMPT = 44, ANSWER = 10, MOST_SLOTS = 3, PIECE = 8 };

typedef struct program_case {
    const char *config, *recipe, *activations; /* recipe: a name, or a file of the tests' data */
    double tolerance;                          /* of logits beside the CPU's, of the largest one */
} program_case;

static const program_case programs[] = {
    {"small.json", NULL, NULL, 2e-4},
    {"qwen.json", NULL, "none", 2e-4},
    /* Matrices that are large enough for a prompt's kernel of their own. */
    {"qwen_large.json", NULL, "none", 2e-4},
    /* A full layer whose heads' size is one of the tensor cores', over a float32 cache. */
    {"small_heads.json", NULL, "none", 2e-4},
    {"gpt_oss.json", NULL, "none", 2e-4},
    {"nemotron.json", NULL, "none", 2e-4},
    /* Matrices and experts whose last tiles are filled with zeros; products have the CPU's bits. */
    {"gpt_oss_wide.json", "int4", NULL, 2e-4},
    /* Queries in 4 bits beside keys and values in 8, experts of both. */
    {"gpt_oss_wide.json", "sensitive", NULL, 2e-4},
    {"small_groups.json", "int4-affine", "none", 0.03},
    {"qwen_groups.json", "int4-affine", "none", 0.03},
    /* Norms and a router are one launch, experts two. Prompts' inputs are not in 8 bits here.
     */
    {"qwen_long_rows.json", "int4-affine", "int8", 0.06},
    /* The shared expert's gate is one row of 8 bits. */
    {"qwen_long_rows.json", "run/mlx_4bit.json", "int8", 0.06},
};

static const double MOST_FOR_SAME_TOKENS = 2e-4; /* tolerance of logits */

static gumbel_program *program;
static const program_case *of_program;
static int32_t prompt[PROMPT];
static size_t prompt_count;
static int answer_count;

static gumbel_engine *new_engine(const char *backend, int slots, bool unfused) {
    gumbel_engine *engine;
    gumbel_error error;
    gumbel_engine_options options = {.size = sizeof options,
                                     .backend = backend,
                                     .slots = slots,
                                     .step_tokens = (uint32_t)slots * PIECE,
                                     .unfused = unfused,
                                     .threads = 1,
                                     .snapshots = true};
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    return engine;
}

static gumbel_session *new_session(gumbel_engine *engine) {
    gumbel_session *session;
    gumbel_error error;
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    return session;
}

static gumbel_sampling settings_of(int kind) {
    gumbel_sampling sampling = {.size = sizeof sampling, .temperature = 0, .top_p = 1};
    if (kind > 0)
        sampling.temperature = 0.9f;
    if (kind == 2) {
        sampling.top_k = 20;
        sampling.top_p = 0.9f;
        sampling.min_p = 0.01f;
        sampling.repetition_penalty = 1.2f;
        sampling.presence_penalty = 0.3f;
    }
    return sampling;
}

/* The prompt in pieces, then an answer; logits are those of the first token. */
static void answer(gumbel_engine *engine, gumbel_session *session, int kind, size_t piece, int32_t *tokens,
                   float *logits) {
    gumbel_error error;
    const gumbel_sampling sampling = settings_of(kind);
    gumbel_session_set_seed(session, 77);
    gumbel_result result = {.size = sizeof result};
    gumbel_request request = {.size = sizeof request, .session = session, .sampling = &sampling};
    for (size_t at = 0; at < prompt_count; at += request.token_count) {
        request.tokens = prompt + at;
        request.token_count = prompt_count - at < piece ? prompt_count - at : piece;
        request.result = at + request.token_count == prompt_count ? &result : NULL;
        assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    }
    memcpy(logits, result.logits, VOCAB * sizeof *logits);
    for (int i = 0; i < answer_count; i++) {
        tokens[i] = result.token;
        request.tokens = &tokens[i];
        request.token_count = 1;
        assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    }
}

static void answers_are_near_the_cpus(void **unused) {
    (void)unused;
    gumbel_engine *cpu = new_engine("cpu", 1, false), *cuda = new_engine("cuda", 1, false);
    for (int kind = 0; kind < 3; kind++) {
        float expected[VOCAB], found[VOCAB];
        int32_t expected_tokens[ANSWER] = {0}, tokens[ANSWER] = {0};
        gumbel_session *on_cpu = new_session(cpu), *on_cuda = new_session(cuda);
        answer(cpu, on_cpu, kind, PIECE, expected_tokens, expected);
        answer(cuda, on_cuda, kind, PIECE, tokens, found);
        double largest = 0, difference = 0;
        for (int i = 0; i < VOCAB; i++) {
            largest = fmax(largest, fabs((double)expected[i]));
            difference = fmax(difference, fabs((double)expected[i] - (double)found[i]));
        }
        print_message("%s: difference %.2g of the largest logit\n", of_program->config, difference / largest);
        assert_true(difference <= of_program->tolerance * largest);
        if (of_program->tolerance <= MOST_FOR_SAME_TOKENS)
            assert_memory_equal(tokens, expected_tokens, sizeof tokens);
        gumbel_session_destroy(on_cpu);
        gumbel_session_destroy(on_cuda);
    }
    gumbel_engine_destroy(cpu);
    gumbel_engine_destroy(cuda);
}

static void pieces_change_no_bits(void **unused) {
    (void)unused;
    gumbel_engine *engine = new_engine("cuda", MOST_SLOTS, false);
    float expected[VOCAB], found[VOCAB];
    int32_t expected_tokens[ANSWER] = {0}, tokens[ANSWER] = {0};
    static const size_t pieces[] = {PIECE, 3, 1};
    const int tried = shortened(3, 2);
    gumbel_session *session = new_session(engine);
    answer(engine, session, 2, 5, expected_tokens, expected);
    gumbel_session_destroy(session);
    for (int i = 0; i < tried; i++) {
        session = new_session(engine);
        answer(engine, session, 2, pieces[i], tokens, found);
        assert_memory_equal(found, expected, sizeof found);
        assert_memory_equal(tokens, expected_tokens, sizeof tokens);
        gumbel_session_destroy(session);
    }
    gumbel_engine_destroy(engine);
}

/* Steps of three sessions that are at different places of their prompts, with other settings each. */
static void neighbours_change_no_bits(void **unused) {
    (void)unused;
    gumbel_engine *engine = new_engine("cuda", MOST_SLOTS, false);
    gumbel_error error;
    float expected[MOST_SLOTS][VOCAB], found[MOST_SLOTS][VOCAB];
    int32_t alone[MOST_SLOTS][ANSWER] = {0}, together[MOST_SLOTS][ANSWER] = {0};
    gumbel_sampling sampling[MOST_SLOTS];
    gumbel_request requests[MOST_SLOTS] = {0};
    gumbel_result results[MOST_SLOTS];
    gumbel_session *sessions[MOST_SLOTS];
    for (int s = 0; s < MOST_SLOTS; s++) {
        sessions[s] = new_session(engine);
        answer(engine, sessions[s], s, PIECE, alone[s], expected[s]);
        gumbel_session_reset(sessions[s]);
        gumbel_session_set_seed(sessions[s], 77);
        sampling[s] = settings_of(s);
        results[s] = (gumbel_result){.size = sizeof results[s]};
        requests[s] = (gumbel_request){.size = sizeof requests[s],
                                       .session = sessions[s],
                                       .sampling = &sampling[s],
                                       .result = &results[s]};
        assert_ok(gumbel_session_append(sessions[s], prompt, prompt_count - 3 - (size_t)s, &error), &error);
        requests[s].tokens = prompt + prompt_count - 3 - s;
        requests[s].token_count = (size_t)(3 + s);
    }
    for (int i = 0; i < answer_count; i++) {
        assert_ok(gumbel_step(engine, requests, MOST_SLOTS, &error), &error);
        for (int s = 0; s < MOST_SLOTS; s++) {
            if (i == 0)
                memcpy(found[s], results[s].logits, sizeof found[s]);
            together[s][i] = results[s].token;
            requests[s].tokens = &together[s][i];
            requests[s].token_count = 1;
        }
    }
    assert_memory_equal(found, expected, sizeof found);
    assert_memory_equal(together, alone, sizeof together);
    gumbel_engine_destroy(engine);
}

/* A session answers while another one's prompt is run; then both answer. */
static void prompts_beside_answers_change_no_bits(void **unused) {
    (void)unused;
    gumbel_engine *engine = new_engine("cuda", 2, false);
    gumbel_error error;
    const gumbel_sampling sampling = settings_of(2);
    float expected[VOCAB], found[VOCAB];
    int32_t alone[ANSWER] = {0}, together[2][ANSWER] = {0};
    gumbel_request requests[2] = {0};
    gumbel_result results[2];
    gumbel_session *sessions[2] = {new_session(engine), new_session(engine)};
    answer(engine, sessions[0], 2, PIECE, alone, expected);
    gumbel_session_reset(sessions[0]);
    for (int s = 0; s < 2; s++) {
        gumbel_session_set_seed(sessions[s], 77);
        results[s] = (gumbel_result){.size = sizeof results[s]};
        requests[s] = (gumbel_request){.size = sizeof requests[s],
                                       .session = sessions[s],
                                       .sampling = &sampling,
                                       .result = &results[s],
                                       .tokens = prompt + prompt_count - 4,
                                       .token_count = 4};
        assert_ok(gumbel_session_append(sessions[s], prompt, prompt_count - 4, &error), &error);
    }
    assert_ok(gumbel_step(engine, &requests[1], 1, &error), &error);
    for (int i = 0; i < answer_count; i++) {
        together[1][i] = results[1].token;
        requests[1].tokens = &together[1][i];
        requests[1].token_count = 1;
        assert_ok(gumbel_step(engine, requests, 2, &error), &error);
        if (i == 0)
            memcpy(found, results[0].logits, sizeof found);
        together[0][i] = results[0].token;
        requests[0].tokens = &together[0][i];
        requests[0].token_count = 1;
    }
    assert_memory_equal(found, expected, sizeof found);
    for (int s = 0; s < 2; s++)
        assert_memory_equal(together[s], alone, sizeof alone);
    gumbel_engine_destroy(engine);
}

static void unfused_gives_the_same(void **unused) {
    (void)unused;
    float expected[VOCAB], logits[VOCAB];
    int32_t expected_tokens[ANSWER] = {0}, tokens[ANSWER] = {0};
    gumbel_engine *fused = new_engine("cuda", 1, false), *plain = new_engine("cuda", 1, true);
    answer(fused, new_session(fused), 2, PIECE, expected_tokens, expected);
    answer(plain, new_session(plain), 2, PIECE, tokens, logits);
    assert_memory_equal(logits, expected, sizeof logits);
    assert_memory_equal(tokens, expected_tokens, sizeof tokens);
    gumbel_engine_destroy(fused);
    gumbel_engine_destroy(plain);
}

/* Saved on one backend, loaded by the other and saved again: the same file. */
static void sessions_move_between_backends(void **unused) {
    (void)unused;
    gumbel_error error;
    gumbel_engine *cpu = new_engine("cpu", 2, false), *cuda = new_engine("cuda", 2, false);
    const char *paths[] = {temporary_path("a.session"), temporary_path("b.session")};
    char bytes[2][1 << 17];
    size_t sizes[2];
    gumbel_session *first = new_session(cuda), *second = new_session(cpu);
    assert_ok(gumbel_session_append(first, prompt, prompt_count, &error), &error);
    assert_ok(gumbel_session_save(first, paths[0], &error), &error);
    assert_ok(gumbel_session_load(second, paths[0], &error), &error);
    assert_ok(gumbel_session_save(second, paths[1], &error), &error);
    assert_ok(gumbel_session_load(first, paths[1], &error), &error);
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(paths[i], "rb");
        assert_non_null(file);
        sizes[i] = fread(bytes[i], 1, sizeof bytes[i], file);
        assert_true(sizes[i] < sizeof bytes[i]);
        fclose(file);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(bytes[0], bytes[1], sizes[0]);
    gumbel_engine_destroy(cpu);
    gumbel_engine_destroy(cuda);
}

/* Copies of a slot and snapshots of it go on as the slot does. */
static void forks_and_snapshots_go_on(void **unused) {
    (void)unused;
    gumbel_error error;
    gumbel_engine *engine = new_engine("cuda", 2, false);
    gumbel_session *session = new_session(engine), *copy;
    float expected[VOCAB];
    gumbel_result result = {.size = sizeof result};
    gumbel_request request = {
        .size = sizeof request, .tokens = prompt + prompt_count - 1, .token_count = 1, .result = &result};
    assert_ok(gumbel_session_append(session, prompt, prompt_count - 1, &error), &error);
    assert_ok(gumbel_session_snapshot(session, &error), &error);
    assert_ok(gumbel_session_fork(session, &copy, &error), &error);
    request.session = session;
    assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    memcpy(expected, result.logits, sizeof expected);
    request.session = copy;
    assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    assert_memory_equal(result.logits, expected, sizeof expected);
    assert_ok(gumbel_session_append(session, prompt, 5, &error), &error);
    assert_ok(gumbel_session_rewind(session, (uint32_t)prompt_count - 1, &error), &error);
    request.session = session;
    assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    assert_memory_equal(result.logits, expected, sizeof expected);
    gumbel_engine_destroy(engine);
}

static int open_program(void **state) {
    of_program = *state;
    random_tokens(1, VOCAB, prompt, PROMPT);
    const char *recipe = of_program->recipe;
    if (recipe && strchr(recipe, '/'))
        recipe = test_data(recipe);
    program = export_random_program(
        of_program->config,
        (gumbel_export_options){.quantize = recipe, .activations = of_program->activations});
    return 0;
}

static int close_program(void **unused) {
    (void)unused;
    gumbel_program_close(program);
    return 0;
}

int main(int argument_count, char **arguments) {
    int failed = 0;
    read_test_arguments(argument_count, arguments);
    prompt_count = (size_t)shortened(PROMPT, 20);
    answer_count = shortened(ANSWER, 4);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
#define TEST(name)                                                                                           \
    { #name, name, open_program, close_program, (void *)(uintptr_t)&programs[i] }
        const struct CMUnitTest tests[] = {
            TEST(answers_are_near_the_cpus),
            TEST(pieces_change_no_bits),
            TEST(neighbours_change_no_bits),
            TEST(unfused_gives_the_same),
            TEST(sessions_move_between_backends),
            TEST(forks_and_snapshots_go_on),
            TEST(prompts_beside_answers_change_no_bits),
        };
#undef TEST
        print_message("%s %s\n", programs[i].config, programs[i].recipe ? programs[i].recipe : "");
        failed += cmocka_run_group_tests(tests, NULL, NULL);
    }
    return failed;
}
