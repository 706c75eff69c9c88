/* SPDX-License-Identifier: Apache-2.0
 *
 * A device that is lost while several compute: the step ends on all with an error that names it, and so does
 * every step after that. On the emulated device alone.
 */
#include "gumbel.h"
#include "support/assertions.h"
#include "support/programs/random_program.h"

#include <cuda_runtime_api.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#if defined(GUMBEL_EMULATED_DEVICE)

enum { VOCABULARY = 160, PROMPT = 9 };

static gumbel_status step(gumbel_engine *engine, gumbel_session *session, gumbel_error *error) {
    static const int32_t token = 3;
    gumbel_result result = {.size = sizeof result};
    const gumbel_request request = {
        .size = sizeof request, .session = session, .tokens = &token, .token_count = 1, .result = &result};
    return gumbel_step(engine, &request, 1, error);
}

/* While a prompt is run, or while tokens are decoded. */
static void lose(int device, bool in_prompt) {
    static const int numbers[] = {0, 1};
    const gumbel_engine_options options = {.size = sizeof options,
                                           .backend = "cuda",
                                           .devices = numbers,
                                           .device_count = 2,
                                           .least_sharded_weights = 1};
    gumbel_program *program = open_random_program("small.json", false);
    gumbel_engine *engine;
    gumbel_session *session;
    gumbel_error error;
    int32_t prompt[PROMPT];
    char named[16];
    random_tokens(4, VOCABULARY, prompt, PROMPT);
    snprintf(named, sizeof named, "device %d: ", device);
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    assert_ok(step(engine, session, &error), &error);
    emulated_lost_device = device;
    if (in_prompt)
        assert_fails(gumbel_session_append(session, prompt, PROMPT, &error), GUMBEL_ERROR_BACKEND, &error,
                     named);
    else
        assert_fails(step(engine, session, &error), GUMBEL_ERROR_BACKEND, &error, named);
    emulated_lost_device = -1;
    gumbel_session_reset(session);
    assert_fails(step(engine, session, &error), GUMBEL_ERROR_BACKEND, &error, "");
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

static void steps_end_with_the_device_named(void **unused) {
    (void)unused;
    for (int device = 0; device < 2; device++) {
        lose(device, false);
        lose(device, true);
    }
}

#else

static void steps_end_with_the_device_named(void **unused) {
    (void)unused;
    skip();
}

#endif

int main(void) {
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_end_with_the_device_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
