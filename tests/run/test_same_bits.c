/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU's promise: logits depend on program, prompt and position alone. Every way of running one prompt is
 * compared with memcmp against the plainest one: one thread, one session, portable kernels.
 */
#include "support/programs/random_program.h"
#include "support/test_arguments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 160, PROMPT = 60, CHUNK_LIMIT = 8 };
/* No common divisor with the kinds of programs: a short run has each of them, and each test. */
enum { SHORT_STEP = 3 };

typedef struct bench {
    gumbel_program *program;
    int32_t prompt[PROMPT];
    float expected[PROMPT][VOCAB]; /* logits after each position */
} bench;

static gumbel_engine *make_engine(const gumbel_program *program, int threads, int slots, const char *isa) {
    gumbel_engine *engine;
    gumbel_error error;
    gumbel_engine_options options = {
        .size = sizeof options, .threads = threads, .slots = slots, .cpu_isa = isa, .snapshots = true};
    options.step_tokens = (uint32_t)(slots * CHUNK_LIMIT);
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    return engine;
}

static gumbel_session *make_session(gumbel_engine *engine) {
    gumbel_session *session;
    gumbel_error error;
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    return session;
}

/* Runs tokens [from, to) so that the last one's logits come out, in pieces of at most `piece`. */
static void run_to(gumbel_session *session, gumbel_engine *engine, const int32_t *tokens, size_t from,
                   size_t to, size_t piece, float *logits) {
    gumbel_error error;
    gumbel_result result = {.size = sizeof result};
    gumbel_request request = {.size = sizeof request, .session = session};
    while (from < to) {
        request.tokens = tokens + from;
        request.token_count = to - from < piece ? to - from : piece;
        from += request.token_count;
        request.result = from == to ? &result : NULL;
        assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    }
    memcpy(logits, result.logits, VOCAB * sizeof *logits);
}

static void compute_expected(bench *b) {
    gumbel_engine *engine = make_engine(b->program, 1, 1, "portable");
    gumbel_session *session = make_session(engine);
    for (size_t i = 0; i < PROMPT; i++)
        run_to(session, engine, b->prompt, i, i + 1, 1, b->expected[i]);
    gumbel_engine_destroy(engine);
}

static int set_up_with(void **state, const char *config, const gumbel_export_options *options) {
    bench *b = calloc(1, sizeof *b);
    b->program = export_random_program(config, *options);
    random_tokens(1, VOCAB, b->prompt, PROMPT);
    compute_expected(b);
    *state = b;
    return 0;
}
static int set_up(void **state, const char *config, const char *recipe) {
    return set_up_with(state, config, &(gumbel_export_options){.quantize = recipe});
}
static int set_up_f32(void **state) {
    return set_up(state, "small.json", NULL);
}
static int set_up_bf16(void **state) {
    return set_up(state, "small_bf16.json", NULL);
}
static int set_up_float_inputs(void **state) {
    return set_up_with(state, "small_bf16.json", &(gumbel_export_options){.activations = "none"});
}
static int set_up_biases(void **state) {
    return set_up(state, "biases.json", NULL);
}
static int set_up_qwen(void **state) {
    return set_up(state, "qwen.json", NULL);
}
static int set_up_gemma3(void **state) {
    return set_up(state, "gemma3.json", NULL);
}
static int set_up_smollm3(void **state) {
    return set_up(state, "smollm3.json", NULL);
}
static int set_up_granite(void **state) {
    return set_up(state, "granite.json", NULL);
}
static int set_up_phi3(void **state) {
    return set_up(state, "phi3.json", NULL);
}
static int set_up_gpt_oss(void **state) {
    return set_up(state, "gpt_oss.json", NULL);
}
static int set_up_ministral3(void **state) {
    return set_up(state, "ministral3.json", NULL);
}
static int set_up_olmo3(void **state) {
    return set_up(state, "olmo3.json", NULL);
}
static int set_up_nemotron(void **state) {
    return set_up(state, "nemotron.json", NULL);
}
static int set_up_granite_hybrid(void **state) {
    return set_up(state, "granite_hybrid.json", NULL);
}
static int set_up_lfm2(void **state) {
    return set_up(state, "lfm2.json", NULL);
}
static int set_up_int4(void **state) {
    return set_up(state, "small_groups.json", "int4");
}
static int set_up_int8(void **state) {
    return set_up(state, "small_groups.json", "int8");
}
static int set_up_affine(void **state) {
    return set_up(state, "small_groups.json", "int4-affine");
}
static int set_up_qwen_affine(void **state) {
    return set_up(state, "qwen_groups.json", "int4-affine");
}
static int set_up_qwen_int4(void **state) {
    return set_up(state, "qwen_groups.json", "int4");
}
static int set_up_q8(void **state) {
    return set_up_with(state, "small_heads.json", &(gumbel_export_options){.cache = "q8"});
}
static int set_up_q4(void **state) {
    return set_up_with(state, "small_heads.json", &(gumbel_export_options){.cache = "q4-all"});
}
static int set_up_qwen_q4(void **state) {
    return set_up_with(state, "qwen_wide.json", &(gumbel_export_options){.quantize = "int4", .cache = "q4"});
}
static int tear_down(void **state) {
    bench *b = *state;
    gumbel_program_close(b->program);
    free(b);
    return 0;
}

static void test_pieces_and_threads(void **state) {
    bench *b = *state;
    static const size_t pieces[] = {1, 3, 7, 8};
    float logits[VOCAB];
    for (int threads = 1; threads <= 3; threads++) {
        gumbel_engine *engine = make_engine(b->program, threads, 1, NULL);
        gumbel_session *session = make_session(engine);
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
            gumbel_session_reset(session);
            run_to(session, engine, b->prompt, 0, PROMPT, pieces[i], logits);
            assert_memory_equal(logits, b->expected[PROMPT - 1], sizeof logits);
        }
        gumbel_engine_destroy(engine);
    }
}

static void test_append_at_once(void **state) {
    bench *b = *state;
    gumbel_error error;
    float logits[VOCAB];
    gumbel_engine *engines[2] = {make_engine(b->program, 2, 1, NULL)}; /* and one of the largest steps */
    assert_ok(gumbel_engine_create(b->program, NULL, &engines[1], &error), &error);
    for (int i = 0; i < 2; i++) {
        gumbel_session *session = make_session(engines[i]);
        assert_ok(gumbel_session_append(session, b->prompt, PROMPT - 1, &error), &error);
        run_to(session, engines[i], b->prompt, PROMPT - 1, PROMPT, 1, logits);
        assert_memory_equal(logits, b->expected[PROMPT - 1], sizeof logits);
        gumbel_engine_destroy(engines[i]);
    }
}

static void test_instruction_sets(void **state) {
    bench *b = *state;
    static const char *const sets[] = {"portable",   "avx2", "avxvnni", "avx512",  "avx512vnni",
                                       "avx512bf16", "neon", "neondot", "neoni8mm"};
    float logits[VOCAB];
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        gumbel_engine *engine;
        gumbel_error error;
        gumbel_engine_options options = {.size = sizeof options, .threads = 2, .cpu_isa = sets[i]};
        if (gumbel_engine_create(b->program, &options, &engine, &error)) {
            print_message("%s: %s\n", sets[i], error.message);
            continue;
        }
        run_to(make_session(engine), engine, b->prompt, 0, PROMPT, 8, logits);
        assert_memory_equal(logits, b->expected[PROMPT - 1], sizeof logits);
        gumbel_engine_destroy(engine);
    }
}

/* Three sessions in one batch, each at its own place in its own prompt, with pieces of different lengths. */
static void test_neighbours(void **state) {
    bench *b = *state;
    gumbel_error error;
    gumbel_engine *engine = make_engine(b->program, 2, 3, NULL);
    int32_t other[2][PROMPT];
    const int32_t *prompts[3] = {other[0], b->prompt, other[1]};
    static const size_t piece[3] = {1, 5, 8};
    size_t done[3] = {0, 0, 0};
    gumbel_request requests[3];
    random_tokens(2, VOCAB, other[0], PROMPT);
    random_tokens(3, VOCAB, other[1], PROMPT);
    memset(requests, 0, sizeof requests);
    for (int i = 0; i < 3; i++)
        requests[i] = (gumbel_request){.size = sizeof *requests, .session = make_session(engine)};
    while (done[1] < PROMPT) {
        size_t count = 0;
        gumbel_request step[3];
        gumbel_result result[3];
        int who[3];
        for (int i = 0; i < 3; i++) {
            if (done[i] == PROMPT)
                continue; /* this one has left the batch */
            step[count] = requests[i];
            step[count].tokens = prompts[i] + done[i];
            step[count].token_count = PROMPT - done[i] < piece[i] ? PROMPT - done[i] : piece[i];
            result[count] = (gumbel_result){.size = sizeof *result};
            step[count].result = i != 2 ? &result[count] : NULL;
            who[count++] = i;
        }
        assert_ok(gumbel_step(engine, step, count, &error), &error);
        for (size_t i = 0; i < count; i++) {
            done[who[i]] += step[i].token_count;
            if (who[i] == 1)
                assert_memory_equal(result[i].logits, b->expected[done[1] - 1], VOCAB * sizeof(float));
        }
    }
    gumbel_engine_destroy(engine);
}

/* Rewinding within the ring's slack, far behind it, and behind a snapshot; then other tokens, then the same.
 */
static void test_rewind(void **state) {
    bench *b = *state;
    gumbel_error error;
    float logits[VOCAB];
    int32_t other[PROMPT];
    static const uint32_t targets[] = {PROMPT - 3, PROMPT - 9, 30, 12, 5, 0};
    gumbel_engine *engine = make_engine(b->program, 2, 1, NULL);
    gumbel_session *session = make_session(engine);
    random_tokens(9, VOCAB, other, PROMPT);
    for (int with_snapshot = 0; with_snapshot < 2; with_snapshot++) {
        for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
            gumbel_session_reset(session);
            run_to(session, engine, b->prompt, 0, 28, 8, logits);
            if (with_snapshot)
                assert_ok(gumbel_session_snapshot(session, &error), &error);
            run_to(session, engine, b->prompt, 28, PROMPT, 8, logits);
            assert_ok(gumbel_session_rewind(session, targets[i], &error), &error);
            assert_int_equal(gumbel_session_position(session, NULL), targets[i]);
            run_to(session, engine, other, targets[i], PROMPT, 5, logits);
            assert_ok(gumbel_session_rewind(session, targets[i], &error), &error);
            run_to(session, engine, b->prompt, targets[i], PROMPT, 8, logits);
            assert_memory_equal(logits, b->expected[PROMPT - 1], sizeof logits);
        }
    }
    gumbel_engine_destroy(engine);
}

static void test_fork_and_unfused(void **state) {
    bench *b = *state;
    gumbel_error error;
    float logits[VOCAB];
    gumbel_engine *engine = make_engine(b->program, 2, 2, NULL);
    gumbel_session *session = make_session(engine), *fork;
    run_to(session, engine, b->prompt, 0, 33, 8, logits);
    assert_ok(gumbel_session_fork(session, &fork, &error), &error);
    gumbel_session_reset(session);
    run_to(fork, engine, b->prompt, 33, PROMPT, 8, logits);
    assert_memory_equal(logits, b->expected[PROMPT - 1], sizeof logits);
    gumbel_engine_destroy(engine);

    gumbel_engine_options options = {.size = sizeof options, .unfused = true};
    assert_ok(gumbel_engine_create(b->program, &options, &engine, &error), &error);
    run_to(make_session(engine), engine, b->prompt, 0, PROMPT, 8, logits);
    assert_memory_equal(logits, b->expected[PROMPT - 1], sizeof logits);
    gumbel_engine_destroy(engine);
}

/* With float32 weights; with bfloat16 ones, and inputs rounded like them or not; with biases; with delta nets
 * and experts; with two rotary embeddings; with layers that lack one; with scaled branches; with heads of
 * which a part turns; with sinks and experts that have biases; with 8-bit activations and bfloat16 caches and
 * weights of 4 and 8 bits, whose sums are exact or have one order; with caches of codes. */
#define each(test)                                                                                           \
    cmocka_unit_test_setup_teardown(test, set_up_f32, tear_down),                                            \
        cmocka_unit_test_setup_teardown(test, set_up_bf16, tear_down),                                       \
        cmocka_unit_test_setup_teardown(test, set_up_float_inputs, tear_down),                               \
        cmocka_unit_test_setup_teardown(test, set_up_biases, tear_down),                                     \
        cmocka_unit_test_setup_teardown(test, set_up_qwen, tear_down),                                       \
        cmocka_unit_test_setup_teardown(test, set_up_gemma3, tear_down),                                     \
        cmocka_unit_test_setup_teardown(test, set_up_smollm3, tear_down),                                    \
        cmocka_unit_test_setup_teardown(test, set_up_granite, tear_down),                                    \
        cmocka_unit_test_setup_teardown(test, set_up_phi3, tear_down),                                       \
        cmocka_unit_test_setup_teardown(test, set_up_gpt_oss, tear_down),                                    \
        cmocka_unit_test_setup_teardown(test, set_up_ministral3, tear_down),                                 \
        cmocka_unit_test_setup_teardown(test, set_up_olmo3, tear_down),                                      \
        cmocka_unit_test_setup_teardown(test, set_up_nemotron, tear_down),                                   \
        cmocka_unit_test_setup_teardown(test, set_up_granite_hybrid, tear_down),                             \
        cmocka_unit_test_setup_teardown(test, set_up_lfm2, tear_down),                                       \
        cmocka_unit_test_setup_teardown(test, set_up_int4, tear_down),                                       \
        cmocka_unit_test_setup_teardown(test, set_up_int8, tear_down),                                       \
        cmocka_unit_test_setup_teardown(test, set_up_affine, tear_down),                                     \
        cmocka_unit_test_setup_teardown(test, set_up_qwen_affine, tear_down),                                \
        cmocka_unit_test_setup_teardown(test, set_up_qwen_int4, tear_down),                                  \
        cmocka_unit_test_setup_teardown(test, set_up_q8, tear_down),                                         \
        cmocka_unit_test_setup_teardown(test, set_up_q4, tear_down),                                         \
        cmocka_unit_test_setup_teardown(test, set_up_qwen_q4, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        each(test_pieces_and_threads), each(test_append_at_once), each(test_instruction_sets),
        each(test_neighbours),         each(test_rewind),         each(test_fork_and_unfused),
    };
    enum { ALL = sizeof tests / sizeof *tests, TESTS = 6 };
    _Static_assert(ALL / TESTS % SHORT_STEP != 0, "a short run has each kind of programs");
    struct CMUnitTest some[ALL / SHORT_STEP];
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        some[i] = tests[i * SHORT_STEP];
    return is_short_run() ? cmocka_run_group_tests(some, NULL, NULL)
                          : cmocka_run_group_tests(tests, NULL, NULL);
}
