/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of a prompt are as long as there is memory beside weights and caches, unless the caller says how
 * long.
 */
#include "device_memory.h"
#include "support/assertions.h"
#include "support/programs/random_program.h"

#include <string.h>

static gumbel_error error;

#if defined(GUMBEL_EMULATED_DEVICE)

typedef struct made_engine {
    uint32_t chunk, step_tokens;
    size_t bytes; /* of the device that it takes */
    char notice[256];
} made_engine;

static void note(void *user, gumbel_log_level level, const char *line) {
    made_engine *made = user;
    (void)level;
    if (strstr(line, "tokens a step"))
        snprintf(made->notice, sizeof made->notice, "%s", line);
}

static size_t free_bytes(void) {
    size_t left, all;
    assert_cuda(cudaMemGetInfo(&left, &all));
    return left;
}

static gumbel_status make_engine(const gumbel_program *program, uint32_t chunk, made_engine *made) {
    *made = (made_engine){0};
    const size_t before = free_bytes();
    const gumbel_engine_options options = {.size = sizeof options,
                                           .backend = "cuda",
                                           .slots = 2,
                                           .prefill_chunk = chunk,
                                           .log = note,
                                           .log_user = made};
    gumbel_engine_info info = {.size = sizeof info};
    gumbel_engine *engine;
    const gumbel_status status = gumbel_engine_create(program, &options, &engine, &error);
    if (status != GUMBEL_OK)
        return status;
    made->bytes = before - free_bytes();
    assert_ok(gumbel_engine_get_info(engine, &info, &error), &error);
    made->chunk = info.prefill_chunk;
    made->step_tokens = info.step_tokens;
    gumbel_engine_destroy(engine);
    assert_int_equal(free_bytes(), before);
    return GUMBEL_OK;
}

static void steps_leave_memory_for_caches(void **unused) {
    (void)unused;
    const size_t all = emulated_memory_bytes;
    gumbel_program *program = open_random_program("qwen_long.json", false);
    made_engine longest, half, found;
    assert_ok(make_engine(program, 0, &found), &error);
    assert_int_equal(found.chunk, 4096);
    assert_string_equal(found.notice, "");
    assert_ok(make_engine(program, 4096, &longest), &error);
    assert_ok(make_engine(program, 2048, &half), &error);
    const size_t of_half = longest.bytes - half.bytes;

    emulated_memory_bytes = all - free_bytes() + longest.bytes + 10 * of_half; /* 12 halves beside the rest */
    assert_ok(make_engine(program, 0, &found), &error);
    assert_int_equal(found.chunk, 2048);
    assert_int_equal(found.step_tokens, 2050);
    assert_non_null(strstr(found.notice, "prompts run 2048 tokens a step, not 4096: cuda: no memory for"));

    emulated_memory_bytes -= 10 * of_half;
    assert_ok(make_engine(program, 0, &found), &error);
    assert_int_equal(found.chunk, 512); /* the program's own needs no room beside it */
    assert_ok(make_engine(program, 4096, &found), &error);
    assert_int_equal(found.chunk, 4096);

    emulated_memory_bytes -= of_half;
    assert_ok(make_engine(program, 0, &found), &error);
    assert_int_equal(found.chunk, 512);
    assert_fails(make_engine(program, 4096, &found), GUMBEL_ERROR_MEMORY, &error, "cuda: no memory for");
    gumbel_program_close(program);
    emulated_memory_bytes = all;
}

#endif

int main(void) {
    need_device();
#if defined(GUMBEL_EMULATED_DEVICE)
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_leave_memory_for_caches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
#else
    (void)error;
    return 77; /* the device's memory is not for tests to choose */
#endif
}
