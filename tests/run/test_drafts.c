/* SPDX-License-Identifier: Apache-2.0
 *
 * Drafts change no bit: the rows of a step with a draft are compared with the steps of one token that a
 * session alone takes, and its state with the state that these leave, byte by byte. Drafts are right, wrong
 * at once or wrong somewhere, by chance, and so are their lengths, what else is in the step, and what happens
 * to the sessions between steps.
 */
#include "base/byte_buffer.h"
#include "run/handles.h"
#include "support/backend.h"
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

enum { PROMPT = 11, MOST_TOKENS = 90, MOST_SEQUENCES = 16, MOST_DRAFT = 8, TOP = 4, STOP = 1 };

static gumbel_error error;

/* Whose short runs have all kinds of programs and steps; those of emulated devices would take minutes. */
static bool is_cpu(void) {
    return strcmp(GUMBEL_TEST_BACKEND, "cpu") == 0;
}

/* ---- By chance ----------------------------------------------------------------------------------------- */

static uint32_t chance_state;

/* Below limit. */
static uint32_t chance(uint32_t limit) {
    chance_state = chance_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)chance_state * limit) >> 32);
}

/* ---- Settings ------------------------------------------------------------------------------------------ */

static const gumbel_bias biases[] = {{7, -INFINITY}, {11, 1.5f}, {11, 0.5f}, {40, -2}};
static const gumbel_sampling settings[] = {
    {.size = sizeof(gumbel_sampling), .top_p = 1},
    {.size = sizeof(gumbel_sampling), .temperature = 0.7f, .top_p = 1},
    {.size = sizeof(gumbel_sampling), .temperature = 1.5f, .top_p = 1},
    {.size = sizeof(gumbel_sampling), .top_p = 1, .presence_penalty = 1.5f, .repetition_penalty = 1.3f},
    {.size = sizeof(gumbel_sampling),
     .temperature = 1.5f,
     .top_k = 40,
     .top_p = 0.95f,
     .min_p = 0.01f,
     .repetition_penalty = 1.3f,
     .frequency_penalty = 0.6f,
     .presence_penalty = 0.4f,
     .penalized = GUMBEL_PENALIZED_ALL,
     .bias = biases,
     .bias_count = 4},
    {.size = sizeof(gumbel_sampling),
     .temperature = 0.7f,
     .top_p = 0.9f,
     .frequency_penalty = 0.3f,
     .penalized = GUMBEL_PENALIZED_GENERATED},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

/* ---- The reference: one session, one token a step ------------------------------------------------------ */

/* What a step gave, and the session behind it. */
typedef struct drawn {
    int32_t token;
    gumbel_finish finish;
    uint64_t seed;
    float logprob;
    int32_t top_tokens[TOP];
    float top_logprobs[TOP];
    float *logits;
    char *state;
    size_t state_bytes;
} drawn;

typedef struct sequence {
    const gumbel_sampling *sampling;
    int32_t prompt[PROMPT];
    drawn expected[MOST_TOKENS];
    gumbel_session *session;     /* of the engine with drafts */
    uint32_t prompt_done, count; /* tokens drawn */
} sequence;

typedef struct bench {
    gumbel_program *program;
    gumbel_program_info info;
    uint32_t tokens, sequence_count; /* to draw; that are used */
    sequence sequences[MOST_SEQUENCES];
} bench;

static gumbel_engine *make_engine(const gumbel_program *program, int slots, int threads, uint32_t drafts) {
    gumbel_engine *engine;
    gumbel_engine_options options = {.size = sizeof options,
                                     .backend = GUMBEL_TEST_BACKEND,
                                     .slots = slots,
                                     .threads = threads,
                                     .snapshots = true,
                                     .draft_tokens = drafts};
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    return engine;
}

static gumbel_session *make_session(gumbel_engine *engine, uint64_t seed) {
    gumbel_session *session;
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    gumbel_session_set_seed(session, seed);
    return session;
}

static gumbel_status append_bytes(void *buffer, const void *data, uint64_t size, gumbel_error *told) {
    (void)told;
    gb_buffer_append(buffer, data, (size_t)size);
    return GUMBEL_OK;
}

/* What the session's file has of it, without a file; free the bytes. */
static char *saved_bytes(const gumbel_session *session, size_t *size) {
    gb_backend *backend = session->engine->backend;
    gb_byte_buffer buffer = {0};
    const uint64_t numbers[] = {session->position, session->generated_from, session->seed,
                                session->seed_counter, (uint64_t)session->drawn_token};
    append_bytes(&buffer, numbers, sizeof numbers, NULL);
    append_bytes(&buffer, session->tokens, session->position * sizeof *session->tokens, NULL);
    append_bytes(&buffer, session->generated, session->position, NULL);
    assert_ok(backend->functions->save_slot(backend, session->slot, session->position, GB_SAVED_ALL,
                                            append_bytes, &buffer, &error),
              &error);
    assert_false(buffer.failed);
    char *bytes = malloc(buffer.size);
    assert_non_null(bytes);
    memcpy(bytes, buffer.data, buffer.size);
    *size = buffer.size;
    gb_buffer_free(&buffer);
    return bytes;
}

static gumbel_request request_of(gumbel_session *session, const sequence *s, const int32_t *tokens,
                                 size_t count, gumbel_result *result) {
    return (gumbel_request){.size = sizeof(gumbel_request),
                            .session = session,
                            .tokens = tokens,
                            .token_count = count,
                            .result = result,
                            .sampling = s->sampling,
                            .wants_logprob = true,
                            .top_logprobs = TOP};
}

static void compute_expected(const bench *b, gumbel_engine *engine, sequence *s, uint64_t seed) {
    gumbel_session *session = make_session(engine, seed);
    assert_ok(gumbel_session_append(session, s->prompt, PROMPT - 1, &error), &error);
    int32_t token = s->prompt[PROMPT - 1];
    for (uint32_t i = 0; i < b->tokens; i++) {
        drawn *to = &s->expected[i];
        gumbel_result result = {.size = sizeof result};
        const gumbel_request request = request_of(session, s, &token, 1, &result);
        assert_ok(gumbel_step(engine, &request, 1, &error), &error);
        *to = (drawn){
            .token = result.token, .finish = result.finish, .seed = result.seed, .logprob = result.logprob};
        memcpy(to->top_tokens, result.top_tokens, sizeof to->top_tokens);
        memcpy(to->top_logprobs, result.top_token_logprob, sizeof to->top_logprobs);
        if (result.logits) {
            to->logits = malloc(b->info.vocab_size * sizeof(float));
            memcpy(to->logits, result.logits, b->info.vocab_size * sizeof(float));
        }
        to->state = saved_bytes(session, &to->state_bytes);
        token = result.token;
    }
    gumbel_session_destroy(session);
}

static void set_up_bench(bench *b, gumbel_program *program, uint32_t tokens, uint32_t sequences) {
    *b = (bench){
        .program = program, .info.size = sizeof b->info, .tokens = tokens, .sequence_count = sequences};
    assert_ok(gumbel_program_get_info(program, &b->info, &error), &error);
    gumbel_engine *engine = make_engine(program, 1, 1, 0);
    for (uint32_t i = 0; i < sequences; i++) {
        b->sequences[i].sampling = &settings[i % SETTINGS];
        random_tokens(i, b->info.vocab_size, b->sequences[i].prompt, PROMPT);
        compute_expected(b, engine, &b->sequences[i], 1000 * i);
    }
    gumbel_engine_destroy(engine);
}

static void tear_down_bench(bench *b) {
    for (uint32_t i = 0; i < MOST_SEQUENCES; i++)
        for (uint32_t t = 0; t < b->tokens; t++) {
            free(b->sequences[i].expected[t].logits);
            free(b->sequences[i].expected[t].state);
        }
    gumbel_program_close(b->program);
}

/* ---- Steps with drafts --------------------------------------------------------------------------------- */

/* The engine's backend, with steps that count their tokens. */
static const gb_backend_functions *uncounted;
static gb_backend_functions counted;
static uint64_t tokens_run;

static gumbel_status count_step(gb_backend *backend, gb_batch *batch, gumbel_error *told) {
    tokens_run += batch->token_count;
    return uncounted->step(backend, batch, told);
}

static void count_tokens(gumbel_engine *engine) {
    uncounted = engine->backend->functions;
    counted = *uncounted;
    counted.step = count_step;
    engine->backend->functions = &counted;
}

/* A sequence's part of a step. */
typedef struct part {
    sequence *s;
    int32_t token, draft[MOST_DRAFT];
    uint32_t expected_accepted; /* of a draft */
    bool draws;
    gumbel_result results[MOST_DRAFT + 1];
} part;

/* Guesses by chance: right as far as they go, wrong at one place, or wrong from some place on. */
static uint32_t guess(const bench *b, part *p, uint32_t most) {
    const sequence *s = p->s;
    const uint32_t left = b->tokens - s->count - 1; /* known successors of the row's first token */
    most = left < most ? left : most;
    const uint32_t count = chance(most + 1), wrong_at = chance(2 * count + 1);
    const bool goes_on = chance(2) == 0;
    for (uint32_t i = 0; i < count; i++) {
        p->draft[i] = s->expected[s->count + i].token;
        if (i == wrong_at || (i > wrong_at && goes_on))
            p->draft[i] = (p->draft[i] + 1 + (int32_t)chance(9)) % (int32_t)b->info.vocab_size;
    }
    p->expected_accepted = 0;
    for (uint32_t i = 0; i < count; i++, p->expected_accepted++)
        if (p->draft[i] != s->expected[s->count + i].token ||
            s->expected[s->count + i].finish == GUMBEL_FINISH_STOP)
            break;
    return count;
}

static gumbel_request fill_part(const bench *b, part *p, uint32_t most_draft) {
    sequence *s = p->s;
    p->draws = true;
    for (uint32_t r = 0; r <= MOST_DRAFT; r++)
        p->results[r] = (gumbel_result){.size = sizeof *p->results, .token = -7};
    if (s->prompt_done < PROMPT) {
        const uint32_t count = 1 + chance(PROMPT - s->prompt_done < 4 ? PROMPT - s->prompt_done : 4);
        p->draws = s->prompt_done + count == PROMPT;
        const gumbel_request request =
            request_of(s->session, s, s->prompt + s->prompt_done, count, p->draws ? p->results : NULL);
        s->prompt_done += count;
        return request;
    }
    p->token = s->expected[s->count - 1].token;
    gumbel_request request = request_of(s->session, s, &p->token, 1, p->results);
    request.draft_count = guess(b, p, most_draft);
    request.draft = p->draft;
    return request;
}

static void assert_same(const bench *b, const gumbel_result *result, const drawn *expected) {
    assert_int_equal(result->token, expected->token);
    assert_int_equal(result->finish, expected->finish);
    assert_true(result->seed == expected->seed);
    assert_memory_equal(&result->logprob, &expected->logprob, sizeof result->logprob);
    assert_memory_equal(result->top_tokens, expected->top_tokens, sizeof expected->top_tokens);
    assert_memory_equal(result->top_token_logprob, expected->top_logprobs, sizeof expected->top_logprobs);
    if (expected->logits && result->logits)
        assert_memory_equal(result->logits, expected->logits, b->info.vocab_size * sizeof(float));
}

static void check_part(const bench *b, part *p, const gumbel_request *request) {
    sequence *s = p->s;
    if (!p->draws)
        return;
    if (request->draft_count == 0)
        p->expected_accepted = 0;
    assert_int_equal(p->results[0].accepted, p->expected_accepted);
    for (uint32_t r = 0; r <= p->results[0].accepted; r++)
        assert_same(b, &p->results[r], &s->expected[s->count + r]);
    for (uint32_t r = p->results[0].accepted + 1; r <= request->draft_count; r++)
        assert_int_equal(p->results[r].token, -7);
    s->count += p->results[0].accepted + 1;
    assert_int_equal(gumbel_session_position(s->session, NULL), PROMPT + s->count - 1);
}

static void assert_same_state(const sequence *s) {
    size_t size;
    char *bytes = saved_bytes(s->session, &size);
    const drawn *last = &s->expected[s->count - 1];
    assert_int_equal(size, last->state_bytes);
    assert_memory_equal(bytes, last->state, size);
    free(bytes);
}

/* Something that a caller may do between steps, and that changes nothing. */
static void disturb(gumbel_engine *engine, sequence *s) {
    const char *path = temporary_path("disturbed.session");
    gumbel_session *fork;
    switch (chance(12)) {
    case 0:
        assert_same_state(s);
        break;
    case 1:
        assert_ok(gumbel_session_snapshot(s->session, &error), &error);
        break;
    case 2:
        assert_ok(gumbel_session_save(s->session, path, &error), &error);
        assert_ok(gumbel_session_load(s->session, path, &error), &error);
        break;
    case 3:
        assert_ok(gumbel_session_fork(s->session, &fork, &error), &error);
        gumbel_session_destroy(s->session);
        s->session = fork;
        break;
    case 4: /* a step that is refused leaves no trace */
        assert_int_equal(gumbel_step(engine,
                                     &(gumbel_request){.size = sizeof(gumbel_request),
                                                       .session = s->session,
                                                       .tokens = &(int32_t){-5},
                                                       .token_count = 1},
                                     1, &error),
                         GUMBEL_ERROR_ARGUMENT);
        break;
    default:
        break;
    }
}

/* One step of all sequences that are not done, some by chance left out. False: all are done. */
static bool run_together(const bench *b, gumbel_engine *engine, sequence *const *sequences, uint32_t count,
                         uint32_t most_draft) {
    static part parts[MOST_SEQUENCES];
    gumbel_request requests[MOST_SEQUENCES] = {{0}};
    uint64_t tokens = 0, held = 0; /* behind the step, of prompts */
    size_t n = 0;
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        if (sequences[i]->count == b->tokens)
            continue;
        any = true;
        if (chance(5) == 0)
            continue;
        parts[n].s = sequences[i];
        requests[n] = fill_part(b, &parts[n], most_draft);
        tokens += requests[n].token_count + requests[n].draft_count + sequences[i]->session->held;
        n++;
    }
    tokens_run = 0;
    assert_ok(gumbel_step(engine, requests, n, &error), &error);
    for (size_t i = 0; i < n; i++)
        held += parts[i].s->session->held;
    assert_true(tokens_run + held == tokens); /* nothing was run again */
    for (size_t i = 0; i < n; i++)
        check_part(b, &parts[i], &requests[i]);
    for (size_t i = 0; i < n; i++)
        if (parts[i].s->count > 0)
            disturb(engine, parts[i].s);
    return any;
}

/* The first count sequences on an engine with drafts, to their ends. */
static void compare(bench *b, uint32_t count, int threads, uint32_t most_draft) {
    sequence *sequences[MOST_SEQUENCES];
    gumbel_engine *engine = make_engine(b->program, (int)count + 1, threads, most_draft); /* one to fork */
    count_tokens(engine);
    for (uint32_t i = 0; i < count; i++) {
        sequences[i] = &b->sequences[count == 1 ? chance(b->sequence_count) : i];
        sequences[i]->session = make_session(engine, 1000 * (uint64_t)(sequences[i] - b->sequences));
        sequences[i]->prompt_done = sequences[i]->count = 0;
    }
    while (run_together(b, engine, sequences, count, most_draft))
        continue;
    for (uint32_t i = 0; i < count; i++)
        assert_same_state(sequences[i]);
    gumbel_engine_destroy(engine);
}

static void compare_all(gumbel_program *program, uint32_t tokens) {
    static const uint32_t counts[] = {1, 1, 4, MOST_SEQUENCES}, drafts[] = {3, MOST_DRAFT, 1};
    enum { DRAFTS = sizeof drafts / sizeof *drafts };
    static bench b;
    chance_state = 1;
    set_up_bench(&b, program, tokens, (uint32_t)shortened(MOST_SEQUENCES, is_cpu() ? SETTINGS : 3));
    const uint32_t most = b.info.prefill_chunk - 1;
    for (int c = 0; c < shortened(sizeof counts / sizeof *counts, is_cpu() ? 4 : 1); c++)
        for (int d = 0; d < shortened(DRAFTS, 1); d++) {
            const uint32_t longest = drafts[is_short_run() ? c % DRAFTS : d];
            const bool are_all = counts[c] > b.sequence_count || (is_short_run() && !is_cpu());
            compare(&b, are_all ? b.sequence_count : counts[c], 1 + (c + d) % 2,
                    longest < most ? longest : most);
        }
    tear_down_bench(&b);
}

/* ---- Tests --------------------------------------------------------------------------------------------- */

/* *state: a configuration, and after a colon a recipe, or a kind of caches behind two. */
static void test_random_weights(void **state) {
    char config[64];
    snprintf(config, sizeof config, "%s", (const char *)*state);
    char *recipe = strchr(config, ':');
    if (recipe)
        *recipe++ = 0;
    gumbel_export_options options = {.quantize = recipe, .max_top_logprobs = TOP};
    if (recipe && *recipe == ':') {
        options.quantize = NULL;
        options.cache = recipe + 1;
    }
    compare_all(export_random_program(config, options), (uint32_t)shortened(48, is_cpu() ? 32 : 48));
}

static void test_bundled_model(void **state) {
    char checkpoint[512];
    gumbel_program *program;
    snprintf(checkpoint, sizeof checkpoint, "%s/%s", test_models_folder, (const char *)*state);
    const char *path = temporary_path("bundled.gumbel");
    gumbel_export_options options = {.size = sizeof options, .quantize = "int4", .max_context = 128};
    assert_ok(gumbel_export(checkpoint, path, &options, &error), &error);
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    compare_all(program, (uint32_t)shortened(40, 8));
}

#define of(test, state) cmocka_unit_test_prestate(test, (void *)(uintptr_t)(state))

int main(int argument_count, char **arguments) {
    read_test_arguments(argument_count, arguments);
    const struct CMUnitTest tests[] = {
        of(test_random_weights, "qwen.json"),
        of(test_random_weights, "small_bf16.json"),
        of(test_random_weights, "qwen_heads.json"),
        of(test_random_weights, "small.json"),
        of(test_random_weights, "small_groups.json:int4-affine"),
        of(test_random_weights, "qwen_groups.json:int4"),
        of(test_bundled_model, "gemma4-tiny"),
        of(test_bundled_model, "qwen3_5-moe-tiny"),
        of(test_random_weights, "small_heads.json::q8"), /* caches that only the CPU reads */
        of(test_random_weights, "qwen_wide.json::q4"),
    };
    enum { OF_CACHES = 2 };
    const int count = (int)(sizeof tests / sizeof *tests) - (is_cpu() ? 0 : OF_CACHES);
    int failed = 0;
    for (int i = 0; i < shortened(count, is_cpu() ? count : 3); i++)
        failed += cmocka_run_group_tests(((const struct CMUnitTest[]){tests[i]}), NULL, NULL);
    return failed;
}
