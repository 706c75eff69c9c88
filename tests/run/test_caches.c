/* SPDX-License-Identifier: Apache-2.0
 *
 * What caches hold, chosen when a program is opened: its sizes, its name, its sessions.
 */
#include "support/programs/random_program.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 160, PROMPT = 40 };

static gumbel_error error;

static gumbel_program_info info_of(const gumbel_program *program) {
    gumbel_program_info info = {.size = sizeof info};
    assert_ok(gumbel_program_get_info(program, &info, &error), &error);
    return info;
}

static double attended_bytes(const gumbel_program *program) {
    const gumbel_step_shape shape = {.size = sizeof shape, .sequences = 1, .tokens = 1, .position = 99};
    gumbel_step_costs costs = {.size = sizeof costs};
    assert_ok(gumbel_program_get_costs(program, &shape, &costs, &error), &error);
    return costs.state_bytes;
}

/* Heads of 128 and 256: 34 bytes for 32 codes of 8 bits, 18 for 32 of 4 bits. The counts of tokens stay. */
static void sizes_and_names(void **state) {
    (void)state;
    gumbel_program *program = open_random_program("small_heads.json", false);
    const gumbel_program_info plain = info_of(program);
    const uint64_t history = 128 * 4, caches = plain.session_state_bytes - history;
    const double attended = attended_bytes(program);
    assert_ok(gumbel_program_set_cache(program, "float32", &error), &error);
    assert_memory_equal(info_of(program).id, plain.id, sizeof plain.id); /* as it was exported */
    assert_ok(gumbel_program_set_cache(program, "q8", &error), &error);
    const gumbel_program_info q8 = info_of(program);
    assert_int_equal(q8.session_state_bytes, caches / 128 * 34 + history);
    assert_true(attended_bytes(program) == attended / 128 * 34);
    assert_memory_not_equal(q8.id, plain.id, sizeof plain.id);
    assert_ok(gumbel_program_set_cache(program, "int8", &error), &error);
    assert_memory_equal(info_of(program).id, q8.id, sizeof q8.id);
    assert_ok(gumbel_program_set_cache(program, "q4-all", &error), &error);
    assert_int_equal(info_of(program).session_state_bytes, caches / 128 * 18 + history);
    assert_ok(gumbel_program_set_cache(program, "q4", &error), &error);
    assert_in_range(info_of(program).session_state_bytes, caches / 128 * 18 + history + 1,
                    q8.session_state_bytes - 1);
    assert_ok(gumbel_program_set_cache(program, "bf16", &error), &error);
    assert_int_equal(info_of(program).session_state_bytes, caches / 2 + history);
    gumbel_program_close(program);
}

static bool conversation_of(const gumbel_program *program, uint32_t context, size_t index, size_t size,
                            gumbel_conversation_memory *memory) {
    const gumbel_engine_options options = {.size = sizeof options, .max_context = context};
    gumbel_engine *engine;
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    *memory = (gumbel_conversation_memory){.size = size};
    const bool is_there = gumbel_engine_conversation_memory(engine, index, memory);
    gumbel_engine_destroy(engine);
    return is_there;
}

/* Lengths go as far as the engine's context, and bytes do not depend on it. */
static void conversations_of_engines(void **state) {
    (void)state;
    gumbel_program *program = open_random_program("qwen_long.json", false);
    const uint64_t most = info_of(program).session_state_bytes;
    gumbel_conversation_memory memory, shorter;
    assert_true(conversation_of(program, 0, 0, sizeof memory, &memory));
    assert_int_equal(memory.tokens, 1024);
    assert_in_range(memory.bytes, most / 8, most / 2);
    assert_true(memory.sessions > 0);
    assert_true(conversation_of(program, 1024, 0, sizeof memory, &shorter));
    assert_int_equal(shorter.bytes, memory.bytes);
    assert_false(conversation_of(program, 0, 1, sizeof memory, &memory));
    assert_false(conversation_of(program, 1023, 0, sizeof memory, &memory));
    assert_false(conversation_of(program, 0, 0, sizeof memory - 1, &memory));
    gumbel_program_close(program);
}

static void what_is_refused(void **state) {
    (void)state;
    gumbel_program *program = open_random_program("small.json", false);
    const gumbel_program_info before = info_of(program);
    assert_fails(gumbel_program_set_cache(program, NULL, &error), GUMBEL_ERROR_ARGUMENT, &error, "NULL");
    assert_fails(gumbel_program_set_cache(program, "q3", &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "cache: \"q3\", expected float32, bfloat16, q8, q4");
    assert_fails(gumbel_program_set_cache(program, "", &error), GUMBEL_ERROR_ARGUMENT, &error, "expected");
    assert_fails(gumbel_program_set_cache(program, "int8 8", &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "expected");
    assert_fails(gumbel_program_set_cache(program, "f16", &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "caches of 16 bits are bfloat16");
    assert_fails(gumbel_program_set_cache(program, "q8", &error), GUMBEL_ERROR_UNSUPPORTED, &error,
                 ".keys has heads of 16 elements; q8 takes a multiple of 32");
    assert_memory_equal(info_of(program).id, before.id, sizeof before.id);
    assert_int_equal(info_of(program).session_state_bytes, before.session_state_bytes);
    gumbel_program_close(program);
}

static gumbel_session *new_session(const gumbel_program *program, gumbel_engine **engine) {
    gumbel_session *session;
    const gumbel_engine_options options = {.size = sizeof options, .threads = 2};
    assert_ok(gumbel_engine_create(program, &options, engine, &error), &error);
    assert_ok(gumbel_session_create(*engine, &session, &error), &error);
    return session;
}

static int32_t next_token(gumbel_engine *engine, gumbel_session *session, int32_t token) {
    gumbel_result result = {.size = sizeof result};
    const gumbel_request request = {
        .size = sizeof request, .session = session, .tokens = &token, .token_count = 1, .result = &result};
    assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    return result.token;
}

/* A session goes on where it was saved, and only with the caches that it was saved with. */
static void session_files(void **state) {
    (void)state;
    static const char *const caches[] = {"q8", "q4"};
    const char *path = temporary_path("session");
    int32_t prompt[PROMPT], token;
    gumbel_engine *engine;
    random_tokens(3, VOCAB, prompt, PROMPT);
    for (size_t i = 0; i < 2; i++) {
        gumbel_program *program = open_random_program("qwen_wide.json", false);
        assert_ok(gumbel_program_set_cache(program, caches[i], &error), &error);
        gumbel_session *session = new_session(program, &engine);
        gumbel_session_set_seed(session, 21);
        assert_ok(gumbel_session_append(session, prompt, PROMPT, &error), &error);
        assert_ok(gumbel_session_save(session, path, &error), &error);
        token = next_token(engine, session, 5);
        gumbel_engine_destroy(engine);
        session = new_session(program, &engine);
        assert_ok(gumbel_session_load(session, path, &error), &error);
        assert_int_equal(next_token(engine, session, 5), token);
        gumbel_engine_destroy(engine);
        assert_ok(gumbel_program_set_cache(program, "float32", &error), &error);
        session = new_session(program, &engine);
        assert_fails(gumbel_session_load(session, path, &error), GUMBEL_ERROR_FORMAT, &error,
                     "saved from another program, or with other caches (--cache)");
        gumbel_engine_destroy(engine);
        gumbel_program_close(program);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_names),
        cmocka_unit_test(conversations_of_engines),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(session_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
