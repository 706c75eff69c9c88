/* SPDX-License-Identifier: Apache-2.0
 *
 * How a prompt was cut changes no bit: sessions that get the same prompts in pieces by chance, with other
 * things done to them in between, give the log-probabilities and states of one that got each prompt at once.
 */
#include "base/byte_buffer.h"
#include "base/status.h"
#include "run/handles.h"
#include "support/backend.h"
#include "support/programs/random_program.h"
#include "support/temporary.h"
#include "support/test_arguments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Two prompts, each with an answer, that end amid blocks of 64. */
enum { VOCAB = 160, PROMPTS = 2, ANSWER = 3, CONTEXT = 128 };
static uint32_t lengths[PROMPTS];

static gumbel_error error;
static const gumbel_sampling greedy = {.size = sizeof greedy, .top_p = 1};
static int32_t tokens[PROMPTS][CONTEXT];

/* What a session has said and is. */
typedef struct outcome {
    int32_t drawn[PROMPTS * ANSWER];
    float logprobs[PROMPTS * ANSWER];
    gb_byte_buffer state;
} outcome;

static uint32_t chance_state;

/* Below limit. */
static uint32_t chance(uint32_t limit) {
    chance_state = chance_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)chance_state * limit) >> 32);
}

static gumbel_engine *make_engine(const gumbel_program *program, uint32_t chunk) {
    gumbel_engine *engine;
    const gumbel_engine_options options = {.size = sizeof options,
                                           .slots = 3,
                                           .threads = 2,
                                           .snapshots = true,
                                           .backend = GUMBEL_TEST_BACKEND,
                                           .prefill_chunk = chunk};
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    return engine;
}

static gumbel_session *make_session(gumbel_engine *engine) {
    gumbel_session *session;
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    return session;
}

static gumbel_request request_of(gumbel_session *session, const int32_t *ids, size_t count,
                                 gumbel_result *result) {
    return (gumbel_request){.size = sizeof(gumbel_request),
                            .session = session,
                            .tokens = ids,
                            .token_count = count,
                            .result = result,
                            .sampling = &greedy,
                            .wants_logprob = true};
}

/* Runs the tokens and then those that are drawn, greedily: the last one stays to be run. */
static void answer(gumbel_session *session, const int32_t *ids, size_t count, uint32_t first, outcome *to) {
    int32_t token;
    for (uint32_t i = first; i < first + ANSWER; i++) {
        gumbel_result result = {.size = sizeof result};
        const gumbel_request request = request_of(session, ids, count, &result);
        assert_ok(gb_session_run(session, ids, count, &request, &error), &error);
        to->drawn[i] = token = result.token;
        to->logprobs[i] = result.logprob;
        ids = &token;
        count = 1;
    }
}

static gumbel_status append_bytes(void *buffer, const void *data, uint64_t size, gumbel_error *told) {
    (void)told;
    gb_buffer_append(buffer, data, (size_t)size);
    return GUMBEL_OK;
}

static void save_state(const gumbel_session *session, outcome *to) {
    gb_backend *backend = session->engine->backend;
    assert_int_equal(session->held, 0);
    assert_ok(backend->functions->save_slot(backend, session->slot, session->position, GB_SAVED_ALL,
                                            append_bytes, &to->state, &error),
              &error);
}

/* ---- In between ---------------------------------------------------------------------------------------- */

static const gb_backend_functions *unfailing;
static gb_backend_functions failing;

/* Once: what brings the session back is to succeed. */
static gumbel_status run_and_fail(gb_backend *backend, gb_batch *batch, gumbel_error *told) {
    backend->functions = unfailing;
    (void)unfailing->step(backend, batch, told);
    return gb_fail(told, GUMBEL_ERROR_BACKEND, "device lost");
}

/* A step that fails behind what it has written. */
static void fail_step(gumbel_session *session) {
    gb_backend *backend = session->engine->backend;
    gumbel_result result = {.size = sizeof result};
    const gumbel_request request = request_of(session, tokens[0], 1, &result);
    unfailing = backend->functions;
    failing = *unfailing;
    failing.step = run_and_fail;
    backend->functions = &failing;
    assert_int_equal(gumbel_step(session->engine, &request, 1, &error), GUMBEL_ERROR_BACKEND);
}

/* Other tokens, which are forgotten again. */
static void go_back(gumbel_session *session) {
    const uint32_t position = session->position;
    assert_ok(gumbel_session_append(session, tokens[1], 1 + chance(8), &error), &error);
    assert_ok(gumbel_session_rewind(session, position, &error), &error);
}

static gumbel_session *replace(gumbel_session *session) {
    gumbel_session *fork;
    assert_ok(gumbel_session_fork(session, &fork, &error), &error);
    assert_int_equal(fork->position, session->position);
    gumbel_session_destroy(session);
    return fork;
}

static void save_and_load(gumbel_session *session) {
    const char *path = temporary_path("pieces.session");
    assert_ok(gumbel_session_save(session, path, &error), &error);
    gumbel_session_reset(session);
    assert_ok(gumbel_session_load(session, path, &error), &error);
}

/* What a caller may do within a prompt, and that changes nothing. */
static void disturb(gumbel_session **session) {
    switch (chance(12)) {
    case 0:
        assert_ok(gumbel_session_snapshot(*session, &error), &error);
        break;
    case 1:
        save_and_load(*session);
        break;
    case 2:
        *session = replace(*session);
        break;
    case 3:
        go_back(*session);
        break;
    case 4:
        fail_step(*session);
        break;
    default:
        break;
    }
}

/* Draws a token behind what was run, takes another one in its place and goes back. */
static void leave_answer(gumbel_session *session, const int32_t *ids, uint32_t count, int32_t next) {
    const int32_t stray = (next + 1) % VOCAB;
    gumbel_result result = {.size = sizeof result};
    const gumbel_request request = request_of(session, ids, count, &result);
    assert_ok(gumbel_step(session->engine, &request, 1, &error), &error);
    const uint32_t position = session->position;
    if (chance(2) == 0)
        assert_ok(gumbel_session_snapshot(session, &error), &error);
    assert_ok(gumbel_session_append(session, &stray, 1, &error), &error);
    assert_ok(gumbel_session_rewind(session, position, &error), &error);
}

/* Runs a piece, behind which that token comes, in one of the ways that there are. */
static void run_piece(gumbel_session *session, gumbel_session *other, const int32_t *ids, uint32_t count,
                      int32_t next) {
    const uint32_t way = chance(6);
    const int32_t token = (int32_t)chance(VOCAB);
    const gumbel_request requests[] = {request_of(session, ids, count, NULL),
                                       request_of(other, &token, 1, NULL)};
    if (way == 0)
        assert_ok(gumbel_session_append(session, ids, count, &error), &error);
    else if (way == 1)
        leave_answer(session, ids, count, next);
    else
        assert_ok(gumbel_step(session->engine, requests, way < 4 ? 1 : 2, &error), &error);
    if (other->position > CONTEXT / 2)
        gumbel_session_reset(other);
}

/* The first `count` of more tokens. */
static void run_in_pieces(gumbel_session **session, gumbel_session *other, const int32_t *ids,
                          uint32_t count) {
    while (count > 0) {
        const uint32_t room = (*session)->engine->prefill_chunk - (*session)->held,
                       most = room < 40 ? room : 40;
        const uint32_t piece = 1 + chance(count < most ? count : most);
        run_piece(*session, other, ids, piece, ids[piece]);
        ids += piece;
        count -= piece;
        disturb(session);
    }
}

/* ---- Comparing ----------------------------------------------------------------------------------------- */

static void run_plainly(gumbel_engine *engine, outcome *to) {
    gumbel_session *session = make_session(engine);
    for (uint32_t p = 0; p < PROMPTS; p++)
        answer(session, tokens[p], lengths[p], p * ANSWER, to);
    save_state(session, to);
    gumbel_session_destroy(session);
}

static void run_by_chance(gumbel_engine *engine, outcome *to) {
    gumbel_session *session = make_session(engine), *other = make_session(engine);
    for (uint32_t p = 0; p < PROMPTS; p++) {
        const uint32_t before = chance(lengths[p]);
        run_in_pieces(&session, other, tokens[p], before);
        answer(session, tokens[p] + before, lengths[p] - before, p * ANSWER, to);
    }
    save_state(session, to);
    gumbel_session_destroy(session);
    gumbel_session_destroy(other);
}

static void assert_same(const outcome *found, const outcome *expected) {
    assert_memory_equal(found->drawn, expected->drawn, sizeof found->drawn);
    assert_memory_equal(found->logprobs, expected->logprobs, sizeof found->logprobs);
    assert_int_equal(found->state.size, expected->state.size);
    assert_memory_equal(found->state.data, expected->state.data, found->state.size);
}

static void compare(const char *config, uint32_t chunk, uint32_t first, uint32_t second, int cases) {
    gumbel_program *program =
        export_random_program(config, (gumbel_export_options){.max_top_logprobs = 1, .max_context = CONTEXT});
    gumbel_engine *engine = make_engine(program, chunk);
    outcome expected = {.state.size = 0};
    lengths[0] = first;
    lengths[1] = second;
    for (uint32_t p = 0; p < PROMPTS; p++)
        random_tokens(p, VOCAB, tokens[p], lengths[p]);
    run_plainly(engine, &expected);
    for (int i = 0; i < cases; i++) {
        outcome found = {.state.size = 0};
        chance_state = (uint32_t)i;
        run_by_chance(engine, &found);
        assert_same(&found, &expected);
        gb_buffer_free(&found.state);
    }
    gb_buffer_free(&expected.state);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

static void of_a_delta_net(void **state) {
    (void)state;
    compare("qwen_heads.json", CONTEXT, 40, 70, shortened(60, 2));
    compare("qwen_heads.json", CONTEXT, 70, 44, shortened(60, 2));
}

static void of_a_delta_net_in_short_chunks(void **state) {
    (void)state;
    compare("qwen_heads.json", 24, 70, 44, shortened(60, 2));
}

static void of_caches_and_rings(void **state) {
    (void)state;
    compare("small.json", 0, 70, 44, shortened(60, 2));
}

int main(int argument_count, char **arguments) {
    read_test_arguments(argument_count, arguments);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_delta_net),
        cmocka_unit_test(of_a_delta_net_in_short_chunks),
        cmocka_unit_test(of_caches_and_rings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
