/* SPDX-License-Identifier: Apache-2.0
 *
 * How many likeliest tokens a program can give, by its export's option.
 */
#include "base/file_map.h"
#include "base/memory.h"
#include "support/paths.h"
#include "support/programs/random_program.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static gumbel_error error;

static uint32_t most_of(const gumbel_program *program) {
    gumbel_program_info info = {.size = sizeof info};
    assert_ok(gumbel_program_get_info(program, &info, &error), &error);
    return info.max_top_logprobs;
}

/* The token after a first one, with so many likeliest ones. */
static gumbel_status draw(const gumbel_program *program, uint32_t top, int32_t *token) {
    const int32_t prompt = 2;
    gumbel_engine *engine;
    gumbel_session *session;
    assert_ok(gumbel_engine_create(program, NULL, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    gumbel_session_set_seed(session, 4);
    const gumbel_generate_options options = {
        .size = sizeof options, .wants_logprob = top > 0, .top_logprobs = top};
    gumbel_generated next = {.size = sizeof next};
    gumbel_status status = gumbel_generate(session, &prompt, 1, &options, &error);
    if (status == GUMBEL_OK) {
        assert_ok(gumbel_next(session, &next, &error), &error);
        assert_int_equal(next.top_logprobs, top);
        *token = next.token;
    }
    gumbel_engine_destroy(engine);
    return status;
}

static void as_many_as_were_asked_for(void **state) {
    (void)state;
    static const struct {
        int32_t asked;
        uint32_t most;
    } cases[] = {{0, GUMBEL_TOP_LOGPROBS_DEFAULT}, {-1, 0}, {3, 3}, {128, 128}};
    int32_t first, token;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char refusal[64];
        gumbel_program *program =
            export_random_program("small.json", (gumbel_export_options){.max_top_logprobs = cases[i].asked});
        assert_int_equal(most_of(program), cases[i].most);
        assert_ok(draw(program, 0, i == 0 ? &first : &token), &error);
        assert_ok(draw(program, cases[i].most, &token), &error);
        assert_int_equal(token, first);
        snprintf(refusal, sizeof refusal, "at most %u (--top-logprobs-max)", cases[i].most);
        assert_fails(draw(program, cases[i].most + 1, &token), GUMBEL_ERROR_ARGUMENT, &error, refusal);
        gumbel_program_close(program);
    }
}

static void wrong_numbers_are_refused(void **state) {
    (void)state;
    static const int32_t wrong[] = {-2, 129};
    const char *path = temporary_path("wrong.gumbel");
    for (size_t i = 0; i < 2; i++) {
        gumbel_export_options options = {
            .size = sizeof options, .random_weights = true, .max_top_logprobs = wrong[i]};
        assert_fails(gumbel_export(test_data("run/small.json"), path, &options, &error),
                     GUMBEL_ERROR_ARGUMENT, &error, "expected -1 to 128");
    }
    gumbel_export_options options = {
        .size = sizeof options, .random_weights = true, .max_top_logprobs = 1, .logits = true};
    assert_fails(gumbel_export(test_data("run/small.json"), path, &options, &error), GUMBEL_ERROR_ARGUMENT,
                 &error, "part of the full sampler");
}

/* There are no more likeliest tokens than tokens. */
static void small_vocabularies_have_fewer(void **state) {
    (void)state;
    static const char found[] = "\"vocab_size\": 160", put[] = "\"vocab_size\":  12";
    char *config, source[4096];
    gumbel_program *program;
    snprintf(source, sizeof source, "%s", temporary_path("few.json"));
    assert_ok(gb_read_file(test_data("run/small.json"), 1 << 16, &config, NULL, &error), &error);
    assert_non_null(strstr(config, found));
    memcpy(strstr(config, found), put, sizeof put - 1);
    write_text(source, config);
    gb_free(config);
    gumbel_export_options options = {.size = sizeof options, .random_weights = true};
    const char *path = temporary_path("few.gumbel");
    assert_ok(gumbel_export(source, path, &options, &error), &error);
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    assert_int_equal(most_of(program), 12);
    gumbel_program_close(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_as_were_asked_for),
        cmocka_unit_test(wrong_numbers_are_refused),
        cmocka_unit_test(small_vocabularies_have_fewer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
